import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type BalanceRules,
  type Candidate,
  choose,
  isOpen,
  type Preference,
} from '../../../src/core/balancing/balance.ts'
import {
  type Ejection,
  ejectedForMs,
  ejectionAfter,
  ejectionWhenDue,
  ejectionWhenSent,
  FAILURES_UNTIL_EJECTED,
  NOT_EJECTED,
  type RequestOutcome,
} from '../../../src/core/balancing/outlier-ejection.ts'
import type { WorkerId } from '../../../src/core/ids.ts'
import type { ServedAt } from '../../../src/core/workers/socket-address.ts'
import { randomSeed } from '../../support/random-seed.ts'

const OPTIONS = { seed: randomSeed, numRuns: 2_000 }
const AT = { host: '127.0.0.1', port: 8000 }
const SERVED: ServedAt = { traffic: AT, health: AT }
const RULES: BalanceRules = { version: 2, requestCount: 2, maxConcurrency: null, paused: false }
const ANY: Preference = { affinity: null, avoid: [] }
const OUT: Ejection = { state: 'ejected', failures: 3, ejections: 1, refusals: 0 }
const REFUSING: Ejection = { state: 'refusing', failures: 1, ejections: 1, refusals: 1 }

const toWorkerId = (name: string) => name as WorkerId

function aCandidate(name: string, fields: Partial<Candidate> = {}): Candidate {
  const base = { workerId: toWorkerId(name), version: 2, state: 'ready', servedAt: SERVED } as const
  return { ...base, inFlight: 0, usedAt: 0, ejection: NOT_EJECTED, ...fields }
}

/** Name of the chosen worker, or the reason of a refusal. */
function chosen(workers: readonly Candidate[], rules: Partial<BalanceRules> = {}, wish: Partial<Preference> = {}) {
  const found = choose(workers, { ...RULES, ...rules }, { ...ANY, ...wish })
  return typeof found === 'string' ? found : String(found.workerId)
}

const insists = (name: string, kind: 'strict' | 'strict-resume' = 'strict') => ({
  affinity: { kind, workerId: toWorkerId(name) },
})

test('the least loaded ready worker gets it, and of equals the one that was used longest ago', () => {
  const workers = [
    aCandidate('a', { inFlight: 1 }),
    aCandidate('b', { usedAt: 5 }),
    aCandidate('c', { usedAt: 4 }),
    aCandidate('d', { state: 'starting' }),
    aCandidate('e', { state: 'draining' }),
    aCandidate('f', { servedAt: null }),
  ]
  assert.equal(chosen(workers), 'c')
  assert.equal(chosen(workers.slice(3)), 'none_ready')
  assert.equal(chosen([]), 'none_ready')
  assert.equal(chosen(workers, { paused: true }), 'paused')
})

test('above its target a worker still gets requests, at its hard limit it does not', () => {
  assert.equal(chosen([aCandidate('a', { inFlight: 50 })]), 'a')
  assert.equal(chosen([aCandidate('a', { inFlight: 50 })], { maxConcurrency: 50 }), 'full')
  assert.equal(chosen([aCandidate('a', { inFlight: 49 })], { maxConcurrency: 50 }), 'a')
})

test('new workers come first until they have what they should have; old ones serve while there is no new one', () => {
  const old = aCandidate('old', { version: 1, inFlight: 1 })
  assert.equal(chosen([old, aCandidate('new', { state: 'starting' })]), 'old')
  assert.equal(chosen([aCandidate('old', { version: 1 }), aCandidate('new', { inFlight: 1 })]), 'new')
  assert.equal(chosen([old, aCandidate('new', { inFlight: 2 })]), 'old')
  const loaded = aCandidate('old', { version: 1, inFlight: 7 })
  assert.equal(chosen([loaded, aCandidate('new', { inFlight: 7 })]), 'new')
  assert.equal(chosen([loaded, aCandidate('new', { inFlight: 8 })]), 'old')
})

test('soft affinity is followed while that worker is ready and has room', () => {
  const soft = { affinity: { kind: 'soft', workerId: toWorkerId('a') } } as const
  const other = aCandidate('b')
  assert.equal(chosen([aCandidate('a', { inFlight: 9 }), other], {}, soft), 'a')
  assert.equal(chosen([aCandidate('a', { inFlight: 9 }), other], { maxConcurrency: 9 }, soft), 'b')
  assert.equal(chosen([aCandidate('a', { state: 'draining' }), other], {}, soft), 'b')
  assert.equal(chosen([aCandidate('a', { ejection: OUT }), other], {}, soft), 'b')
  assert.equal(chosen([other], {}, soft), 'b')
  assert.equal(chosen([], {}, soft), 'none_ready')
})

test('strict affinity takes that worker, waits for it, or is refused when it is gone', () => {
  const other = aCandidate('b')
  const strict = (fields: Partial<Candidate>, rules = {}) =>
    chosen([aCandidate('a', fields), other], rules, insists('a'))
  assert.equal(strict({ ejection: OUT }), 'a')
  assert.equal(strict({ inFlight: 1 }, { maxConcurrency: 1 }), 'full')
  assert.equal(strict({ state: 'starting' }), 'not_ready')
  assert.equal(strict({ servedAt: null }), 'not_ready')
  assert.equal(strict({ state: 'draining' }), 'gone')
  assert.equal(chosen([other], {}, insists('a')), 'gone')
  assert.equal(chosen([other], {}, insists('a', 'strict-resume')), 'ended')
  assert.equal(chosen([aCandidate('a', { state: 'draining' })], {}, insists('a', 'strict-resume')), 'ended')
})

test('a worker that already failed the request is chosen only if no other is in the rotation', () => {
  const avoid = { avoid: [toWorkerId('a')] }
  const full = aCandidate('b', { inFlight: 3 })
  assert.equal(chosen([aCandidate('a'), full], {}, avoid), 'b')
  assert.equal(chosen([aCandidate('a'), full], { maxConcurrency: 3 }, avoid), 'full')
  assert.equal(chosen([aCandidate('a'), aCandidate('b', { ejection: OUT })], {}, avoid), 'b')
  assert.equal(chosen([aCandidate('a'), aCandidate('b', { state: 'starting' })], {}, avoid), 'a')
})

test('a worker that is out gets nothing while another is in the rotation, even a full one', () => {
  const out = aCandidate('ejected', { ejection: OUT })
  assert.equal(chosen([out, aCandidate('b', { inFlight: 9 })]), 'b')
  assert.equal(chosen([out, aCandidate('b', { inFlight: 9 })], { maxConcurrency: 9 }), 'full')
  assert.equal(chosen([out, aCandidate('b', { ejection: OUT, inFlight: 1 })]), 'ejected')
  assert.equal(chosen([out, aCandidate('b', { state: 'draining' })]), 'ejected')
})

test('a worker that refuses connections gets nothing, even if no other is there or a request requires it', () => {
  const refusing = aCandidate('a', { ejection: REFUSING })
  assert.equal(chosen([refusing]), 'full')
  assert.equal(chosen([refusing, aCandidate('b', { state: 'starting' })], {}, { avoid: [toWorkerId('a')] }), 'full')
  assert.equal(chosen([refusing, aCandidate('b', { ejection: OUT })]), 'b')
  assert.equal(chosen([refusing], {}, insists('a')), 'not_ready')
  assert.equal(chosen([refusing], {}, insists('a', 'strict-resume')), 'not_ready')
})

/** State of a worker after requests with these outcomes, each sent as soon as allowed. */
const judged = (...outcomes: RequestOutcome[]) =>
  outcomes.reduce((trust, outcome) => ejectionAfter(ejectionWhenSent(trust), outcome), NOT_EJECTED)

test('three failures in a row take a worker out; one success in between, or afterwards, makes it good', () => {
  assert.equal(FAILURES_UNTIL_EJECTED, 3)
  assert.equal(judged('unreachable', 'broken').state, 'in_rotation')
  assert.equal(judged('unreachable', 'aborted', 'broken', 'unreachable').state, 'ejected')
  assert.equal(judged('unreachable', 'broken', 'answered', 'broken', 'broken').state, 'in_rotation')
  assert.deepEqual(judged('broken', 'broken', 'broken', 'answered'), NOT_EJECTED)
})

test('after its time it is tried with one request, and out for longer each time that fails', () => {
  let trust = judged('broken', 'broken', 'broken')
  const times: number[] = []
  for (let time = 0; time < 7; time += 1) {
    times.push(ejectedForMs(trust))
    const due = ejectionWhenDue(trust)
    assert.equal(chosen([aCandidate('a', { ejection: due }), aCandidate('b', { inFlight: 1 })]), 'a')
    const tried = ejectionWhenSent(due)
    assert.equal(chosen([aCandidate('a', { ejection: tried }), aCandidate('b', { inFlight: 1 })]), 'b')
    assert.equal(ejectionAfter(tried, 'aborted').state, 'trial_due')
    trust = ejectionAfter(tried, 'unreachable')
    assert.equal(trust.state, 'ejected')
  }
  assert.deepEqual(times, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  assert.equal(ejectionWhenDue(ejectionWhenSent(ejectionWhenDue(trust))).state, 'trial_due')
  assert.deepEqual(ejectionAfter(ejectionWhenSent(ejectionWhenDue(trust)), 'answered'), NOT_EJECTED)
})

test('one refusal takes a worker out, whatever it did before, and after three in a row it is one that fails', () => {
  assert.equal(judged('refused').state, 'refusing')
  assert.equal(judged('broken', 'broken', 'broken', 'refused').state, 'refusing')
  assert.deepEqual(judged('refused', 'refused', 'broken'), { ...REFUSING, failures: 3 })
  assert.deepEqual(judged('refused', 'answered'), NOT_EJECTED)
  let ejection = NOT_EJECTED
  const states: string[] = []
  for (let time = 0; time < 5; time += 1) {
    ejection = ejectionAfter(ejectionWhenSent(ejectionWhenDue(ejection)), 'refused')
    states.push(`${ejection.state} for ${ejectedForMs(ejection)} ms`)
  }
  assert.deepEqual(states, [
    'refusing for 1000 ms',
    'refusing for 2000 ms',
    'refusing for 4000 ms',
    'ejected for 8000 ms',
    'ejected for 16000 ms',
  ])
})

const NAMES = ['a', 'b', 'c', 'd', 'e'].map(toWorkerId)
const WORKERS = fc
  .array(
    fc.record({
      version: fc.constantFrom(1, 2),
      state: fc.constantFrom('starting', 'ready', 'ready', 'draining'),
      servedAt: fc.constantFrom(SERVED, SERVED, null),
      inFlight: fc.nat(4),
      usedAt: fc.nat(9),
      ejection: fc
        .constantFrom<Ejection['state']>('in_rotation', 'in_rotation', 'ejected', 'refusing', 'trial_due', 'on_trial')
        .map(state => ({ ...OUT, state })),
    }),
    { maxLength: 5 },
  )
  .map(all => all.map((fields, index) => aCandidate(NAMES[index]!, fields)))
const WISH = fc.record({
  affinity: fc.option(
    fc.record({ kind: fc.constantFrom('soft', 'strict', 'strict-resume'), workerId: fc.constantFrom(...NAMES) }),
  ),
  avoid: fc.subarray(NAMES),
})
const RULE = fc.record({
  version: fc.constant(2),
  requestCount: fc.integer({ min: 1, max: 4 }),
  maxConcurrency: fc.option(fc.integer({ min: 1, max: 4 })),
  paused: fc.constant(false),
})
/** In the rotation. */
const isUsed = ({ ejection }: Candidate) => ejection.state === 'in_rotation' || ejection.state === 'trial_due'

test('only a ready worker with room is ever chosen, and with strict affinity only that one', () => {
  fc.assert(
    fc.property(WORKERS, RULE, WISH, (workers, rules, wish) => {
      const found = choose(workers, rules, wish)
      if (typeof found === 'string') return
      assert.ok(isOpen(found) && found.state === 'ready' && found.servedAt !== null)
      assert.notEqual(found.ejection.state, 'refusing')
      assert.ok(rules.maxConcurrency === null || found.inFlight < rules.maxConcurrency)
      const { affinity } = wish
      if (affinity !== null && affinity.kind !== 'soft') assert.equal(found.workerId, affinity.workerId)
    }),
    OPTIONS,
  )
})

test('a request for any worker gets one if one in the rotation has room, or if the rotation is empty and one is ready', () => {
  fc.assert(
    fc.property(WORKERS, RULE, (workers, rules) => {
      const found = choose(workers, rules, ANY)
      const ready = workers.filter(isOpen)
      const listening = ready.filter(({ ejection }) => ejection.state !== 'refusing')
      const rotation = ready.some(isUsed) ? ready.filter(isUsed) : listening
      const free = rotation.filter(({ inFlight }) => inFlight < (rules.maxConcurrency ?? Number.POSITIVE_INFINITY))
      if (typeof found === 'string') {
        assert.equal(found, ready.length === 0 ? 'none_ready' : 'full')
        assert.deepEqual(free, [])
        return
      }
      assert.ok(free.includes(found))
      for (const other of free) {
        if (other.version === found.version) assert.ok(found.inFlight <= other.inFlight)
        if (other.version === 2 && found.version === 1) assert.ok(other.inFlight >= rules.requestCount)
      }
    }),
    OPTIONS,
  )
})

test('a worker that a request avoids, or that is out, is chosen only when no other is in the rotation', () => {
  fc.assert(
    fc.property(WORKERS, RULE, WISH, (workers, rules, { avoid }) => {
      const found = choose(workers, rules, { affinity: null, avoid })
      if (typeof found === 'string' || (isUsed(found) && !avoid.includes(found.workerId))) return
      assert.ok(!workers.some(worker => isOpen(worker) && isUsed(worker) && !avoid.includes(worker.workerId)))
    }),
    OPTIONS,
  )
})
