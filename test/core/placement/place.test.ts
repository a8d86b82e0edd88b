import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OwnerId, WorkerId } from '../../../src/core/ids.ts'
import { type CardRoom, foreignUseText } from '../../../src/core/placement/card-room.ts'
import { placeWorkers } from '../../../src/core/placement/place.ts'
import type { Tenant } from '../../../src/core/placement/placement-input.ts'
import { UNPLACED } from '../../../src/core/workers/placement.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import {
  aCard,
  anIdle,
  anOccupant,
  aTenant,
  cpus,
  given,
  gpus,
  placed,
  placeInput,
  shared,
} from '../../support/placing.ts'
import { NOW } from '../../support/snapshots.ts'

const L4 = 'NVIDIA L4'
const rtx = (count: number) => Array.from({ length: count }, (_, index) => aGpu(index))
const refusal = (situation: Parameters<typeof placed>[0]) => placed(situation).refused[0]

describe('GPUs', () => {
  test('a worker gets whole GPUs of a pool of its endpoint, and another worker gets others', () => {
    const parts = aMachine(rtx(3))
    const tenants = [aTenant('a', { compute: gpus({ count: 2 }) }), aTenant('b', { sinceMs: NOW + 1 })]
    assert.deepEqual(placed({ parts, tenants }).placed, ['a: 0,1', 'b: 2'])
    const [first] = placeWorkers(placeInput({ parts, tenants })).placed
    assert.deepEqual(first?.placement, given(0, 1))
  })

  test('the order of the pools is that of priority, and the next one stands in where one is full', () => {
    const parts = aMachine([aGpu(0, L4), aGpu(1), aGpu(2, L4)])
    const both = gpus({ pools: ['ADA_24', 'AMPERE_24'] })
    assert.deepEqual(placed({ parts, tenants: [aTenant('a', { compute: both, wanted: 3 })] }).placed, [
      'a: 1',
      'a: 0',
      'a: 2',
    ])
  })

  test('all GPUs of a worker are of one pool, and of one type where that is possible', () => {
    const parts = aMachine([aGpu(0, 'NVIDIA RTX A5000'), aGpu(1, L4), aGpu(2), aGpu(3, L4)])
    const two = (pools: string[]) => placed({ parts, tenants: [aTenant('a', { compute: gpus({ pools, count: 2 }) })] })
    assert.deepEqual(two(['AMPERE_24']).placed, ['a: 1,3'])
    assert.deepEqual(two(['ADA_24', 'AMPERE_24']).placed, ['a: 1,3'])
    const three = aTenant('a', { compute: gpus({ pools: ['AMPERE_24'], count: 3 }) })
    assert.deepEqual(placed({ parts, tenants: [three] }).placed, ['a: 0,1,3'])
  })

  test('a small demand leaves the larger group of a type whole', () => {
    const parts = aMachine([aGpu(0, L4), aGpu(1, L4), aGpu(2, 'NVIDIA RTX A5000')])
    assert.deepEqual(placed({ parts, tenants: [aTenant('a', { compute: gpus({ pools: ['AMPERE_24'] }) })] }).placed, [
      'a: 2',
    ])
  })

  test('excluded types are not given', () => {
    const parts = aMachine([aGpu(0, L4), aGpu(1, 'NVIDIA RTX A5000')])
    const compute = gpus({ pools: ['AMPERE_24'], excludedTypes: [L4] })
    assert.deepEqual(placed({ parts, tenants: [aTenant('a', { compute })] }).placed, ['a: 1'])
    assert.equal(
      refusal({ parts: aMachine([aGpu(0, L4)]), tenants: [aTenant('a', { compute })] }),
      'a gpu_type: there is no GPU of pool AMPERE_24 without the types NVIDIA L4: this machine has 1 x NVIDIA L4 (pool AMPERE_24)',
    )
  })

  test('a minimum CUDA version and a list of versions apply to cards whose driver reports its own', () => {
    const parts = aMachine([aGpu(0, L4, { cuda: '12.2' })])
    const wants = (fields: object) => ({
      parts,
      tenants: [aTenant('a', { compute: gpus({ pools: ['AMPERE_24'], ...fields }) })],
    })
    assert.deepEqual(placed(wants({ minCudaVersion: '12.2' })).placed, ['a: 0'])
    assert.deepEqual(placed(wants({ allowedCudaVersions: ['11.8', '12.2'] })).placed, ['a: 0'])
    assert.equal(
      refusal(wants({ minCudaVersion: '12.4' })),
      'a cuda: the GPUs of type NVIDIA L4 have CUDA 12.2, at least 12.4 is wanted',
    )
    assert.equal(
      refusal(wants({ allowedCudaVersions: ['12.0', '12.1'] })),
      'a cuda: the GPUs of type NVIDIA L4 have CUDA 12.2, one of 12.0, 12.1 is wanted',
    )
    const silent = aMachine([aGpu(0, L4, { cuda: null })])
    assert.deepEqual(placed({ ...wants({ minCudaVersion: '12.4' }), parts: silent }).placed, ['a: 0'])
  })

  test('parts of a card are GPUs for workers with one, and not to be put together', () => {
    const mig = (index: number, n: number) =>
      aGpu(index, `NVIDIA A100-SXM4-80GB MIG 3g.40gb`, { mig: '3g.40gb', uuid: `MIG-${n}`, memoryGb: 40 })
    const parts = aMachine([mig(0, 1), mig(0, 2)])
    const compute = gpus({ pools: ['ADA_32_PRO'] })
    const tenants = [aTenant('a', { compute, wanted: 2 })]
    const uuids = placeWorkers(placeInput({ parts, tenants })).placed.map(({ placement }) => placement.gpus[0]?.uuid)
    assert.deepEqual(uuids, ['MIG-1', 'MIG-2'])
    assert.match(
      refusal({ parts, tenants: [aTenant('a', { compute: { ...compute, count: 2 } })] }) ?? '',
      /^a gpu_count: no machine has 2 GPUs of pool ADA_32_PRO: .*; parts of a card cannot be used together$/,
    )
  })

  test('an unhealthy card is not given, and is reported where there is no other', () => {
    const sick = aGpu(0, undefined, { problem: 'its memory has failed' })
    assert.deepEqual(placed({ parts: aMachine([sick, aGpu(1)]), tenants: [aTenant('a')] }).placed, ['a: 1'])
    assert.equal(
      refusal({ parts: aMachine([sick]), tenants: [aTenant('a')] }),
      'a gpu_type: GPU 0 (NVIDIA GeForce RTX 4090) cannot be used: its memory has failed',
    )
  })

  test('a worker keeps its GPU when cards are renumbered, since its id identifies the card', () => {
    const parts = aMachine([aGpu(0, undefined, { uuid: 'GPU-1' }), aGpu(1, undefined, { uuid: 'GPU-7' })])
    const occupants = [anOccupant('w', 'b', { placement: given(1) })]
    assert.deepEqual(placed({ parts, occupants, tenants: [aTenant('a')] }).placed, ['a: 1'])
  })

  test('no worker gets a GPU while a worker of an older version may use any', () => {
    const occupants = [anOccupant('old', 'b', { placement: null })]
    const { placed: none, refused } = placed({ parts: aMachine(rtx(2)), occupants, tenants: [aTenant('a')] })
    assert.deepEqual(none, [])
    assert.match(refused[0] ?? '', /^a gpu: worker old was started by an older version and may use any GPU/)
  })
})

describe('reasons', () => {
  test('a GPU that others have: how many, and which endpoints have them', () => {
    const parts = aMachine([aGpu(0), aGpu(1, L4)])
    const l4 = { ...given(1), pool: 'AMPERE_24' }
    const occupants = [anOccupant('w1', 'chat', { placement: given(0) }), anOccupant('w2', 'images', { placement: l4 })]
    const compute = gpus({ pools: ['ADA_24', 'AMPERE_24'] })
    assert.equal(
      refusal({ parts, occupants, tenants: [aTenant('a', { compute }), aTenant('chat', { wanted: 0 })] }),
      'a gpu: no free GPU of pools ADA_24, AMPERE_24: 2 of 2 in use by endpoints chat, images',
    )
  })

  test('the endpoints of other accounts are not named', () => {
    const owner = 'somebody else' as OwnerId
    const occupants = [anOccupant('w1', 'secret', { owner, placement: given(0) })]
    assert.equal(
      refusal({ parts: aMachine(rtx(1)), occupants, tenants: [aTenant('a')] }),
      'a gpu: no free GPU of pool ADA_24: 1 of 1 in use by other accounts',
    )
  })

  test('more GPUs than any machine has, and pools that it does not have', () => {
    const parts = aMachine(rtx(2))
    assert.equal(
      refusal({ parts, tenants: [aTenant('a', { compute: gpus({ count: 8 }) })] }),
      'a gpu_count: no machine has 8 GPUs of pool ADA_24: this machine has 2 x NVIDIA GeForce RTX 4090 (pool ADA_24)',
    )
    assert.equal(
      refusal({ parts, tenants: [aTenant('a', { compute: gpus({ pools: ['HOPPER_141'] }) })] }),
      'a gpu_type: there is no GPU of pool HOPPER_141: this machine has 2 x NVIDIA GeForce RTX 4090 (pool ADA_24)',
    )
  })

  test('the limit of workers, in the words of the driver', () => {
    assert.equal(
      refusal({ freeWorkers: 0, tenants: [aTenant('a', { compute: cpus(2) })] }),
      'a workers: the limit of the test',
    )
  })
})

describe('without a GPU', () => {
  test('an installation that has never had one runs workers of GPU endpoints on the CPU', () => {
    const decision = placeWorkers(placeInput({ tenants: [aTenant('a', { compute: gpus({ count: 4 }) })] }))
    assert.deepEqual(decision.placed[0]?.placement, UNPLACED)
  })

  test('they wait where a GPU is required, and where there was one that cannot be read now', () => {
    const tenants = [aTenant('a')]
    assert.equal(
      refusal({ tenants, rules: { requireGpu: true } }),
      'a gpu_type: there is no GPU of pool ADA_24: this machine has no GPU',
    )
    const gone = aMachine([], { hadGpus: true, problem: 'nvidia-smi ended with code 9' })
    assert.equal(
      refusal({ tenants, parts: gone }),
      'a gpu_type: there is no GPU of pool ADA_24: this machine has no GPU (nvidia-smi ended with code 9)',
    )
  })
})

describe('CPUs', () => {
  const rules = { cpuOvercommit: 1, memoryOvercommit: 1 }
  const has = (vcpus: number, memoryMb: number) => ({ ...UNPLACED, vcpus, memoryMb })

  test('a worker gets the vCPUs and the memory of its flavor as limits', () => {
    const [first] = placeWorkers(placeInput({ tenants: [aTenant('a', { compute: cpus(4) })] })).placed
    assert.deepEqual(first?.placement, { ...UNPLACED, vcpus: 4, memoryMb: 8_192, flavor: 'cpu3c' })
    assert.equal(first?.clamped, null)
  })

  test('configurations stand in for each other in their order', () => {
    const occupants = [anOccupant('w', 'b', { placement: has(4, 4_096) })]
    assert.deepEqual(placed({ occupants, rules, tenants: [aTenant('a', { compute: cpus(8, 4, 2) })] }).placed, [
      'a: 4 vCPUs',
    ])
  })

  test('a demand above the whole machine is reduced to it, and reported', () => {
    const [first] = placeWorkers(placeInput({ rules, tenants: [aTenant('a', { compute: cpus(32) })] })).placed
    assert.deepEqual([first?.placement.vcpus, first?.placement.memoryMb], [8, 32_768])
    assert.equal(
      first?.clamped,
      '32 vCPUs and 64 GB are asked for (cpu3c), and the whole machine has less; the worker gets 8 vCPUs and 32 GB',
    )
  })

  test('containers are promised no more than the machine has, times what may be promised', () => {
    const occupants = [anOccupant('w', 'b', { placement: has(7, 7_168) })]
    const tenants = [aTenant('a', { compute: cpus(2), wanted: 12 })]
    assert.equal(
      refusal({ occupants, rules, tenants }),
      'a cpu: 2 vCPUs are wanted, and 7 of the 8 that may be promised are taken by endpoint b',
    )
    const { placed: four } = placed({ occupants, rules: { ...rules, cpuOvercommit: 2 }, tenants })
    assert.equal(four.length, 4)
    const full = [anOccupant('w', 'b', { placement: has(1, 31 * 1024) })]
    assert.equal(
      refusal({ occupants: full, rules, tenants }),
      'a memory: 4 GB of memory are wanted, and 31 GB of the 32 GB that may be promised are taken by endpoint b',
    )
  })

  test('processes are not held to limits, so they start beside each other and count for containers', () => {
    const tenants = [aTenant('a', { compute: cpus(8), limited: false, wanted: 3 })]
    assert.equal(placed({ rules, tenants }).placed.length, 3)
    const occupants = [anOccupant('w', 'b', { placement: has(8, 16_384) })]
    assert.equal(placed({ rules, occupants, tenants: [aTenant('a', { compute: cpus(2) })] }).placed.length, 0)
  })
})

describe('turns', () => {
  const one = aMachine(rtx(1))
  const both = (a: object, b: object) => [aTenant('a', a), aTenant('b', b)]

  test('workers below the min of their endpoint come first', () => {
    const tenants = both({ sinceMs: NOW - 60_000 }, { workersMin: 1 })
    assert.deepEqual(placed({ parts: one, tenants }).placed, ['b: 0'])
  })

  test('then the endpoint with the smallest part of what it wants, and then the one that waits longest', () => {
    const occupants = [anOccupant('w', 'a', { placement: given(0) })]
    const parts = aMachine(rtx(2))
    assert.deepEqual(placed({ parts, occupants, tenants: both({ sinceMs: NOW - 9 }, {}) }).placed, ['b: 1'])
    assert.deepEqual(placed({ parts: one, tenants: both({}, { sinceMs: NOW - 1 }) }).placed, ['b: 0'])
    assert.deepEqual(placed({ parts, tenants: both({ wanted: 5 }, { wanted: 2 }) }).placed, ['a: 0', 'b: 1'])
  })
})

describe('making room', () => {
  const one = aMachine(rtx(1))
  const waits = (waitedMs = 0, fields = {}) => [
    aTenant('a', { sinceMs: NOW - waitedMs, ...fields }),
    aTenant('b', { wanted: 0 }),
  ]
  const idle = (readyMs: number, fields = {}) => [
    anIdle('w', 'b', { placement: given(0), readyAtMs: NOW - readyMs, ...fields }),
  ]

  test('a frozen worker makes room at once, the one frozen longest first and those with priority last', () => {
    const frozen = (id: string, index: number, forMs: number, hasPriority = false) =>
      anOccupant(id, 'b', {
        phase: 'frozen',
        placement: given(index),
        readyAtMs: NOW - 100_000,
        frozen: { sinceMs: NOW - forMs, hasPriority },
      })
    const parts = aMachine(rtx(3))
    const all = [frozen('w1', 0, 9_000, true), frozen('w2', 1, 1), frozen('w3', 2, 5_000)]
    const first = placed({ parts, occupants: all, tenants: waits() })
    assert.deepEqual(first.evicted, ['w3 for a'])
    assert.match(first.refused[0] ?? '', /3 of 3 in use by endpoint b \(frozen, with their memory still on the card\)/)
    assert.deepEqual(
      placed({ parts, occupants: all, tenants: waits(0, { wanted: 1, compute: gpus({ count: 3 }) }) }).evicted,
      ['w3 for a', 'w2 for a', 'w1 for a'],
    )
    const [busy] = placed({ parts: one, occupants: [frozen('w1', 0, 9_000, true)], tenants: waits() }).evicted
    assert.equal(busy, 'w1 for a')
  })

  test('a worker that is wanted for no work takes free room only, after all others', () => {
    const parts = aMachine(rtx(2))
    const spare = aTenant('s', { isSpare: true, sinceMs: NOW - 90_000 })
    assert.deepEqual(placed({ parts, tenants: [spare, aTenant('a', {})] }).placed, ['a: 0', 's: 1'])
    const found = placed({ parts: one, occupants: idle(90_000), tenants: [spare, aTenant('b', { wanted: 0 })] })
    assert.deepEqual([found.placed, found.evicted, found.refused], [[], [], []])
  })

  test('an idle worker that has had its time makes room, and is asked once', () => {
    const first = placed({ parts: one, occupants: idle(30_000), tenants: waits() })
    assert.deepEqual(first.evicted, ['w for a'])
    assert.match(first.refused[0] ?? '', /in use by endpoint b; it gets the room of a worker that is ending$/)
    const leaving = idle(30_000, { phase: 'leaving' })
    assert.deepEqual(placed({ parts: one, occupants: leaving, tenants: waits() }).evicted, [])
  })

  test('one that is not ready for long stays, and is looked at again when its time is over', () => {
    const early = placed({ parts: one, occupants: idle(29_000), tenants: waits() })
    assert.deepEqual([early.evicted, early.wakeInMs], [[], 1_000])
    assert.deepEqual(
      placed({ parts: one, occupants: idle(2_000), tenants: waits(), rules: { dwellMs: 2_000 } }).evicted,
      ['w for a'],
    )
  })

  test('one that its endpoint keeps by its min stays, and one that is about to take a job', () => {
    const tenants = (fields: object) => [aTenant('a'), aTenant('b', { wanted: 0, ...fields })]
    const situation = { parts: one, occupants: idle(60_000) }
    assert.deepEqual(placed({ ...situation, tenants: tenants({ workersMin: 1 }) }).evicted, [])
    assert.deepEqual(placed({ ...situation, tenants: tenants({ hasWork: true }) }).evicted, [])
  })

  test('a busy one stays', () => {
    const occupants = [anOccupant('w', 'b', { placement: given(0) })]
    assert.deepEqual(placed({ parts: one, occupants, tenants: waits(299_000) }).evicted, [])
  })

  test('where an endpoint has waited for ten dwells without any worker, a busy one ends after its job', () => {
    const occupants = [anOccupant('w', 'b', { placement: given(0) })]
    const long = placed({ parts: one, occupants, tenants: waits(300_000) })
    assert.deepEqual(long.evicted, ['w for a after its job'])
    assert.match(long.refused[0] ?? '', /it gets the room of a worker that ends after its job$/)
    const kept = [aTenant('a', { sinceMs: NOW - 900_000 }), aTenant('b', { wanted: 0, workersMin: 1 })]
    assert.deepEqual(placed({ parts: one, occupants, tenants: kept }).evicted, [])
  })

  test('no more make room than is needed, and only those that have what is needed', () => {
    const parts = aMachine([...rtx(3), aGpu(3, L4)])
    const occupants = [
      anIdle('l4', 'b', { placement: { ...given(3), pool: 'AMPERE_24' }, idleSinceMs: NOW - 9_000 }),
      anIdle('w0', 'b', { placement: given(0), idleSinceMs: NOW - 8_000 }),
      anIdle('w12', 'b', { placement: given(1, 2), idleSinceMs: NOW - 7_000 }),
    ]
    const wants = (count: number) => waits(0, { compute: gpus({ count }) })
    assert.deepEqual(placed({ parts, occupants, tenants: wants(1) }).evicted, ['w0 for a'])
    assert.deepEqual(placed({ parts, occupants, tenants: wants(2) }).evicted, ['w12 for a'])
    assert.deepEqual(placed({ parts, occupants, tenants: wants(3) }).evicted, ['w0 for a', 'w12 for a'])
  })

  test('room for a worker as such is made, too, and room in memory', () => {
    const compute = cpus(2)
    const occupants = [anIdle('w', 'b', { placement: { ...UNPLACED, vcpus: 2, memoryMb: 30 * 1024 } })]
    assert.deepEqual(placed({ freeWorkers: 0, occupants, tenants: waits(0, { compute }) }).evicted, ['w for a'])
    const rules = { memoryOvercommit: 1 }
    assert.deepEqual(placed({ rules, occupants, tenants: waits(0, { compute }) }).evicted, ['w for a'])
  })

  test('two waiting endpoints get two places, and the second does not count on that of the first', () => {
    const occupants = [anIdle('w0', 'b', { placement: given(0) }), anIdle('w1', 'b', { placement: given(1) })]
    const tenants = [aTenant('a', { sinceMs: NOW - 1 }), aTenant('c'), aTenant('b', { wanted: 0 })]
    assert.deepEqual(placed({ parts: aMachine(rtx(2)), occupants, tenants }).evicted, ['w0 for a', 'w1 for c'])
  })

  test('an endpoint that needs several GPUs and has waited reserves the free ones, so that small demands do not overtake it forever', () => {
    const occupants = [anOccupant('w', 'b', { placement: given(0) })]
    const tenants = (waitedMs: number, workersMin = 0) => [
      aTenant('a', { sinceMs: NOW - waitedMs, compute: gpus({ count: 2 }) }),
      aTenant('b', { wanted: 0, workersMin }),
      aTenant('c'),
    ]
    const parts = aMachine(rtx(2))
    assert.deepEqual(placed({ parts, occupants, tenants: tenants(29_999) }).placed, ['c: 1'])
    const later = placed({ parts, occupants, tenants: tenants(30_000) })
    assert.deepEqual(later.placed, [])
    assert.match(
      later.refused[1] ?? '',
      /^c gpu: no free GPU of pool ADA_24: 1 of 2 in use by endpoint b, 1 of 2 kept for endpoint a$/,
    )
    assert.deepEqual(placed({ parts, occupants, tenants: tenants(30_000, 1) }).placed, ['c: 1'], 'it waits in vain')
  })
})

describe('accounts', () => {
  const parts = aMachine()
  const B = 'other' as OwnerId
  const cpu = { compute: cpus(1) }
  const one = { workers: 2, gpus: null }

  test('an account gets no more workers than its limit, with the reason, and others are served', () => {
    const occupants = [anOccupant('w1', 'a'), anOccupant('w2', 'a', { phase: 'leaving' })]
    const tenants = [aTenant('a', { ...cpu, wanted: 3 }), aTenant('b', { ...cpu, owner: B, wanted: 1 })]
    const quotas = new Map([['owner' as OwnerId, one]])
    const decision = placed({ parts, occupants, tenants, quotas })
    assert.deepEqual(decision.placed, ['b: 1 vCPUs'])
    assert.deepEqual(decision.refused, [
      'a account_workers: the limit of 2 workers that its account may have at once is reached; it gets the room of a worker that is ending',
    ])
  })

  test('GPUs of an account are bounded apart', () => {
    const machine = aMachine(rtx(4))
    const quotas = new Map([['owner' as OwnerId, { workers: null, gpus: 2 }]])
    const decision = placed({ parts: machine, tenants: [aTenant('a', { wanted: 4 })], quotas })
    assert.deepEqual(decision.placed, ['a: 0', 'a: 1'])
    assert.deepEqual(decision.refused, [
      'a account_gpus: the limit of 2 GPUs that its account may have at once is reached',
    ])
  })

  test('an idle worker of another endpoint of the account makes room within its limit, and no worker of other accounts does', () => {
    const occupants = [anIdle('w0', 'c', { owner: B }), anIdle('w1', 'b'), anOccupant('w2', 'b')]
    const tenants = [
      aTenant('a', { ...cpu, hasWork: true }),
      aTenant('b', { ...cpu, wanted: 0 }),
      aTenant('c', { ...cpu, owner: B, wanted: 0 }),
    ]
    const quotas = new Map([['owner' as OwnerId, one]])
    assert.deepEqual(placed({ parts, occupants, tenants, quotas }).evicted, ['w1 for a'])
  })

  test('of two accounts the one with fewer workers comes first, also before workersMin of the other', () => {
    const greedy = aTenant('a', { ...cpu, workersMin: 64, wanted: 64, sinceMs: NOW - 1 })
    const modest = aTenant('b', { ...cpu, owner: B, wanted: 2, hasWork: true })
    const decision = placed({ parts, tenants: [greedy, modest], freeWorkers: 4 })
    assert.deepEqual([...decision.placed].sort(), ['a: 1 vCPUs', 'a: 1 vCPUs', 'b: 1 vCPUs', 'b: 1 vCPUs'])
  })

  test('workers that an account keeps idle by workersMin make room for work of an account with fewer, and for no mere minimum', () => {
    const occupants = ['w1', 'w2', 'w3'].map(id => anIdle(id, 'a'))
    const keeper = aTenant('a', { ...cpu, workersMin: 3, wanted: 0 })
    const evicted = (fields: object) =>
      placed({
        parts,
        occupants,
        freeWorkers: 0,
        tenants: [keeper, aTenant('b', { ...cpu, owner: B, ...fields })],
      }).evicted
    assert.deepEqual(evicted({ hasWork: true }), ['w1 for b'])
    assert.deepEqual(evicted({ workersMin: 1 }), [])
    assert.deepEqual(
      placed({
        parts,
        occupants,
        freeWorkers: 0,
        tenants: [keeper, aTenant('b', { ...cpu, hasWork: true })],
      }).evicted,
      [],
      'its own account keeps them',
    )
  })
})

describe('sleeping workers', () => {
  const one = { parts: aMachine(rtx(1)) }
  const asleep = (id: string, endpoint: string, fields = {}) =>
    anOccupant(id, endpoint, {
      placement: given(0),
      phase: 'frozen',
      frozen: { sinceMs: NOW - 1_000, hasPriority: false },
      sleep: 'asleep',
      ...fields,
    })
  const wakes = (id: string, ...cards: number[]) => [
    { workerId: id as WorkerId, placement: given(...cards), memoryMb: null },
  ]
  const able = (id: string, endpoint: string, fields = {}) =>
    anIdle(id, endpoint, { placement: given(0), sleep: 'able', ...fields })

  test('the card of one is free for others of its account, and a free card is chosen first', () => {
    const occupants = [asleep('x', 'a')]
    assert.deepEqual(placed({ ...one, occupants, tenants: [aTenant('b')] }).placed, ['b: 0'])
    assert.deepEqual(placed({ parts: aMachine(rtx(2)), occupants, tenants: [aTenant('b')] }).placed, ['b: 1'])
  })

  test('for another account it has to end first: whether it has given all memory back is only what it says', () => {
    const tenants = [aTenant('a', { wanted: 0 }), aTenant('b', { owner: 'other' as OwnerId })]
    const found = placed({ ...one, occupants: [asleep('x', 'a')], tenants })
    assert.deepEqual([found.placed, found.evicted], [[], ['x for b']])
  })

  test('one wakes on its own card only', () => {
    const parts = aMachine(rtx(2))
    const tenants = [aTenant('a', { wanted: 0, wakes: wakes('x', 0) })]
    assert.deepEqual(placed({ parts, occupants: [asleep('x', 'a')], tenants }).woken, ['x'])
    const taken = [asleep('x', 'a'), asleep('y', 'b')]
    const both = [...tenants, aTenant('b', { wanted: 0, wakes: wakes('y', 0), sinceMs: NOW - 1 })]
    const found = placed({ ...one, occupants: taken, tenants: both })
    assert.deepEqual([found.woken, found.unwoken], [['y'], ['x: its GPU 0 is in use by endpoint b']])
  })

  test('an idle worker that can sleep does so for one of its account once it has stayed its minimum time, and ends for another account', () => {
    const tenants = (fields = {}) => [aTenant('a', { wanted: 0 }), aTenant('b', fields)]
    assert.deepEqual(placed({ ...one, occupants: [able('x', 'a')], tenants: tenants() }).evicted, ['x sleeps for b'])
    const young = [able('x', 'a', { readyAtMs: NOW - 10_000 })]
    assert.deepEqual(placed({ ...one, occupants: young, tenants: tenants() }).evicted, [])
    const owner = 'other' as OwnerId
    assert.deepEqual(placed({ ...one, occupants: [able('x', 'a')], tenants: tenants({ owner }) }).evicted, ['x for b'])
  })

  test('one that falls asleep is waited for, and no other worker makes room in the meantime', () => {
    const falling = able('x', 'a', { phase: 'frozen', frozen: { sinceMs: NOW, hasPriority: false }, sleep: 'falling' })
    const occupants = [falling, asleep('y', 'b'), anIdle('z', 'c', { placement: given(1) })]
    const tenants = [
      aTenant('a', { wanted: 0 }),
      aTenant('b', { wanted: 0, wakes: wakes('y', 0) }),
      aTenant('c', { wanted: 0 }),
    ]
    const found = placed({ parts: aMachine(rtx(2)), occupants, tenants })
    assert.deepEqual([found.woken, found.evicted], [[], []])
    assert.match(
      found.unwoken[0]!,
      /its GPU 0 is in use by endpoint a; it gets the card of a worker that goes to sleep/,
    )
  })

  test('one whose card is busy ends if a new worker has room on another card, and waits otherwise', () => {
    const occupants = [asleep('x', 'a'), anOccupant('y', 'b', { placement: given(0) })]
    const tenants = [aTenant('a', { wanted: 0, wakes: wakes('x', 0) }), aTenant('b', { wanted: 0 })]
    const there = placed({ parts: aMachine(rtx(2)), occupants, tenants })
    assert.deepEqual([there.woken, there.evicted], [[], ['x for a']])
    assert.deepEqual(placed({ ...one, occupants, tenants }).evicted, [])
  })

  test('one whose card has failed ends', () => {
    const parts = aMachine([aGpu(0, undefined, { problem: 'it fell off the bus' })])
    const tenants = [aTenant('a', { wanted: 0, wakes: wakes('x', 0) })]
    const found = placed({ parts, occupants: [asleep('x', 'a')], tenants })
    assert.deepEqual(found.evicted, ['x for a'])
    assert.match(
      found.unwoken[0]!,
      /GPU 0 \(.*\) cannot be used: it fell off the bus; it ends, and a new worker starts/,
    )
  })

  test('the limit of GPUs of an account counts those that wake', () => {
    const parts = aMachine(rtx(2))
    const occupants = [asleep('x', 'a'), anOccupant('y', 'b', { placement: given(1) })]
    const tenants = [aTenant('a', { wanted: 0, wakes: wakes('x', 0) }), aTenant('b', { wanted: 0 })]
    const quotas = new Map([['owner' as OwnerId, { workers: 2, gpus: 1 }]])
    const found = placed({ parts, occupants, tenants, quotas })
    assert.deepEqual(found.woken, [])
    assert.match(found.unwoken[0]!, /the limit of 1 GPUs/)
  })
})

describe('suspended workers', () => {
  const one = { parts: aMachine(rtx(1)) }
  const frozen = { phase: 'frozen', frozen: { sinceMs: NOW - 1_000, hasPriority: false } } as const
  const suspended = (id: string, endpoint: string) =>
    anOccupant(id, endpoint, { placement: given(0), ...frozen, sleep: 'asleep', suspends: true })
  const wake = (id: string, memoryMb: number) => [{ workerId: id as WorkerId, placement: given(0), memoryMb }]
  const owner = 'other' as OwnerId

  test('the card of one is free for every account, and the worker stays', () => {
    const tenants = [aTenant('a', { wanted: 0 }), aTenant('b', { owner })]
    const { placed: there, evicted } = placed({ ...one, occupants: [suspended('x', 'a')], tenants })
    assert.deepEqual([there, evicted], [['b: 0'], []])
  })

  test('an idle worker that can be suspended makes room for another account without an end', () => {
    const able = anIdle('x', 'a', { placement: given(0), sleep: 'able', suspends: true })
    const tenants = [aTenant('a', { wanted: 0 }), aTenant('b', { owner })]
    assert.deepEqual(placed({ ...one, occupants: [able], tenants }).evicted, ['x sleeps for b'])
  })

  test('one that is being suspended is waited for by every account', () => {
    const falling = anOccupant('x', 'a', { placement: given(0), ...frozen, sleep: 'falling', suspends: true })
    const tenants = [aTenant('a', { wanted: 0 }), aTenant('b', { owner })]
    const { evicted, refused } = placed({ ...one, occupants: [falling], tenants })
    assert.deepEqual(evicted, [])
    assert.match(refused[0]!, /it gets the card of a worker that goes to sleep/)
  })

  test('one resumes only where its memory is really free, and waits with the figures', () => {
    const tenants = [aTenant('a', { wanted: 0, wakes: wake('x', 20_480) })]
    const resumed = (freeMb: number, programs: CardRoom['programs'] = []) =>
      placed({
        ...one,
        occupants: [suspended('x', 'a')],
        tenants,
        cards: aCard({ freeMb, foreignMb: 24_576 - freeMb, programs }),
      })
    assert.deepEqual(resumed(20_480).woken, ['x'])
    assert.deepEqual(resumed(20_479).woken, [])
    const { woken, unwoken } = resumed(20_000, [{ pid: 812, name: 'blender', memoryMb: 4_576 }])
    assert.deepEqual(woken, [])
    assert.deepEqual(unwoken, [
      'x: it needs 20 GB of its GPU 0, and 19.5 GB are free: 4.5 GB of card 0 are used by other programs',
    ])
  })

  test('room that a worker leaves counts as free for the one that resumes', () => {
    const idle = anIdle('y', 'b', { placement: given(0) })
    const tenants = [aTenant('a', { wanted: 0, wakes: wake('x', 20_480) }), aTenant('b', { wanted: 0 })]
    const cards = aCard({ freeMb: 2_000, foreignMb: 0 })
    const { evicted, unwoken } = placed({ ...one, occupants: [suspended('x', 'a'), idle], tenants, cards })
    assert.deepEqual(evicted, ['y for a'])
    assert.match(unwoken[0]!, /its GPU 0 is in use by endpoint b; it gets the room of a worker that is ending/)
  })
})

describe('shares of a card', () => {
  const one = { parts: aMachine(rtx(1)) }
  const share = (gb: number, fields = {}) => ({ compute: gpus({ memoryGb: gb, ...fields }) })
  const sharing = (id: string, endpoint: string, gb: number, fields = {}) =>
    anOccupant(id, endpoint, { placement: shared(gb), ...fields })

  test('a worker gets a share beside others, and the card is never promised twice', () => {
    const occupants = [sharing('x', 'a', 8), sharing('y', 'b', 8)]
    const tenants = (gb: number) => [aTenant('c', share(gb)), ...['a', 'b'].map(id => aTenant(id, { wanted: 0 }))]
    const { placed: placements } = placeWorkers(placeInput({ ...one, occupants, tenants: tenants(6) }))
    assert.deepEqual(placements[0]?.placement, shared(6))
    assert.deepEqual(placed({ ...one, occupants, tenants: tenants(7.5) }).placed, ['c: 0'], '0.5 GB stay free')
    assert.deepEqual(placed({ ...one, occupants, tenants: tenants(8) }), {
      placed: [],
      evicted: [],
      paused: [],
      stranded: [],
      woken: [],
      unwoken: [],
      wakeInMs: 30_000,
      refused: ['c gpu: no GPU of pool ADA_24 has 8 GB left: 7.5 GB of card 0 are left beside endpoints a, b'],
    })
  })

  test('a whole card and shares exclude each other', () => {
    const whole = [anOccupant('x', 'a', { placement: given(0) })]
    assert.deepEqual(placed({ ...one, occupants: whole, tenants: [aTenant('b', share(1))] }).placed, [])
    assert.deepEqual(placed({ ...one, occupants: [sharing('x', 'a', 1)], tenants: [aTenant('b')] }).placed, [])
  })

  test('the fullest card that has room is chosen, so that whole cards stay free', () => {
    const parts = aMachine(rtx(2))
    const onSecond = { ...given(1), gpus: given(1).gpus.map(gpu => ({ ...gpu, shareMb: 4_096 })) }
    const occupants = [anOccupant('x', 'a', { placement: onSecond })]
    assert.deepEqual(placed({ parts, occupants, tenants: [aTenant('b', share(8))] }).placed, ['b: 1'])
    assert.deepEqual(placed({ parts, occupants, tenants: [aTenant('b', share(20))] }).placed, ['b: 0'])
  })

  test('other programs take from what is shared, and memory that is not free now is not given', () => {
    const tenants = [aTenant('c', share(8))]
    const occupants = [sharing('x', 'a', 8)]
    const fits = (fields: Partial<CardRoom>) => placed({ ...one, occupants, tenants, cards: aCard(fields) }).placed
    assert.deepEqual(fits({ foreignMb: 7.5 * 1024 }), ['c: 0'])
    assert.deepEqual(fits({ foreignMb: 7.5 * 1024 + 1 }), [])
    assert.deepEqual(fits({ freeMb: 8_191 }), [], 'the neighbor uses more than its share')
    const { refused } = placed({
      ...one,
      occupants,
      tenants,
      cards: aCard({ foreignMb: 9_000, freeMb: 15_000, programs: [{ pid: 812, name: 'blender', memoryMb: 9_000 }] }),
    })
    assert.match(
      refused[0]!,
      /6\.7 GB of card 0 are left beside endpoint a \(8\.8 GB of card 0 are used by other programs\)$/,
    )
  })

  test('workers start one after another on a card: the next one when the first is ready, or after a minute', () => {
    const starting = (ago: number) =>
      sharing('x', 'a', 8, { phase: 'starting', readyAtMs: null, startingSinceMs: NOW - ago })
    const tenants = [aTenant('b', share(8)), aTenant('a', { wanted: 0 })]
    const during = placed({ ...one, occupants: [starting(10_000)], tenants })
    assert.deepEqual([during.placed, during.evicted], [[], []])
    assert.match(
      during.refused[0]!,
      /^b gpu: another worker starts on GPU 0; the next one follows when that is ready, or after 60 s$/,
    )
    assert.deepEqual(placed({ ...one, occupants: [starting(60_000)], tenants }).placed, ['b: 0'])
    assert.deepEqual(placed({ ...one, occupants: [sharing('x', 'a', 8)], tenants }).placed, ['b: 0'])
    const both = [aTenant('b', share(8)), aTenant('c', { ...share(8), sinceMs: NOW + 1 })]
    assert.deepEqual(placed({ ...one, tenants: both }).placed, ['b: 0'], 'one of two that want to start at once')
    assert.deepEqual(placed({ parts: aMachine(rtx(2)), tenants: both }).placed, ['b: 0', 'c: 1'])
  })

  test('an idle neighbor makes room if its share helps, and no more of them than needed', () => {
    const idle = (id: string, endpoint: string, gb: number) => anIdle(id, endpoint, { placement: shared(gb) })
    const occupants = [idle('x', 'a', 8), idle('y', 'b', 8), idle('z', 'd', 6)]
    const tenants = [aTenant('c', share(7)), ...['a', 'b', 'd'].map(id => aTenant(id, { wanted: 0 }))]
    assert.deepEqual(placed({ ...one, occupants, tenants }).evicted, ['x for c'])
  })

  test('a share that no card can give is refused for good', () => {
    const { refused } = placed({ ...one, tenants: [aTenant('a', share(24))] })
    assert.match(
      refused[0]!,
      /^a gpu_type: a share of 24 GB is larger than the 23\.5 GB of a GPU of pool ADA_24 that workers may share/,
    )
  })

  test('a share counts as its part of a card for the limit of an account', () => {
    const parts = aMachine(rtx(2))
    const quotas = new Map([['owner' as OwnerId, { workers: null, gpus: 1 }]])
    const occupants = [sharing('x', 'a', 12)]
    const fits = (tenant: Tenant) => placed({ parts, occupants, quotas, tenants: [tenant] })
    assert.deepEqual(fits(aTenant('b', share(11))).placed, ['b: 0'])
    assert.match(fits(aTenant('b', share(13))).refused[0]!, /account_gpus: the limit of 1 GPUs/)
    assert.match(fits(aTenant('b')).refused[0]!, /account_gpus/)
  })

  test('a suspended worker with a share resumes where its share and its memory are free', () => {
    const frozen = { phase: 'frozen', frozen: { sinceMs: NOW - 1_000, hasPriority: false } } as const
    const suspended = sharing('x', 'a', 8, { ...frozen, sleep: 'asleep', suspends: true })
    const wakes = [{ workerId: 'x' as WorkerId, placement: shared(8), memoryMb: 6_144 }]
    const resumed = (...gb: number[]) => {
      const others = gb.map((size, index) => sharing(`o${index}`, 'b', size))
      return placed({
        ...one,
        occupants: [suspended, ...others],
        tenants: [aTenant('a', { wanted: 0, wakes })],
        cards: aCard({ freeMb: 6_144 }),
      }).woken
    }
    assert.deepEqual([resumed(), resumed(8, 7), resumed(8, 8)], [['x'], ['x'], []])
  })

  test('a platform gives whole cards', () => {
    const tenant = aTenant('a', { ...share(8), placedBy: 'platform' })
    assert.deepEqual(placeWorkers(placeInput({ tenants: [tenant] })).placed[0]?.placement.asked?.gpus, 1)
  })
})

describe('programs of others on a card', () => {
  const one = { parts: aMachine(rtx(1)), tenants: [aTenant('a')] }
  const blender = { pid: 812, name: 'blender', memoryMb: 4_200 }

  test('a card that they use gets no worker, and the reason says so without their names', () => {
    const { placed: there, refused } = placed({ ...one, cards: aCard({ foreignMb: 4_200, programs: [blender] }) })
    assert.deepEqual(there, [])
    assert.deepEqual(refused, ['a gpu: no free GPU of pool ADA_24: 4.1 GB of card 0 are used by other programs'])
  })

  test('memory that the driver lists for no program is of other programs', () => {
    const several = [blender, { pid: 9, name: null, memoryMb: 100 }]
    const named = (programs: CardRoom['programs']) =>
      foreignUseText({ index: 0 }, aCard({ foreignMb: 9_000, programs }).get('GPU-0')!)
    assert.equal(named(several), '8.8 GB of card 0 are used by pid 812 (blender), pid 9, other programs')
    assert.equal(named([]), '8.8 GB of card 0 are used by other programs')
  })

  test('a desktop does not keep workers from its card: up to a tenth of it, and 1 GiB of a small one', () => {
    assert.deepEqual(placed({ ...one, cards: aCard({ foreignMb: 2_457 }) }).placed, ['a: 0'])
    assert.deepEqual(placed({ ...one, cards: aCard({ foreignMb: 2_458 }) }).placed, [])
    assert.deepEqual(placed({ ...one, cards: aCard({ totalMb: 8_192, foreignMb: 1_024 }) }).placed, ['a: 0'])
  })

  test('a card that was not measured is judged by the claims of workers alone', () => {
    const cards = new Map([...aCard({ foreignMb: 20_000 })].map(([, room]) => ['GPU-7', room]))
    assert.deepEqual(placed({ ...one, cards }).placed, ['a: 0'])
  })

  test('another card is taken, and no worker ends for a card that they use', () => {
    const parts = aMachine(rtx(2))
    const cards = aCard({ foreignMb: 20_000 })
    assert.deepEqual(placed({ parts, tenants: [aTenant('a')], cards }).placed, ['a: 1'])
    const idle = anIdle('x', 'b', { placement: given(0) })
    const tenants = [aTenant('a'), aTenant('b', { wanted: 0 })]
    assert.deepEqual(placed({ parts: aMachine(rtx(1)), occupants: [idle], tenants, cards }).evicted, [])
  })
})

describe('a platform that places workers', () => {
  const asked = (gpuCount: number) => ({ ...UNPLACED, asked: { gpus: gpuCount, pool: 'ADA_24', cpu: null } })
  const there = (id: string, fields: Partial<Tenant> = {}) => aTenant(id, { placedBy: 'platform', ...fields })

  test('whatever this machine has, its workers start with what they ask for, and with nothing of the machine', () => {
    const parts = aMachine(rtx(1))
    const tenants = [
      there('a', { wanted: 3, compute: gpus({ count: 8 }) }),
      aTenant('b'),
      there('c', { compute: cpus(64) }),
    ]
    const { placed: all, evictions, unplaced } = placeWorkers(placeInput({ parts, tenants }))
    const of = (id: string) => all.filter(({ endpointId }) => endpointId === id).map(({ placement }) => placement)
    assert.deepEqual(of('a'), [asked(8), asked(8), asked(8)])
    assert.deepEqual(of('b'), [given(0)])
    assert.deepEqual(of('c')[0]?.asked?.cpu, { flavor: 'cpu3c', vcpus: 64, memoryMb: 64 * 2 * 1024 })
    assert.deepEqual([evictions, unplaced], [[], []])
  })

  test('its workers take no GPUs, vCPUs or memory from those of the machine', () => {
    const occupants = [anOccupant('x', 'a', { placement: asked(4) })]
    const tenants = [there('a', { wanted: 0 }), aTenant('b'), aTenant('c', { compute: cpus(2) })]
    const { placed: all } = placed({ parts: aMachine(rtx(1)), occupants, tenants })
    assert.deepEqual(all, ['b: 0', 'c: 2 vCPUs'])
  })

  test('the quotas of accounts count what was asked for, also where this machine has no GPUs', () => {
    const quotas = new Map([['owner' as OwnerId, { workers: 4, gpus: 4 }]])
    const occupants = [anOccupant('x', 'a', { placement: asked(2) })]
    const two = [there('a', { wanted: 2, compute: gpus({ count: 2 }) })]
    const found = placed({ occupants, tenants: two, quotas })
    assert.equal(found.placed.length, 1)
    assert.deepEqual(found.refused, [
      'a account_gpus: the limit of 4 GPUs that its account may have at once is reached',
    ])
    const without = [there('a', { wanted: 4, compute: cpus(2) })]
    assert.equal(placed({ occupants, tenants: without, quotas }).placed.length, 3)
  })

  test('under the limit of workers endpoints take turns, and only workers of the platform make room for each other', () => {
    const turns = placed({ freeWorkers: 2, tenants: [there('a', { wanted: 3 }), there('b', { wanted: 3 })] })
    assert.deepEqual(
      turns.placed.map(text => text[0]),
      ['a', 'b'],
    )
    const idle = [anIdle('x', 'a', { placement: given(0) }), anIdle('y', 'b', { placement: asked(1) })]
    const tenants = [aTenant('a', { wanted: 0 }), there('b', { wanted: 0 }), there('c')]
    const parts = aMachine(rtx(2))
    assert.deepEqual(placed({ parts, freeWorkers: 0, occupants: idle, tenants }).evicted, ['y for c'])
    assert.deepEqual(placed({ parts, freeWorkers: 0, occupants: idle.slice(0, 1), tenants }).evicted, [])
    assert.deepEqual(placed({ parts, occupants: idle, tenants }).evicted, [])
  })
})
