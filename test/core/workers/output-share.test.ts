import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { OwnerId, WorkerId } from '../../../src/core/ids.ts'
import { type KeptOutput, outputBytesByOwner, outputsToShrink } from '../../../src/core/workers/output-share.ts'

const output = (id: string, bytes: number, exitedAtMs: number | null = null, owner = 'ada'): KeptOutput => ({
  id: id as WorkerId,
  owner: owner as OwnerId,
  exitedAtMs,
  bytes,
})

test('within its limit nothing of an account is touched, and without one neither', () => {
  const outputs = [output('a', 50), output('b', 50, 1)]
  assert.deepEqual([...outputsToShrink(outputs, () => 100)], [])
  assert.deepEqual([...outputsToShrink(outputs, () => null)], [])
})

test('past its limit the outputs of workers that ended longest ago go first', () => {
  const outputs = [output('new', 40, 30), output('old', 40, 10), output('middle', 40, 20), output('runs', 20)]
  assert.deepEqual([...outputsToShrink(outputs, () => 100)], [['old', 0]])
  assert.deepEqual(
    [...outputsToShrink(outputs, () => 60)],
    [
      ['old', 0],
      ['middle', 0],
    ],
  )
})

test('where that is not enough, running workers get equal shares, and small outputs stay', () => {
  const outputs = [output('big', 900), output('ended', 50, 1), output('small', 10), output('other', 5_000, 1, 'bob')]
  const most = (owner: OwnerId) => (owner === 'ada' ? 100 : null)
  assert.deepEqual(
    [...outputsToShrink(outputs, most)],
    [
      ['ended', 0],
      ['big', 50],
    ],
  )
})

test('afterwards each account is within its limit', () => {
  const any = fc.record({
    id: fc.uuid(),
    bytes: fc.nat(1_000),
    exitedAtMs: fc.option(fc.nat(100)),
    owner: fc.constantFrom('ada', 'bob'),
  })
  fc.assert(
    fc.property(fc.array(any), fc.nat(2_000), (found, most) => {
      const outputs = found as unknown as KeptOutput[]
      const shrunk = outputsToShrink(outputs, () => most)
      const after = outputs.map(one => ({ ...one, bytes: Math.min(one.bytes, shrunk.get(one.id) ?? one.bytes) }))
      for (const bytes of outputBytesByOwner(after).values()) assert.ok(bytes <= most)
    }),
  )
})
