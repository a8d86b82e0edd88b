/** Tests by a trial if this machine can make a cage. */
import { execFileSync } from 'node:child_process'
import { readOptional } from '../../disk/optional-files.ts'
import { CAGE_BASE } from './arguments.ts'
import { sameUser, shownAt, tryLayer } from './layer.ts'
import { systemCallFilter } from './system-call-filter.ts'

/** The result of the trial. `filter` is the program that refuses system calls; null where this machine takes none. */
export type CageTrial =
  | { readonly bwrap: string; readonly filter: Buffer | null }
  | { readonly problem: string; readonly action: string }

/** The problem of a machine without the program that makes cages. */
export const NO_BUBBLEWRAP = 'bubblewrap (bwrap) is not installed'

const PLACES = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap', '/run/current-system/sw/bin/bwrap']
const TRIAL_MS = 10_000
const TRIAL_STDIO = ['pipe', 'ignore', 'pipe'] as const
const TRIAL = [...CAGE_BASE, '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']

/**
 * Runs nothing in a cage that is made as those of workers are.
 * @param places possible paths of bubblewrap
 */
export function tryCage(platform: string = process.platform, places: readonly string[] = PLACES): CageTrial {
  if (platform !== 'linux') return { problem: 'cages need Linux', action: 'run workers in containers' }
  let problem: string | null = null
  const filter = systemCallFilter()
  for (const bwrap of places) {
    if (filter !== null && tryWords(bwrap, filter) === null) return { bwrap, filter }
    const unfilteredProblem = tryWords(bwrap, null)
    if (unfilteredProblem === null) return { bwrap, filter: null }
    if (unfilteredProblem !== MISSING) problem ??= unfilteredProblem
  }
  if (problem === null) return { problem: NO_BUBBLEWRAP, action: 'install the package bubblewrap' }
  return { problem: `bubblewrap cannot make a cage here: ${problem}`, action: actionHere() }
}

/** The remedy if bubblewrap cannot make namespaces, as far as the kernel reports the reason. */
function actionHere(): string {
  if (readSetting('kernel/apparmor_restrict_unprivileged_userns') === '1')
    return 'give bwrap a profile of AppArmor that permits user namespaces, or set kernel.apparmor_restrict_unprivileged_userns=0'
  if (readSetting('kernel/unprivileged_userns_clone') === '0') return 'set kernel.unprivileged_userns_clone=1'
  if (readSetting('user/max_user_namespaces') === '0') return 'raise user.max_user_namespaces'
  return 'permit user namespaces and mounts to this server (in a container and in a unit of systemd they are off unless given), with bubblewrap 0.8 or newer'
}

function readSetting(name: string): string {
  return readOptional(`/proc/sys/${name}`).trim()
}

const MISSING = 'ENOENT'

/** Makes a cage. @returns the problem; null after success */
function tryWords(bwrap: string, filter: Buffer | null): string | null {
  const words = [...(filter === null ? [] : ['--seccomp', '0']), ...TRIAL, '--', 'true']
  try {
    const input = filter ?? Buffer.alloc(0)
    execFileSync(bwrap, words, { env: { PATH: '/usr/bin:/bin' }, stdio: [...TRIAL_STDIO], input, timeout: TRIAL_MS })
    return null
  } catch (thrown) {
    const { code, stderr } = thrown as NodeJS.ErrnoException & { stderr?: Buffer }
    return code === MISSING ? MISSING : firstLine(stderr?.toString() ?? '') || String(code ?? 'it failed')
  }
}

/**
 * True where workers in such a cage can have a private layer over their image.
 * @param folder place of the layers of workers
 * @param around the words that make the namespaces around it
 */
export function tryLayers(bwrap: string, folder: string, around: readonly string[]): boolean {
  const words = [bwrap, ...TRIAL, ...sameUser()]
  return tryLayer(folder, around, layer => [...words, '--bind', shownAt(layer), layer.image, '--'])
}

function firstLine(text: string): string {
  return text.trim().split('\n')[0]?.slice(0, 200) ?? ''
}
