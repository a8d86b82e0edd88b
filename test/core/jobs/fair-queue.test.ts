import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { BatchId } from '../../../src/core/ids.ts'
import { type BatchTurn, planTurns, type WaitingJobs } from '../../../src/core/jobs/fair-queue.ts'

const batch = (id: string, position: number, waiting: number): BatchTurn => ({ id: id as BatchId, position, waiting })
const aLine = (heads: number[], batches: BatchTurn[]): WaitingJobs => ({ heads, tail: heads.at(-1) ?? null, batches })

/** Jobs of the turns, one claim after another: the number of the head, or the id of a batch. */
function sequence(line: WaitingJobs): (number | string)[] {
  const order: (number | string)[] = []
  let rest = line
  for (;;) {
    const turns = planTurns(rest, 1)
    const [served] = turns.batches
    if (turns.single === 1) order.push(line.heads.length - rest.heads.length)
    else if (served !== undefined) order.push(served.id)
    else return order
    rest = after(rest, turns)
  }
}

function after(line: WaitingJobs, turns: ReturnType<typeof planTurns>): WaitingJobs {
  const heads = line.heads.slice(turns.single)
  const batches = line.batches.map(one => {
    const served = turns.batches.find(({ id }) => id === one.id)
    return served === undefined ? one : { ...one, position: served.position, waiting: one.waiting - served.take }
  })
  return { heads, tail: heads.length === 0 ? null : line.tail, batches }
}

test('without batches the line is first in, first out', () => {
  assert.deepEqual(planTurns(aLine([3, 5, 8], []), 2), { single: 2, batches: [] })
  assert.deepEqual(planTurns(aLine([], []), 2), { single: 0, batches: [] })
})

test('a batch yields to all waiting jobs as soon as one of its requests was claimed', () => {
  assert.deepEqual(sequence(aLine([10, 20], [batch('a', 5, 4)])), ['a', 0, 1, 'a', 'a', 'a'])
  assert.deepEqual(sequence(aLine([10, 20], [batch('a', 15, 2)])), [0, 'a', 1, 'a'])
})

test('batches take turns with each other, whatever their age', () => {
  const batches = [batch('a', 1, 3), batch('b', 2, 2), batch('c', 3, 1)]
  assert.deepEqual(sequence(aLine([], batches)), ['a', 'b', 'c', 'a', 'b', 'a'])
})

test('a batch of which nothing waits has no turn, and at one place the job comes before the batch, then the smaller id', () => {
  const batches = [batch('b', 4, 1), batch('a', 4, 1), batch('empty', 1, 0)]
  assert.deepEqual(sequence(aLine([4], batches)), [0, 'a', 'b'])
})

const LINES = fc
  .record({
    heads: fc.array(fc.nat(100), { maxLength: 20 }),
    batches: fc.array(fc.record({ position: fc.nat(100), waiting: fc.nat(12) }), { maxLength: 5 }),
  })
  .map(({ heads, batches }) =>
    aLine(
      heads.sort((a, b) => a - b),
      batches.map(({ position, waiting }, index) => batch(`b${index}`, position, waiting)),
    ),
  )

test('a job waits for at most one request of each batch, however many requests wait', () => {
  fc.assert(
    fc.property(LINES, line => {
      const order = sequence(line)
      for (const [index] of line.heads.entries()) {
        const before = order.slice(0, order.indexOf(index))
        for (const { id } of line.batches) assert.ok(before.filter(who => who === id).length <= 1)
        assert.equal(before.filter(who => typeof who === 'number').length, index)
      }
    }),
  )
})

test('every batch gets a turn, and of two waiting batches neither is more than one turn ahead', () => {
  fc.assert(
    fc.property(LINES, line => {
      const order = sequence(line)
      const count = (who: number | string, until = order.length) => order.slice(0, until).filter(x => x === who).length
      assert.equal(order.length, line.heads.length + line.batches.reduce((sum, { waiting }) => sum + waiting, 0))
      for (const a of line.batches) {
        for (const b of line.batches) {
          const both = order.findIndex((_, at) => count(a.id, at) >= a.waiting || count(b.id, at) >= b.waiting)
          for (let at = 0; at < both; at += 1) assert.ok(Math.abs(count(a.id, at) - count(b.id, at)) <= 1)
        }
      }
    }),
  )
})

test('several jobs at once are the same ones as one by one', () => {
  fc.assert(
    fc.property(LINES, fc.nat(30), (line, limit) => {
      const turns = planTurns(line, limit)
      const first = sequence(line).slice(0, limit)
      assert.equal(turns.single, first.filter(who => typeof who === 'number').length)
      for (const { id } of line.batches) {
        const take = turns.batches.find(served => served.id === id)?.take ?? 0
        assert.equal(take, first.filter(who => who === id).length)
      }
    }),
  )
})
