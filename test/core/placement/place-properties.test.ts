/** Invariants of every sharing of a machine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cataloged, gpuKey, type MachineGpu } from '../../../src/core/hardware/inventory.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { WHOLE_CARD } from '../../../src/core/placement/card-claims.ts'
import { placeWorkers, START_MS } from '../../../src/core/placement/place.ts'
import { hasCuda } from '../../../src/core/placement/placement-fit.ts'
import type { Occupant, PlacementInput, Tenant } from '../../../src/core/placement/placement-input.ts'
import { TURN_DWELLS } from '../../../src/core/placement/room-ways.ts'
import { type Placement, UNPLACED } from '../../../src/core/workers/placement.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { anOccupant, aTenant, cpus, given, gpus, placeInput, shared } from '../../support/placing.ts'
import { randomSeed } from '../../support/random-seed.ts'
import { NOW } from '../../support/snapshots.ts'

const TYPES = ['NVIDIA GeForce RTX 4090', 'NVIDIA L4', 'NVIDIA RTX A5000', 'NVIDIA H200', 'NVIDIA Whatever']
const POOLS = ['ADA_24', 'AMPERE_24', 'HOPPER_141', 'AMPERE_80']
const IDS = ['a', 'b', 'c', 'd']
const OPTIONS = { seed: randomSeed, numRuns: 400 }

const GPU = fc.record({
  name: fc.constantFrom(...TYPES),
  cuda: fc.constantFrom(null, '11.8', '12.4'),
  problem: fc.constantFrom(null, null, null, 'it is broken'),
  mig: fc.constantFrom(null, null, null, '1g.24gb'),
})
const COMPUTE = fc.oneof(
  fc
    .record({
      pools: fc.uniqueArray(fc.constantFrom(...POOLS), { minLength: 1 }),
      excludedTypes: fc.subarray(TYPES, { maxLength: 2 }),
      count: fc.integer({ min: 1, max: 3 }),
      minCudaVersion: fc.constantFrom(null, null, '12.0'),
    })
    .map(gpus),
  fc.array(fc.constantFrom(1, 2, 4, 16), { minLength: 1, maxLength: 2 }).map(counts => cpus(...counts)),
)
const TENANT = fc.record({
  compute: COMPUTE,
  wanted: fc.nat(3),
  workersMin: fc.nat(1),
  sinceMs: fc.nat(600_000).map(ago => NOW - ago),
  hasWork: fc.boolean(),
  limited: fc.boolean(),
})
const WORKER = fc.record({
  endpoint: fc.constantFrom(...IDS),
  phase: fc.constantFrom('starting', 'idle', 'busy', 'leaving'),
  readyMs: fc.nat(90_000),
  cards: fc.nat(3),
  vcpus: fc.nat(8),
})

interface Raw {
  readonly cards: readonly Partial<MachineGpu>[]
  readonly tenants: readonly Partial<Tenant>[]
  readonly workers: readonly {
    readonly endpoint: string
    readonly phase: Occupant['phase']
    readonly readyMs: number
    readonly cards: number
    readonly vcpus: number
  }[]
  readonly freeWorkers: number | null
}

/** A machine on which nothing has been given twice. */
function situation({ cards, tenants, workers, freeWorkers }: Raw): PlacementInput {
  const parts = aMachine(cards.map((card, index) => aGpu(index, card.name, card)))
  const left = parts.gpus.map((_, index) => index)
  const occupants = workers.map(({ endpoint, phase, readyMs, cards: count, vcpus }, n) => {
    const own = given(...left.splice(0, count))
    const placement = own.gpus.length > 0 ? own : { ...UNPLACED, vcpus, memoryMb: vcpus * 1024 }
    const times = { readyAtMs: phase === 'starting' ? null : NOW - readyMs, idleSinceMs: phase === 'idle' ? NOW : null }
    return anOccupant(`w${n}`, endpoint, { placement, phase, ...times })
  })
  const all = IDS.map((id, index) => aTenant(id, tenants[index] ?? { wanted: 0 }))
  return placeInput({ parts, occupants, tenants: all, freeWorkers, rules: { cpuOvercommit: 1, memoryOvercommit: 1 } })
}

const RAW = fc.record({
  cards: fc.array(GPU, { maxLength: 6 }),
  tenants: fc.array(TENANT, { minLength: 1, maxLength: 4 }),
  workers: fc.array(WORKER, { maxLength: 6 }),
  freeWorkers: fc.option(fc.nat(4)),
})
const SITUATIONS = RAW.map(situation)

const gpuKeys = ({ gpus: all }: Placement) => all.map(gpuKey)
const sumOver = (placements: readonly Placement[], of: (placement: Placement) => number | null) =>
  placements.reduce((sum, placement) => sum + (of(placement) ?? 0), 0)

test('no GPU is given twice, or is unwell, excluded, of another pool or too old', () => {
  fc.assert(
    fc.property(SITUATIONS, input => {
      const { placed } = placeWorkers(input)
      const keys = [
        ...input.occupants.flatMap(({ placement }) => placement ?? []),
        ...placed.map(p => p.placement),
      ].flatMap(gpuKeys)
      assert.equal(new Set(keys).size, keys.length)
      for (const { endpointId, placement } of placed) {
        const { compute } = input.tenants.find(({ id }) => id === endpointId)!
        if (compute.kind === 'cpu' || placement.gpus.length === 0) continue
        assert.equal(placement.gpus.length, compute.count)
        for (const { uuid } of placement.gpus) {
          const card = cataloged(input.parts.gpus.find(gpu => gpu.uuid === uuid)!)
          assert.equal(card.pool, placement.pool)
          assert.ok(compute.pools.includes(card.pool) && !compute.excludedTypes.includes(card.type))
          assert.ok(card.gpu.problem === null && hasCuda(card.gpu.cuda, compute))
        }
      }
    }),
    OPTIONS,
  )
})

test('no more workers are placed than are wanted or than there is room for, and containers within what may be promised', () => {
  fc.assert(
    fc.property(SITUATIONS, input => {
      const { placed } = placeWorkers(input)
      assert.ok(placed.length <= (input.capacity.freeWorkers ?? placed.length))
      for (const { id, wanted } of input.tenants) {
        assert.ok(placed.filter(({ endpointId }) => endpointId === id).length <= wanted)
      }
      const limited = placed.filter(({ endpointId, placement }) => {
        return placement.vcpus !== null && input.tenants.find(({ id }) => id === endpointId)!.limited
      })
      if (limited.length === 0 || limited.length < placed.length) return
      const all = [...input.occupants.flatMap(({ placement }) => placement ?? []), ...placed.map(p => p.placement)]
      assert.ok(
        sumOver(all, p => p.vcpus) <= input.parts.vcpus && sumOver(all, p => p.memoryMb) <= input.parts.memoryGb * 1024,
      )
    }),
    OPTIONS,
  )
})

test('a single demand is placed whenever there is a place for it', () => {
  fc.assert(
    fc.property(SITUATIONS, COMPUTE, (input, compute) => {
      const { placed, unplaced } = placeWorkers({ ...input, tenants: [aTenant('x', { compute })] })
      const used = new Set(input.occupants.flatMap(({ placement }) => (placement === null ? [] : gpuKeys(placement))))
      const fits = () => {
        if (compute.kind === 'cpu') {
          const taken = input.occupants.flatMap(({ placement }) => placement ?? [])
          return compute.configs.some(({ vcpuCount }) => {
            const vcpus = Math.min(vcpuCount, 8)
            const memoryMb = Math.min(vcpuCount * 2, 32) * 1024
            return sumOver(taken, p => p.vcpus) + vcpus <= 8 && sumOver(taken, p => p.memoryMb) + memoryMb <= 32 * 1024
          })
        }
        if (input.parts.gpus.length === 0) return true
        return compute.pools.some(pool => {
          const free = input.parts.gpus.map(cataloged).filter(({ gpu, type, pool: own }) => {
            const isFit =
              gpu.problem === null && hasCuda(gpu.cuda, compute) && (compute.count === 1 || gpu.mig === null)
            return isFit && own === pool && !compute.excludedTypes.includes(type) && !used.has(gpuKey(gpu))
          })
          return free.length >= compute.count
        })
      }
      const expected = (input.capacity.freeWorkers ?? 1) >= 1 && fits()
      assert.equal(placed.length, expected ? 1 : 0)
      assert.equal(unplaced.length, expected ? 0 : 1)
    }),
    OPTIONS,
  )
})

test('a worker that makes room is ready for long enough, has no work, and is not kept by the min of its endpoint', () => {
  fc.assert(
    fc.property(SITUATIONS, input => {
      const { evictions, placed } = placeWorkers(input)
      const tenantOf = (id: EndpointId) => input.tenants.find(tenant => tenant.id === id)!
      for (const { workerId, endpointId, for: by, afterJob } of evictions) {
        const worker = input.occupants.find(one => one.workerId === workerId)!
        assert.notEqual(endpointId, by)
        assert.ok(worker.readyAtMs !== null && NOW - worker.readyAtMs >= input.rules.dwellMs)
        if (!afterJob) assert.ok(worker.phase === 'idle' && !tenantOf(endpointId).hasWork)
        else {
          assert.ok(worker.phase === 'idle' || worker.phase === 'busy')
          assert.ok(NOW - tenantOf(by).sinceMs >= TURN_DWELLS * input.rules.dwellMs)
          assert.ok(!placed.some(one => one.endpointId === by))
        }
      }
      for (const { id, workersMin } of input.tenants) {
        const stay = input.occupants.filter(({ endpointId, phase }) => endpointId === id && phase !== 'leaving')
        const gone = evictions.filter(({ endpointId }) => endpointId === id).length
        assert.ok(gone === 0 || stay.length - gone >= workersMin)
      }
      assert.equal(new Set(evictions.map(({ workerId }) => workerId)).size, evictions.length)
    }),
    OPTIONS,
  )
})

test('every worker that is wanted is placed or refused with a reason', () => {
  fc.assert(
    fc.property(SITUATIONS, input => {
      const { placed, unplaced } = placeWorkers(input)
      for (const { id, wanted } of input.tenants) {
        const refused = unplaced.filter(({ endpointId }) => endpointId === id)
        const count = refused.reduce((sum, one) => sum + one.count, 0)
        assert.equal(placed.filter(({ endpointId }) => endpointId === id).length + count, wanted)
        for (const { reason } of refused) assert.match(reason, /^\S.{10,}\S$/)
      }
    }),
    OPTIONS,
  )
})

test('the order of the input changes nothing', () => {
  fc.assert(
    fc.property(SITUATIONS, input => {
      const turned = { ...input, tenants: [...input.tenants].reverse(), occupants: [...input.occupants].reverse() }
      const { placed, unplaced, evictions } = placeWorkers(input)
      const again = placeWorkers(turned)
      assert.deepEqual(again.placed, placed)
      assert.deepEqual(again.evictions.length > 0, evictions.length > 0)
      assert.deepEqual(
        again.unplaced.map(({ endpointId }) => endpointId),
        unplaced.map(({ endpointId }) => endpointId),
      )
    }),
    OPTIONS,
  )
})

/** A worker in the run of a shared machine, with the second at which it ends. */
interface Running extends Occupant {
  readonly endsAtS: number
}

const LONGEST_S = 60
const DWELL_S = 30

test('no endpoint starves: the one that waits longest is overtaken at most once by each other one', () => {
  const wish = fc.record({ count: fc.integer({ min: 1, max: 4 }), wanted: fc.integer({ min: 1, max: 3 }) })
  const wishes = fc.array(wish, { minLength: 2, maxLength: 5 })
  const parts = aMachine(Array.from({ length: 4 }, (_, index) => aGpu(index)))
  const run = (endpoints: readonly { count: number; wanted: number }[], lengths: Iterator<number>) => {
    const sinceS = endpoints.map(() => 0)
    const passed = endpoints.map(() => 0)
    let running: Running[] = []
    const have = (n: number) =>
      running.filter(({ endpointId, phase }) => endpointId === `e${n}` && phase !== 'leaving').length
    for (let second = 0; second < 300; second += 1) {
      const nowMs = NOW + second * 1_000
      running = running.filter(({ endsAtS }) => endsAtS > second)
      const tenants = endpoints.map(({ count, wanted }, n) => {
        const fields = { compute: gpus({ count }), wanted: Math.max(0, wanted - have(n)), hasWork: true }
        return aTenant(`e${n}`, { ...fields, sinceMs: NOW + sinceS[n]! * 1_000 })
      })
      const starving = [...endpoints.keys()].filter(n => !running.some(({ endpointId }) => endpointId === `e${n}`))
      const [first] = starving
        .filter(n => second - sinceS[n]! >= DWELL_S)
        .sort((a, b) => sinceS[a]! - sinceS[b]! || a - b)
      const { placed, evictions } = placeWorkers(placeInput({ parts, occupants: running, tenants, nowMs }))
      const leaving = new Set(evictions.map(({ workerId }) => workerId))
      running = running.map(worker => (leaving.has(worker.workerId) ? { ...worker, phase: 'leaving' } : worker))
      for (const [nth, { endpointId, placement }] of placed.entries()) {
        if (first !== undefined && endpointId !== `e${first}`) passed[first]! += 1
        const worker = anOccupant(`w${second}-${nth}`, endpointId, { placement, readyAtMs: nowMs })
        running.push({ ...worker, endsAtS: second + lengths.next().value })
      }
      for (const [n, { wanted }] of endpoints.entries()) {
        if (placed.some(({ endpointId }) => endpointId === `e${n}`) || have(n) >= wanted) {
          sinceS[n] = second
          passed[n] = 0
        } else if (have(n) === 0) {
          assert.ok(passed[n]! < endpoints.length, `e${n} was passed ${passed[n]} times`)
          const limitS = endpoints.length * (LONGEST_S + DWELL_S)
          assert.ok(second - sinceS[n]! <= limitS, `e${n} has waited ${second - sinceS[n]!} s`)
        }
      }
    }
  }
  const lengths = fc.infiniteStream(fc.integer({ min: 1, max: LONGEST_S }))
  fc.assert(fc.property(wishes, lengths, run), { seed: randomSeed, numRuns: 12 })
})

const SLEEPER = fc.record({
  endpoint: fc.constantFrom(...IDS),
  cards: fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 2 }),
  sleep: fc.constantFrom('asleep', 'asleep', 'falling', 'able', null),
  suspends: fc.boolean(),
  phase: fc.constantFrom('starting', 'idle', 'busy', 'leaving'),
  readyMs: fc.nat(90_000),
  isWanted: fc.boolean(),
})

test('no card gets two workers that are awake, and no worker gets a card that a sleeping worker of another account needs, unless the server suspended it', () => {
  const ownerOf = (endpoint: string) => (endpoint < 'c' ? 'one' : 'two') as OwnerId
  const property = fc.property(
    fc.array(SLEEPER, { maxLength: 6 }),
    fc.array(fc.nat(2), { minLength: 4, maxLength: 4 }),
    (raw, wanted) => {
      const held = new Map<number, OwnerId>()
      const occupants = raw.flatMap(({ endpoint, cards, sleep, suspends, phase, readyMs }, n) => {
        const owner = ownerOf(endpoint)
        const isFree = (card: number) =>
          !held.has(card) || (sleep === 'asleep' && (suspends || held.get(card) === owner))
        if (!cards.every(isFree)) return []
        if (sleep !== 'asleep') for (const card of cards) held.set(card, owner)
        const isFrozen = sleep === 'asleep' || sleep === 'falling'
        const frozen = isFrozen ? { sinceMs: NOW - readyMs, hasPriority: false } : null
        const times = { readyAtMs: NOW - readyMs, idleSinceMs: phase === 'idle' ? NOW - readyMs : null }
        const state = { phase: isFrozen ? ('frozen' as const) : phase, frozen, sleep, suspends }
        return [anOccupant(`w${n}`, endpoint, { owner, placement: given(...cards), ...state, ...times })]
      })
      const tenants = IDS.map((id, index) => {
        const wakes = occupants.flatMap(({ workerId, endpointId, placement, sleep }) =>
          endpointId === id && sleep === 'asleep' ? [{ workerId, placement: placement!, memoryMb: null }] : [],
        )
        const isWanted = raw[index]?.isWanted === true
        return aTenant(id, {
          owner: ownerOf(id),
          wanted: wanted[index]!,
          wakes: isWanted ? wakes : [],
          hasWork: isWanted,
        })
      })
      const parts = aMachine([aGpu(0), aGpu(1), aGpu(2)])
      const { placed, woken, evictions, unwoken } = placeWorkers(placeInput({ parts, occupants, tenants }))
      const wokenIds = new Set(woken.map(({ workerId }) => workerId))
      const awake = occupants.filter(({ workerId, sleep }) => sleep !== 'asleep' || wokenIds.has(workerId))
      const keys = [...awake.map(({ placement }) => placement!), ...placed.map(p => p.placement)].flatMap(gpuKeys)
      assert.equal(new Set(keys).size, keys.length)
      for (const { endpointId, placement } of placed) {
        const others = occupants.filter(
          ({ owner, sleep, suspends }) => owner !== ownerOf(endpointId) && !(sleep === 'asleep' && suspends),
        )
        const bound = new Set(others.flatMap(worker => gpuKeys(worker.placement!)))
        assert.ok(gpuKeys(placement).every(key => !bound.has(key)))
      }
      for (const { workerId, endpointId, for: by, sleeps } of evictions) {
        const victim = occupants.find(worker => worker.workerId === workerId)!
        if (sleeps) assert.ok(victim.sleep === 'able' && (victim.suspends || victim.owner === ownerOf(by)))
        if (by === endpointId) assert.equal(victim.sleep, 'asleep')
      }
      // Each wanted sleeper wakes, or some of its endpoint wait with a reason.
      for (const { id, wakes } of tenants) {
        const missing = wakes.filter(({ workerId }) => !wokenIds.has(workerId))
        const isEvicted = evictions.some(({ endpointId }) => endpointId === id)
        if (missing.length > 0) assert.ok(isEvicted || unwoken.some(({ endpointId }) => endpointId === id))
      }
    },
  )
  fc.assert(property, { ...OPTIONS, numRuns: 2_000 })
})

const SHARER = fc.record({
  endpoint: fc.constantFrom(...IDS),
  card: fc.nat(2),
  gb: fc.constantFrom(null, 1, 2, 4, 6, 8, 12),
  state: fc.constantFrom('idle', 'busy', 'leaving', 'starting', 'suspended'),
  startedMs: fc.nat(90_000),
})
const SHARED_CARD = fc.record({ foreignMb: fc.nat(12_000), isMeasured: fc.boolean() })

test('no card is promised beyond its memory, whole cards have one worker, and one worker with a share starts at a time', () => {
  const wish = fc.record({ gb: fc.constantFrom(null, 1, 3, 6, 8, 20), wanted: fc.nat(3), isWanted: fc.boolean() })
  const property = fc.property(
    fc.array(SHARER, { maxLength: 8 }),
    fc.array(wish, { minLength: 4, maxLength: 4 }),
    fc.array(SHARED_CARD, { minLength: 3, maxLength: 3 }),
    (raw, raws, measured) => {
      const claims = [0, 0, 0]
      const claimOf = (gb: number | null) => (gb === null ? WHOLE_CARD : gb * 1_024)
      const occupants = raw.flatMap(({ endpoint, card, gb, state, startedMs }, n) => {
        const isAwake = state !== 'suspended'
        if (isAwake && (claims[card]! > 0 ? gb === null : false)) return []
        if (isAwake && claims[card]! + claimOf(gb) > 24_064 && gb !== null) return []
        if (isAwake) claims[card]! += claimOf(gb)
        const frozen = { sinceMs: NOW, hasPriority: false }
        const fields = isAwake
          ? { phase: state, startingSinceMs: state === 'starting' ? NOW - startedMs : null }
          : ({ phase: 'frozen', frozen, sleep: 'asleep', suspends: true } as const)
        return [anOccupant(`w${n}`, endpoint, { placement: shared(gb, card), ...fields })]
      })
      const wakesOf = (id: string) =>
        occupants
          .filter(({ endpointId, sleep }) => endpointId === id && sleep === 'asleep')
          .map(({ workerId, placement }) => ({ workerId, placement: placement!, memoryMb: 1_000 }))
      const tenants = IDS.map((id, index) => {
        const { gb, wanted, isWanted } = raws[index]!
        const compute = gb === null ? gpus() : gpus({ memoryGb: gb })
        return aTenant(id, { compute, wanted, wakes: isWanted ? wakesOf(id) : [], sinceMs: NOW - index })
      })
      const cards = new Map(
        measured.flatMap(({ foreignMb, isMeasured }, index) => {
          const room = { totalMb: 24_576, freeMb: 24_576 - foreignMb, foreignMb, programs: [] }
          return isMeasured ? [[`GPU-${index}`, room] as const] : []
        }),
      )
      const parts = aMachine([aGpu(0), aGpu(1), aGpu(2)])
      const { placed, woken } = placeWorkers(placeInput({ parts, occupants, tenants, cards }))
      const wokenIds = new Set(woken.map(({ workerId }) => workerId))
      const old = occupants.filter(({ sleep }) => sleep !== 'asleep')
      const resumed = occupants.filter(({ workerId }) => wokenIds.has(workerId)).map(({ placement }) => placement!)
      const started = placed.map(({ placement }) => placement)
      for (const index of [0, 1, 2]) {
        const on = (placements: readonly Placement[]) =>
          placements.flatMap(({ gpus: all }) => all.filter(gpu => gpu.index === index))
        const [before, after] = [on(old.map(({ placement }) => placement!)), on([...resumed, ...started])]
        const all = [...before, ...after]
        if (after.length === 0) continue
        if (all.some(({ shareMb }) => shareMb === undefined)) assert.equal(all.length, 1)
        const foreignMb = cards.get(`GPU-${index}`)?.foreignMb ?? 0
        const sumMb = all.reduce((sum, { shareMb }) => sum + (shareMb ?? 0), 0)
        assert.ok(sumMb === 0 || sumMb + foreignMb + 512 <= 24_576, `${sumMb} MiB and ${foreignMb} MiB of others`)
        const starting = old.filter(
          ({ startingSinceMs, placement }) =>
            startingSinceMs !== null && NOW - startingSinceMs < START_MS && on([placement!]).length > 0,
        )
        const shares = on(started).filter(({ shareMb }) => shareMb !== undefined)
        assert.ok(shares.length <= (starting.length > 0 ? 0 : 1))
      }
    },
  )
  fc.assert(property, OPTIONS)
})
