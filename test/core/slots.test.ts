import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Slots } from '../../src/core/slots.ts'

const named = (name: string) => ({ name })

test('items are there from when they are added until they are removed, in slots that are used again', () => {
  const slots = new Slots<{ name: string }>()
  const [a, b, c] = [named('a'), named('b'), named('c')]
  const slotOfA = slots.add(a)
  const slotOfB = slots.add(b)
  assert.deepEqual([...slots], [a, b])
  assert.equal(slots.remove(slotOfA, a), true)
  assert.equal(slots.size, 1)
  assert.equal(slots.add(c), slotOfA)
  assert.deepEqual(new Set(slots), new Set([b, c]))
  assert.equal(slots.remove(slotOfB, b), true)
  assert.equal(slots.size, 1)
})

test('an item that is removed twice does not take the next one of its slot along', () => {
  const slots = new Slots<{ name: string }>()
  const [a, b] = [named('a'), named('b')]
  const slot = slots.add(a)
  assert.equal(slots.remove(slot, a), true)
  assert.equal(slots.add(b), slot)
  assert.equal(slots.remove(slot, a), false)
  assert.equal(slots.remove(-1, a), false)
  assert.deepEqual([...slots], [b])
})
