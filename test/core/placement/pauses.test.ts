/** Pauses in the middle of a job: who is paused for whom, and who gets the room (core/placement/pauses.ts). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { PRIORITIES } from '../../../src/core/endpoints/endpoint.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../../src/core/ids.ts'
import { outranks } from '../../../src/core/placement/pauses.ts'
import { placeWorkers } from '../../../src/core/placement/place.ts'
import { type Occupant, PAUSE_RULES, type Tenant } from '../../../src/core/placement/placement-input.ts'
import { type Placement, UNPLACED } from '../../../src/core/workers/placement.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import {
  aCard,
  anIdle,
  anOccupant,
  aTenant,
  cpus,
  given,
  placed,
  placeInput,
  type Situation,
} from '../../support/placing.ts'
import { randomSeed } from '../../support/random-seed.ts'
import { NOW } from '../../support/snapshots.ts'

const parts = aMachine([aGpu(0)])
const OTHER = 'other' as OwnerId

/** A busy worker of low priority on the card, which may be paused. */
const low = (fields: Partial<Occupant> = {}) =>
  anOccupant('low1', 'batch', { placement: given(0), priority: 'low', pausableAtMs: 0, ...fields })
/** A worker that was paused some time ago; its card is empty. */
const paused = (forMs: number, fields: Partial<Occupant> = {}) =>
  low({
    phase: 'paused',
    sleep: 'asleep',
    suspends: true,
    pausableAtMs: null,
    pause: { sinceMs: NOW - forMs, for: 'chat' as EndpointId },
    ...fields,
  })
/** The endpoint of {@link paused}, which wants it to go on. */
const goesOn = (forMs: number, placement: Placement = given(0), fields: Partial<Tenant> = {}) =>
  aTenant('batch', {
    wanted: 0,
    priority: 'low',
    wakes: [{ workerId: 'low1' as WorkerId, placement, memoryMb: null, pausedSinceMs: NOW - forMs }],
    ...fields,
  })
/** An endpoint with a job that waits. */
const urgent = (fields: Partial<Tenant> = {}) => aTenant('chat', { priority: 'high', hasWork: true, ...fields })
const batch = aTenant('batch', { wanted: 0, priority: 'low' })
const decide = (fields: Situation) => placed({ parts, ...fields })

describe('a worker is paused', () => {
  test('for waiting work of higher priority, which gets its room and no other', () => {
    const { paused: pauses, evicted, refused } = decide({ occupants: [low()], tenants: [batch, urgent()] })
    assert.deepEqual([pauses, evicted], [['low1 for chat'], []])
    assert.match(refused[0]!, /in use by endpoint batch; it gets the room of a worker of lower priority that is being/)
  })

  test('and the waiting work is said to get its room until its card is empty', () => {
    const falling = paused(100, { sleep: 'falling' })
    const { refused } = decide({ occupants: [falling], tenants: [batch, urgent()] })
    assert.match(refused[0]!, /; it gets the room of a worker of lower priority that is being paused$/)
  })

  test('for no endpoint of the same or a lower priority, for no spare worker, and for none without work', () => {
    for (const tenant of [
      urgent({ priority: 'low' }),
      urgent({ isSpare: true }),
      urgent({ hasWork: false, workersMin: 1 }),
    ]) {
      assert.deepEqual(decide({ occupants: [low()], tenants: [batch, tenant] }).paused, [], JSON.stringify(tenant))
    }
    const equal = [low({ priority: 'normal' })]
    assert.deepEqual(decide({ occupants: equal, tenants: [batch, urgent({ priority: 'normal' })] }).paused, [])
    assert.deepEqual(decide({ occupants: equal, tenants: [batch, urgent()] }).paused, ['low1 for chat'])
  })

  test('only if it allows that, and not before it may be paused again', () => {
    assert.deepEqual(decide({ occupants: [low({ pausableAtMs: null })], tenants: [batch, urgent()] }).paused, [])
    const later = decide({ occupants: [low({ pausableAtMs: NOW + 700 })], tenants: [batch, urgent()] })
    assert.deepEqual([later.paused, later.wakeInMs], [[], 700])
  })

  test('for another account only where the operator allows it', () => {
    const tenants = [batch, urgent({ owner: OTHER })]
    assert.deepEqual(decide({ occupants: [low()], tenants }).paused, [])
    const pauseRules = { acrossAccounts: true }
    assert.deepEqual(decide({ occupants: [low()], tenants, pauseRules }).paused, ['low1 for chat'])
  })

  test('after free room, frozen workers and idle ones, which need not have stayed their time', () => {
    const two = aMachine([aGpu(0), aGpu(1)])
    assert.deepEqual(decide({ parts: two, occupants: [low()], tenants: [batch, urgent()] }).placed, ['chat: 1'])
    const idle = anIdle('idle1', 'batch', { placement: given(1), priority: 'low', readyAtMs: NOW - 1 })
    const beside = decide({ parts: two, occupants: [low(), idle], tenants: [batch, urgent()] })
    assert.deepEqual([beside.evicted, beside.paused], [['idle1 for chat'], []])
  })

  test('in the order of priorities, then the one that became ready last', () => {
    const three = aMachine([aGpu(0), aGpu(1), aGpu(2)])
    const at = (id: string, index: number, fields: Partial<Occupant>) =>
      low({ workerId: id as WorkerId, placement: given(index), ...fields })
    const occupants = [
      at('n1', 0, { priority: 'normal', readyAtMs: NOW - 1 }),
      at('l1', 1, { readyAtMs: NOW - 9_000 }),
      at('l2', 2, { readyAtMs: NOW - 5_000 }),
    ]
    assert.deepEqual(decide({ parts: three, occupants, tenants: [batch, urgent()] }).paused, ['l2 for chat'])
    assert.deepEqual(decide({ parts: three, occupants, tenants: [batch, urgent({ wanted: 2 })] }).paused, [
      'l2 for chat',
    ])
  })

  test('for a sleeping worker of higher priority that needs the card again', () => {
    const sleeper = anOccupant('s1', 'chat', {
      placement: given(0),
      phase: 'frozen',
      frozen: { sinceMs: NOW - 1, hasPriority: false },
      sleep: 'asleep',
      suspends: true,
    })
    const wakes = [{ workerId: 's1' as WorkerId, placement: given(0), memoryMb: 20_000 }]
    const tenants = [batch, urgent({ wanted: 0, wakes })]
    const cards = aCard({ freeMb: 4_000 })
    assert.deepEqual(decide({ occupants: [low(), sleeper], tenants, cards }).paused, ['low1 for chat'])
  })

  test('up to the limit of paused workers, which the reason names', () => {
    const two = aMachine([aGpu(0), aGpu(1)])
    const second = low({ workerId: 'low2' as WorkerId, placement: given(1) })
    const chat = anOccupant('c1', 'chat', { placement: given(0), readyAtMs: NOW - 400 })
    const occupants = [paused(500), chat, second]
    const full = decide({ parts: two, occupants, tenants: [batch, urgent()], pauseRules: { maxPaused: 1 } })
    assert.deepEqual(full.paused, [])
    assert.match(full.refused[0]!, /no further one may be paused \(--max-paused\)$/)
    assert.deepEqual(decide({ parts: two, occupants, tenants: [batch, urgent()] }).paused, ['low2 for chat'])
    const off = decide({ occupants: [low()], tenants: [batch, urgent()], pauseRules: { maxPaused: 0 } })
    assert.deepEqual(off.paused, [])
  })

  test('never for a worker that runs elsewhere', () => {
    assert.deepEqual(decide({ occupants: [low()], tenants: [batch, urgent({ placedBy: 'platform' })] }).paused, [])
  })
})

describe('without a card', () => {
  const machine = aMachine([], { vcpus: 2, memoryGb: 8 })
  const two: Placement = { ...UNPLACED, vcpus: 2, memoryMb: 4_096, flavor: 'cpu3c' }
  const rules = { cpuOvercommit: 1, memoryOvercommit: 2 }
  const onCpu = (fields: Partial<Occupant> = {}) => low({ placement: two, ...fields })
  const chat = urgent({ compute: cpus(2) })

  test('vCPUs become free at once, and the memory of a paused worker does not', () => {
    assert.deepEqual(decide({ parts: machine, rules, occupants: [onCpu()], tenants: [batch, chat] }).paused, [
      'low1 for chat',
    ])
    const asleep = paused(1, { placement: two, sleep: null, suspends: false })
    assert.deepEqual(decide({ parts: machine, rules, occupants: [asleep], tenants: [batch, chat] }).placed, [
      'chat: 2 vCPUs',
    ])
    const tight = { cpuOvercommit: 1, memoryOvercommit: 0.9 }
    const full = decide({ parts: machine, rules: tight, occupants: [onCpu()], tenants: [batch, chat] })
    assert.deepEqual([full.paused, full.placed], [[], []])
  })

  test('it goes on with its vCPUs once they are free', () => {
    const asleep = paused(1, { placement: two, sleep: null, suspends: false })
    const running = anOccupant('c1', 'chat', { placement: two })
    const tenants = [goesOn(1, two)]
    const waits = decide({ parts: machine, rules, occupants: [asleep, running], tenants })
    assert.deepEqual(waits.woken, [])
    assert.match(waits.unwoken[0]!, /low1: it needs 2 vCPUs again, and 2 of the 2 that may be promised are taken by/)
    assert.deepEqual(decide({ parts: machine, rules, occupants: [asleep], tenants }).woken, ['low1'])
  })

  test('a slot of the machine is free while a worker is paused, and it takes one again', () => {
    const process = paused(1, { placement: UNPLACED, sleep: null, suspends: false })
    const chat = urgent({ compute: cpus(1), limited: false })
    const running = anOccupant('c1', 'chat')
    const busy = low({ placement: UNPLACED })
    assert.deepEqual(decide({ occupants: [busy], tenants: [batch, chat], freeWorkers: 0 }).paused, ['low1 for chat'])
    assert.equal(decide({ occupants: [process], tenants: [batch, chat], freeWorkers: 0 }).placed.length, 1)
    const tenants = [goesOn(1, UNPLACED)]
    const waits = decide({ occupants: [process, running], tenants, freeWorkers: -1 })
    assert.deepEqual([waits.woken, waits.unwoken], [[], ['low1: the limit of the test']])
    assert.deepEqual(decide({ occupants: [process], tenants, freeWorkers: 0 }).woken, ['low1'])
  })
})

describe('a paused worker', () => {
  test('goes on as soon as its card is free, after work of higher priority of its account', () => {
    assert.deepEqual(decide({ occupants: [paused(1_000)], tenants: [goesOn(1_000)] }).woken, ['low1'])
    const both = decide({ occupants: [paused(1_000)], tenants: [goesOn(1_000), urgent()] })
    assert.deepEqual([both.placed, both.woken], [['chat: 0'], []])
  })

  test('is neither ended for others nor counted as a worker that idles', () => {
    const { evicted, paused: pauses } = decide({
      occupants: [paused(1_000), anOccupant('c1', 'chat', { placement: given(0) })],
      tenants: [goesOn(1_000), aTenant('third', { hasWork: true })],
    })
    assert.deepEqual([evicted, pauses], [[], []])
  })

  test('has a right to room before everybody after the longest pause', () => {
    const { maxPauseMs } = PAUSE_RULES
    const free = decide({ occupants: [paused(maxPauseMs)], tenants: [urgent(), goesOn(maxPauseMs)] })
    assert.deepEqual([free.woken, free.placed], [['low1'], []])
    const foreign = urgent({ owner: OTHER })
    const others = decide({ occupants: [paused(maxPauseMs)], tenants: [foreign, goesOn(maxPauseMs)] })
    assert.deepEqual([others.woken, others.placed], [['low1'], []])
  })

  test('gets the room of a busy worker after its job then, first of the one for which it was paused', () => {
    const { maxPauseMs } = PAUSE_RULES
    const chat = anOccupant('c1', 'chat', { placement: given(0), priority: 'high' })
    const waits = decide({ occupants: [paused(maxPauseMs - 400), chat], tenants: [urgent(), goesOn(maxPauseMs - 400)] })
    assert.deepEqual([waits.evicted, waits.wakeInMs], [[], 400])
    const due = decide({ occupants: [paused(maxPauseMs), chat], tenants: [urgent(), goesOn(maxPauseMs)] })
    assert.deepEqual(due.evicted, ['c1 for batch after its job'])
    assert.match(due.unwoken[0]!, /it gets the room of a worker that ends after its job$/)
  })

  test('keeps its room from then on, also while nobody can make it', () => {
    const { maxPauseMs } = PAUSE_RULES
    const two = aMachine([aGpu(0)])
    const cards = aCard({ freeMb: 2_000, foreignMb: 0 })
    const wakes = [
      { workerId: 'low1' as WorkerId, placement: given(0), memoryMb: 20_000, pausedSinceMs: NOW - maxPauseMs },
    ]
    const tenants = [urgent(), goesOn(maxPauseMs, given(0), { wakes })]
    const decision = decide({ parts: two, occupants: [paused(maxPauseMs)], tenants, cards })
    assert.deepEqual([decision.placed, decision.woken], [[], []])
  })

  test('that cannot have its card again never loses it to a new worker of its own endpoint', () => {
    const two = aMachine([aGpu(0), aGpu(1)])
    const chat = anOccupant('c1', 'chat', { placement: given(0) })
    const decision = decide({ parts: two, occupants: [paused(1_000), chat], tenants: [goesOn(1_000)] })
    assert.deepEqual([decision.evicted, decision.stranded], [[], []])
  })

  test('goes on on its free card while the card of another one of its endpoint is in use', () => {
    const two = aMachine([aGpu(0), aGpu(1)])
    const chat = anOccupant('c1', 'chat', { placement: given(0) })
    const second = paused(500, { workerId: 'low2' as WorkerId, placement: given(1) })
    const [first] = goesOn(1_000).wakes
    const wakes = [first!, { ...first!, workerId: second.workerId, placement: given(1), pausedSinceMs: NOW - 500 }]
    const tenants = [goesOn(1_000, given(0), { wakes })]
    const decision = decide({ parts: two, occupants: [paused(1_000), second, chat], tenants })
    assert.deepEqual(decision.woken, ['low2'])
    assert.match(decision.unwoken.join(), /^low1: its GPU 0 is in use by endpoint chat$/)
  })

  describe('at the GPU limit of its account', () => {
    const { maxPauseMs } = PAUSE_RULES
    const two = aMachine([aGpu(0), aGpu(1)])
    const quotas = (gpus: number) => new Map([['owner' as OwnerId, { workers: null, gpus }]])
    const second = (forMs: number) => paused(forMs, { workerId: 'low2' as WorkerId, placement: given(1) })
    const [wake] = goesOn(maxPauseMs).wakes
    const other = { ...wake!, workerId: 'low2' as WorkerId, placement: given(1) }
    const both = goesOn(maxPauseMs, given(0), { wakes: [wake!, other] })

    test('goes on on its free card, while the one before it waits for a card that nobody can free', () => {
      const starts = anOccupant('x1', 'foreign', { owner: OTHER, placement: given(0), phase: 'starting' })
      const occupants = [paused(maxPauseMs), second(maxPauseMs), starts]
      const decision = decide({ parts: two, occupants, tenants: [both], quotas: quotas(1) })
      assert.deepEqual(decision.woken, ['low2'])
      assert.match(decision.unwoken.join(), /^low1: its GPU 0 is in use by other accounts$/)
    })

    test('goes on beside the worker whose card the one before it gets after a job', () => {
      const chat = anOccupant('c1', 'chat', { placement: given(0), priority: 'high' })
      const occupants = [paused(maxPauseMs), second(maxPauseMs), chat]
      const tenants = [both, urgent({ wanted: 0 })]
      const decision = decide({ parts: two, occupants, tenants, quotas: quotas(2) })
      assert.deepEqual([decision.woken, decision.evicted], [['low2'], ['c1 for batch after its job']])
      const later = decide({
        parts: two,
        occupants: [paused(maxPauseMs), second(maxPauseMs), { ...chat, phase: 'leaving' }],
        tenants,
        quotas: quotas(2),
      })
      assert.deepEqual(later.woken, ['low2'])
    })

    test('does not take the GPUs of the limit that one before it gets when others have ended', () => {
      const three = aMachine([aGpu(0), aGpu(1), aGpu(2)])
      const pair = { ...given(0), gpus: [...given(0).gpus, ...given(1).gpus] }
      const leaves = anOccupant('c1', 'chat', { placement: given(0), phase: 'leaving' })
      const occupants = [paused(maxPauseMs, { placement: pair }), leaves]
      const tenants = [goesOn(maxPauseMs, pair), urgent()]
      const decision = decide({ parts: three, occupants, tenants, quotas: quotas(2) })
      assert.deepEqual([decision.woken, decision.placed], [[], []])
      assert.match(decision.unwoken.join(), /it gets the room of a worker that is ending$/)
      assert.match(decision.refused.join(), /the limit of 2 GPUs that its account may have at once is reached/)
    })

    test('gets the room of a worker of its account after its job, once its card is free', () => {
      const occupants = [paused(maxPauseMs), low({ workerId: 'low2' as WorkerId, placement: given(1) })]
      const decision = decide({ parts: two, occupants, tenants: [goesOn(maxPauseMs)], quotas: quotas(1) })
      assert.deepEqual([decision.woken, decision.evicted], [[], ['low2 for batch after its job']])
    })
  })

  test('gets the room of a frozen worker of its own endpoint, and of an idle one that has stayed its time', () => {
    const frozen = anOccupant('f1', 'batch', {
      placement: given(0),
      phase: 'frozen',
      frozen: { sinceMs: NOW - 1, hasPriority: false },
    })
    const beside = decide({ occupants: [paused(1_000), frozen], tenants: [goesOn(1_000)] })
    assert.deepEqual(beside.evicted, ['f1 for batch'])
    const idle = anIdle('i1', 'batch', { placement: given(0), priority: 'low' })
    assert.deepEqual(decide({ occupants: [paused(1_000), idle], tenants: [goesOn(1_000)] }).evicted, ['i1 for batch'])
    const waits = decide({ occupants: [paused(1_000), { ...idle, readyAtMs: NOW - 1 }], tenants: [goesOn(1_000)] })
    assert.deepEqual(waits.evicted, [])
  })

  test('gets the room of a busy worker of its own endpoint after its job, after the longest pause', () => {
    const { maxPauseMs } = PAUSE_RULES
    const busy = low({ workerId: 'low2' as WorkerId })
    const before = decide({ occupants: [paused(1_000), busy], tenants: [goesOn(1_000)] })
    assert.deepEqual([before.evicted, before.paused], [[], []])
    const due = decide({ occupants: [paused(maxPauseMs), busy], tenants: [goesOn(maxPauseMs)] })
    assert.deepEqual(due.evicted, ['low2 for batch after its job'])
  })

  test('is stranded when its card is gone', () => {
    const gone = aMachine([aGpu(1)])
    const decision = decide({ parts: gone, occupants: [paused(1_000)], tenants: [goesOn(1_000)] })
    assert.match(decision.stranded[0]!, /^low1: GPU 0 .* is no longer on this machine$/)
    const unread = decide({ parts: { ...gone, problem: 'unread' }, occupants: [paused(1)], tenants: [goesOn(1)] })
    assert.deepEqual(unread.stranded, [])
  })

  test('of normal priority has workers of low priority paused in its turn', () => {
    const taken = low({ workerId: 'low2' as WorkerId, endpointId: 'other' as EndpointId })
    const own = paused(1_000, { priority: 'normal' })
    const tenants = [aTenant('other', { wanted: 0 }), goesOn(1_000, given(0), { priority: 'normal' })]
    assert.deepEqual(decide({ occupants: [own, taken], tenants }).paused, ['low2 for batch'])
  })
})

test('the room that a pause made belongs to the endpoint for which it was made', () => {
  const foreign = aTenant('third', { owner: OTHER, hasWork: true, sinceMs: NOW - 90_000 })
  const elsewhere = anOccupant('x1', 'batch', { placement: UNPLACED })
  const both = { occupants: [paused(1_000), elsewhere], tenants: [foreign, urgent()] }
  assert.deepEqual(decide(both).placed, ['chat: 0'])
  const started = anOccupant('c1', 'chat', { placement: UNPLACED, readyAtMs: NOW - 500 })
  assert.deepEqual(decide({ ...both, occupants: [...both.occupants, started] }).placed, ['third: 0'])
})

test('within an account the higher priority comes first, and between accounts it counts nothing', () => {
  const normal = aTenant('normal', { sinceMs: NOW - 60_000, hasWork: true })
  assert.deepEqual(decide({ tenants: [normal, urgent()] }).placed, ['chat: 0'])
  const foreign = urgent({ owner: OTHER })
  assert.deepEqual(decide({ tenants: [normal, foreign] }).placed, ['normal: 0'])
})

const IDS = ['a', 'b', 'c']
const WORKER = fc.record({
  endpoint: fc.constantFrom(...IDS),
  phase: fc.constantFrom('busy', 'busy', 'idle', 'starting', 'paused', 'leaving'),
  pausable: fc.boolean(),
})
const TENANT = fc.record({
  priority: fc.constantFrom(...PRIORITIES),
  owner: fc.constantFrom('owner' as OwnerId, OTHER),
  wanted: fc.nat(2),
  hasWork: fc.boolean(),
})

test('whatever waits, only busy workers that allow it are paused, below the priority of waiting work, up to the limit', () => {
  fc.assert(
    fc.property(
      fc.array(WORKER, { maxLength: 4 }),
      fc.array(TENANT, { minLength: 3, maxLength: 3 }),
      fc.nat(3),
      (workers, fields, maxPaused) => {
        const tenants = IDS.map((id, index) => aTenant(id, fields[index]))
        const tenantOf = (id: string) => tenants.find(tenant => tenant.id === id)!
        const occupants = workers.map(({ endpoint, phase, pausable }, index): Occupant => {
          const { owner, priority } = tenantOf(endpoint)
          const placement = given(index)
          const common = { owner, priority, placement, phase, pausableAtMs: pausable && phase === 'busy' ? 0 : null }
          const pause = phase === 'paused' ? { sinceMs: NOW - 1, for: 'a' as EndpointId } : null
          const asleep = { sleep: 'asleep', suspends: true } as const
          return anOccupant(`w${index}`, endpoint, { ...common, pause, ...(pause && asleep) })
        })
        const cards = aMachine(workers.map((_, index) => aGpu(index)))
        const input = placeInput({ parts: cards, occupants, tenants, pauseRules: { maxPaused } })
        const { pauses, placed: started, evictions } = placeWorkers(input)
        const paused = occupants.filter(({ phase }) => phase === 'paused').length
        assert.ok(pauses.length <= Math.max(0, maxPaused - paused))
        for (const { workerId, for: by } of pauses) {
          const worker = occupants.find(occupant => occupant.workerId === workerId)!
          const { priority, owner, hasWork } = tenantOf(by)
          assert.ok(worker.phase === 'busy' && worker.pausableAtMs === 0)
          assert.ok(outranks(priority, worker.priority) && worker.owner === owner && hasWork)
          assert.ok(!evictions.some(eviction => eviction.workerId === workerId))
        }
        const keys = [...occupants.filter(({ phase }) => phase !== 'paused'), ...started].flatMap(
          ({ placement }) => placement?.gpus.map(({ uuid }) => uuid) ?? [],
        )
        assert.equal(new Set(keys).size, keys.length, 'no card is given twice')
      },
    ),
    { seed: randomSeed, numRuns: 300 },
  )
})
