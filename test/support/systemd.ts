/**
 * Units of systemd, as its own checker reads them; `systemd-analyze` is in Debian's package systemd and
 * needs no systemd that runs.
 */
import { spawnSync } from 'node:child_process'

/** Runs it. */
export function systemdAnalyze(words: readonly string[]) {
  return spawnSync('systemd-analyze', words, { encoding: 'utf8', env: { ...process.env, SYSTEMD_COLORS: '0' } })
}

/** Reason why tests of units cannot run; false if they can. If skips are not allowed, they run and fail. */
export const noSystemd: string | false =
  process.env.RUNYARD_NO_SKIP !== '1' && systemdAnalyze(['--version']).status !== 0
    ? 'install systemd to check the units; it need not run'
    : false

/** The settings of a unit by name, in order. */
export function unitSettings(text: string): Map<string, string[]> {
  const settings = new Map<string, string[]>()
  for (const [, name, value] of text.matchAll(/^(\w+)=(.*)$/gm))
    settings.set(name!, [...(settings.get(name!) ?? []), value!])
  return settings
}
