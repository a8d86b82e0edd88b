/** Prometheus' own check of rules, from the program that `RUNYARD_TEST_PROMTOOL` names; see `.ci/prometheus`. */
import { spawnSync } from 'node:child_process'

const program = process.env.RUNYARD_TEST_PROMTOOL ?? ''

/** Reason why tests of rules cannot run; false if they can. */
export const noPromtool: string | false =
  program === '' ? 'set RUNYARD_TEST_PROMTOOL to check the alert rules; .ci/prometheus fetch gets it' : false

/** Runs it. */
export function promtool(words: readonly string[]) {
  return spawnSync(program, words, { encoding: 'utf8' })
}
