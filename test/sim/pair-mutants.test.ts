/** Two servers that take turns wrongly: a simulator that does not find it would not find it in ours either. */
import { test } from 'node:test'
import type { PairMutation } from '../../sim/pair/host.ts'
import { assertReported, type MutantReport } from './mutant.ts'

/** A mistake, and the problem that the checkers report. */
interface Mutant extends MutantReport {
  readonly name: string
  readonly mutation: PairMutation
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'changes of an old epoch are made',
    seed: 4,
    mutation: { isFenced: false },
    expected: /a change of server \w in epoch \d+ was made in epoch \d+ of server \w/,
  },
  {
    name: 'the lease is taken before it has run out',
    mutation: { checksExpiry: false },
    expected: /took epoch \d+ while epoch \d+ of server \w had \d+ ms left/,
  },
  {
    name: 'a deposed server keeps its loops running',
    seed: 4,
    mutation: { term: 'keeps its loops' },
    expected: /although it knows that it is deposed|changes the store \d+ ms after it was deposed/,
  },
  {
    name: 'a deposed server ends its workers',
    mutation: { term: 'ends its workers' },
    expected: /stops worker \w+ although it knows that it is deposed/,
  },
]

for (const mutant of MUTANTS) {
  test(`it is found out that ${mutant.name}`, async () => {
    await assertReported(mutant, { pair: true, mutatePair: mutant.mutation })
  })
}
