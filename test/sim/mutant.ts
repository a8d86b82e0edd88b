/** Search for seeds in which the checkers of the simulator find a mistake that a test made. */
import assert from 'node:assert/strict'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'

/** Seeds among which a mistake must be found. */
const MUTANT_SEEDS = 20

/** A mistake, as the checkers report it. */
export interface MutantReport {
  /** A seed that found it, which runs first. */
  readonly seed?: number
  readonly expected: RegExp
}

/** Runs seeds with a mistake until one reports it. @throws the problems of all seeds if no seed does */
export async function assertReported(
  { seed: first = 1, expected }: MutantReport,
  mistake: Omit<Parameters<typeof runSeed>[1], 'settle' | 'enough'>,
): Promise<void> {
  const all: string[] = []
  const seeds = Array.from({ length: MUTANT_SEEDS }, (_, at) => at + 1)
  for (const seed of new Set([first, ...seeds])) {
    const enough = (problems: readonly string[]) => problems.some(problem => expected.test(problem))
    const { problems } = await runSeed(seed, { settle, ...mistake, enough })
    if (enough(problems)) return
    all.push(...problems)
  }
  assert.match(all.join('\n'), expected, 'no seed has found it')
}

/** A function that returns true for one of every `nth` calls. */
export function everyNth(nth: number): () => boolean {
  let count = 0
  return () => {
    count += 1
    return count % nth === 0
  }
}
