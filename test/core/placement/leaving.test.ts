/** Ways of an idle worker to leave its card (core/placement/leaving.ts). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COPY_RATES, copyRates, MAX_COPIES, roundTripMs } from '../../../src/core/hardware/copy-times.ts'
import { whyEnds } from '../../../src/core/placement/leaving.ts'
import type { Occupant } from '../../../src/core/placement/placement-input.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { anIdle, aTenant, given, placed, type Situation } from '../../support/placing.ts'

const GIB = 1_024
const copying = { rates: { outMs: 0.5, inMs: 0.25 }, roomMb: 100 * GIB }

test('a copy of the memory and back that takes longer than a start is not made', () => {
  const why = (copyMb: number | null, startMs: number | null) => whyEnds({ copyMb, startMs }, copying)
  assert.equal(roundTripMs(20 * GIB, copying.rates), 15_360)
  assert.deepEqual([why(20 * GIB, 15_359), why(20 * GIB, 15_360)], ['start_is_faster', null])
  assert.deepEqual([why(null, 1), why(20 * GIB, null)], [null, null], 'nothing is decided by what is unknown')
})

test('a copy for which another worker would have to end is not made', () => {
  const why = (roomMb: number) => whyEnds({ copyMb: 20 * GIB, startMs: 60_000 }, { ...copying, roomMb })
  assert.deepEqual([why(20 * GIB), why(20 * GIB - 1)], [null, 'no_copy_memory'])
})

test('the speed of copies is that of the last ones with some size, else the default', () => {
  assert.deepEqual(copyRates([], []), COPY_RATES)
  const small = [{ mb: 10, tookMs: 900 }]
  assert.deepEqual(copyRates(small, small), COPY_RATES, 'calls take most of the time of a small one')
  const copies = [
    { mb: 2_000, tookMs: 1_000 },
    { mb: 6_000, tookMs: 1_000 },
  ]
  const fast = [{ mb: 4_000, tookMs: 400 }]
  assert.deepEqual(copyRates(copies, fast), { outMs: 0.25, inMs: 0.1 })
  assert.ok(MAX_COPIES > copies.length)
})

test('a machine that is ten times as fast in one direction counts as ten times as fast in the other', () => {
  const { outMs, inMs } = COPY_RATES
  const copy = (perMb: number) => [{ mb: 10_000, tookMs: perMb * 1_000 }]
  const near = (rates: { outMs: number; inMs: number }) => {
    assert.ok(
      Math.abs(rates.outMs - outMs / 10) < 1e-9 && Math.abs(rates.inMs - inMs / 10) < 1e-9,
      JSON.stringify(rates),
    )
  }
  near(copyRates(copy(outMs), []))
  near(copyRates([], copy(inMs)))
})

const parts = aMachine([aGpu(0)])
const onCard = (id: string, card: number, fields: Partial<Occupant> = {}) =>
  anIdle(id, `of ${id}`, {
    placement: given(card),
    sleep: 'able',
    suspends: true,
    copyMb: 20 * GIB,
    startMs: 30_000,
    ...fields,
  })
const tenantsFor = (...occupants: Occupant[]) => [
  ...occupants.map(({ endpointId }) => aTenant(endpointId, { wanted: 0 })),
  aTenant('waits', { hasWork: true }),
]
const decide = (occupants: Occupant[], fields: Situation = {}) =>
  placed({ parts, copying, occupants, tenants: tenantsFor(...occupants), ...fields })

test('an idle worker makes room by a suspend, and by its end where a start is faster, which the wait says', () => {
  const slow = decide([onCard('a', 0)])
  assert.deepEqual(slow.evicted, ['a sleeps for waits'])
  assert.match(slow.refused[0]!, /it gets the card of a worker that goes to sleep$/)
  const fast = decide([onCard('a', 0, { startMs: 5_000 })])
  assert.deepEqual(fast.evicted, ['a for waits since start_is_faster'])
  assert.match(
    fast.refused[0]!,
    /of a worker that is ending, since its next start is faster than a copy of its GPU mem/,
  )
})

test('the wait says so until the worker has ended', () => {
  const { refused, evicted } = decide([onCard('a', 0, { phase: 'leaving', endsSince: 'no_copy_memory' })])
  assert.deepEqual(evicted, [])
  assert.match(refused[0]!, /that is ending, since the memory for suspended workers has no room for a copy/)
})

test('the memory for copies is promised once, also to workers that are about to be suspended', () => {
  const two = aMachine([aGpu(0), aGpu(1)])
  const tight = { ...copying, roomMb: 30 * GIB }
  const idle = [onCard('a', 0), onCard('b', 1)]
  const tenants = [...tenantsFor(...idle), aTenant('next', { hasWork: true })]
  const both = decide(idle, { parts: two, copying: tight, tenants })
  assert.deepEqual(both.evicted, ['a sleeps for next', 'b for waits since no_copy_memory'])
  const frozen = { sinceMs: 1, hasPriority: false }
  const falls = onCard('a', 0, { phase: 'frozen', frozen, sleep: 'falling' })
  const after = decide([falls, onCard('b', 1)], { parts: two, copying: tight, tenants })
  assert.deepEqual(after.evicted, ['b for waits since no_copy_memory'])
})
