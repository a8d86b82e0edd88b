/** Seeds whose workers share cards, with learned shares and programs that take more than theirs; and the checker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShareChecker } from '../../sim/checks/share-checker.ts'
import { PlayedGpus } from '../../sim/played-gpus.ts'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import { aGpu } from '../support/machines.ts'
import { shared } from '../support/placing.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const SEED = 203

test(`seed ${SEED} with shares of cards: no job is lost or run twice, and no card is promised beyond its memory`, async () => {
  const { problems, stats } = await runSeed(SEED, { settle, shares: true })
  assert.deepEqual(problems, [])
  assert.ok((stats.counts['learned shares'] ?? 0) > 0, 'no share was learned')
})

/** A checker over a card of 24 GB with workers: the share of each, null for the whole card, and its use in GiB. */
function check(workers: Readonly<Record<string, readonly [shareGb: number | null, usedGib: number]>>) {
  const problems: string[] = []
  const gpus = new PlayedGpus({ clock: new VirtualClock(), isFrozen: () => false, isAlive: () => true })
  const rows = Object.entries(workers).map(([id, [share]]) => ({ id, placement: JSON.stringify(shared(share)) }))
  const database = { query: <Row>() => rows as Row[] }
  for (const [id, [, gib]] of Object.entries(workers)) gpus.start(id as WorkerId, ['GPU-0'], gib)
  const checker = new ShareChecker(problem => problems.push(problem), database, { gpus, cards: () => [aGpu(0)] })
  return { checker, problems, gpus }
}

test('the checker of shares reports a card that is promised beyond its memory', () => {
  const { checker, problems } = check({ a: [8, 1], b: [8, 1], c: [8, 1] })
  checker.inspect()
  assert.deepEqual(problems, ['24576 of 24576 MiB of GPU 0 are promised to workers a, b, c'])
  const beside = check({ a: [null, 1], b: [8, 1] })
  beside.checker.inspect()
  assert.equal(beside.problems.length, 1, 'a whole card and a share')
  const full = check({ a: [15.5, 1], b: [8, 1] })
  full.checker.inspect()
  const whole = check({ a: [null, 20] })
  whole.checker.inspect()
  assert.deepEqual([...full.problems, ...whole.problems], [])
})

test('the checker of shares reports a program without memory, unless somebody took more than a share', () => {
  const fair = check({ a: [8, 8], b: [8, 8], c: [8, 4] })
  fair.checker.ranOut('c' as WorkerId, 8)
  assert.equal(fair.problems.length, 1)
  const ownFault = check({ a: [8, 8], c: [8, 4] })
  ownFault.checker.ranOut('c' as WorkerId, 9)
  const greedy = check({ a: [8, 14], c: [8, 4] })
  greedy.checker.ranOut('c' as WorkerId, 8)
  const foreign = check({ a: [8, 8], c: [8, 4] })
  foreign.gpus.takeForeign('GPU-0', 2 ** 30)
  foreign.checker.ranOut('c' as WorkerId, 8)
  assert.deepEqual([...ownFault.problems, ...greedy.problems, ...foreign.problems], [])
})
