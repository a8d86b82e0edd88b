/** Turns with priorities and several accounts (core/placement/turn-order.ts). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PRIORITIES } from '../../../src/core/endpoints/endpoint.ts'
import type { OwnerId } from '../../../src/core/ids.ts'
import { placeWorkers } from '../../../src/core/placement/place.ts'
import type { Tenant } from '../../../src/core/placement/placement-input.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { anOccupant, aTenant, given, placed, placeInput } from '../../support/placing.ts'
import { randomSeed } from '../../support/random-seed.ts'
import { NOW } from '../../support/snapshots.ts'

const OWNERS = ['one', 'two', 'three'] as OwnerId[]
const [ONE, TWO] = OWNERS as [OwnerId, OwnerId]
const IDS = ['a', 'b', 'c', 'd', 'e', 'f']
const ago = (s: number) => ({ sinceMs: NOW - s * 1_000, hasWork: true })
const order = (tenants: readonly Tenant[]) =>
  placed({ parts: aMachine(tenants.map((_, index) => aGpu(index))), tenants }).placed.map(text => text.split(':')[0])

test('a higher priority of one account makes no circle with the waits of two', () => {
  const urgent = aTenant('urgent', { owner: ONE, priority: 'high', ...ago(1) })
  const patient = aTenant('patient', { owner: ONE, priority: 'low', ...ago(60) })
  const foreign = aTenant('foreign', { owner: TWO, ...ago(30) })
  for (const tenants of [
    [urgent, patient, foreign],
    [urgent, foreign, patient],
    [patient, urgent, foreign],
    [patient, foreign, urgent],
    [foreign, urgent, patient],
    [foreign, patient, urgent],
  ]) {
    assert.deepEqual(order(tenants), ['urgent', 'foreign', 'patient'])
  }
})

const TENANTS = fc.array(
  fc.record({
    owner: fc.constantFrom(...OWNERS),
    priority: fc.constantFrom(...PRIORITIES),
    wanted: fc.nat(2),
    workersMin: fc.nat(1),
    sinceMs: fc.nat(3).map(s => NOW - s * 1_000),
    hasWork: fc.boolean(),
    isSpare: fc.boolean(),
  }),
  { minLength: 2, maxLength: IDS.length },
)

const SITUATION = fc.record({
  tenants: TENANTS.map(all => all.map((fields, index) => aTenant(IDS[index]!, fields))),
  workers: fc.array(fc.nat(IDS.length - 1), { maxLength: 4 }),
  cards: fc.nat(8),
})

function situation({ tenants, workers, cards }: { tenants: readonly Tenant[]; workers: number[]; cards: number }) {
  const occupants = workers.map((nth, index) => {
    const { id, owner } = tenants[nth % tenants.length]!
    return anOccupant(`w${index}`, id, { owner, placement: given(index) })
  })
  return { parts: aMachine(Array.from({ length: cards }, (_, index) => aGpu(index))), occupants, tenants }
}

test('the order in which endpoints are listed changes no turn', () => {
  const property = fc.property(
    SITUATION.chain(raw =>
      fc.record({
        raw: fc.constant(raw),
        shuffled: fc.shuffledSubarray([...raw.tenants], { minLength: raw.tenants.length }),
      }),
    ),
    ({ raw, shuffled }) => {
      const fields = situation(raw)
      const decision = placeWorkers(placeInput(fields))
      assert.deepEqual(placeWorkers(placeInput({ ...fields, tenants: shuffled })), decision)
    },
  )
  fc.assert(property, { seed: randomSeed, numRuns: 500 })
})

test('no turn passes an account with fewer workers, or a higher priority of the same account', () => {
  fc.assert(
    fc.property(SITUATION, raw => {
      const fields = situation(raw)
      const counts = new Map<OwnerId, number>()
      const count = (owner: OwnerId) => counts.set(owner, (counts.get(owner) ?? 0) + 1)
      for (const { owner } of fields.occupants) count(owner)
      const wants = new Map(raw.tenants.map(tenant => [tenant.id, tenant.wanted]))
      for (const { endpointId } of placeWorkers(placeInput(fields)).placed) {
        const chosen = raw.tenants.find(({ id }) => id === endpointId)!
        for (const other of raw.tenants) {
          if (wants.get(other.id)! === 0 || other.isSpare !== chosen.isSpare) continue
          const [own, its] = [counts.get(chosen.owner) ?? 0, counts.get(other.owner) ?? 0]
          assert.ok(own <= its, `${chosen.id} before ${other.id}`)
          if (other.owner !== chosen.owner) continue
          assert.ok(PRIORITIES.indexOf(other.priority) <= PRIORITIES.indexOf(chosen.priority))
        }
        wants.set(endpointId, wants.get(endpointId)! - 1)
        count(chosen.owner)
      }
    }),
    { seed: randomSeed, numRuns: 500 },
  )
})
