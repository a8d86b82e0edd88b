/** Two servers that take turns wrongly: a simulator that does not find it would not find it in ours either. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PairMutation } from '../../sim/pair/host.ts'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'

/** Among these the mistake must be found. */
const MUTANT_SEEDS = 20

/** A mistake, and the problem that the checkers report. */
interface Mutant {
  readonly name: string
  /** A seed that has found it, which is tried first. */
  readonly seed?: number
  readonly mutation: PairMutation
  readonly found: RegExp
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'changes of an old epoch are made',
    seed: 4,
    mutation: { isFenced: false },
    found: /a change of server \w in epoch \d+ was made in epoch \d+ of server \w/,
  },
  {
    name: 'the lease is taken before it has run out',
    mutation: { checksExpiry: false },
    found: /took epoch \d+ while epoch \d+ of server \w had \d+ ms left/,
  },
  {
    name: 'a deposed server keeps its loops running',
    seed: 4,
    mutation: { term: 'keeps its loops' },
    found: /although it knows that it is deposed|changes the store \d+ ms after it was deposed/,
  },
  {
    name: 'a deposed server ends its workers',
    mutation: { term: 'ends its workers' },
    found: /stops worker \w+ although it knows that it is deposed/,
  },
]

for (const mutant of MUTANTS) {
  test(`it is found out that ${mutant.name}`, async () => {
    assert.match(await problemsUntil(mutant), mutant.found)
  })
}

/** Problems of the first seed that finds the mistake; those of all seeds if no seed does. */
async function problemsUntil({ seed: first = 1, mutation: mutatePair, found }: Mutant): Promise<string> {
  const all: string[] = []
  const seeds = Array.from({ length: MUTANT_SEEDS }, (_, at) => at + 1)
  for (const seed of new Set([first, ...seeds])) {
    const enough = (problems: readonly string[]) => problems.some(problem => found.test(problem))
    const { problems } = await runSeed(seed, { settle, pair: true, mutatePair, enough })
    const text = problems.join('\n')
    if (enough(problems)) return text
    all.push(text)
  }
  return all.join('\n')
}
