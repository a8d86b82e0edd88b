import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { chunkItems, MAX_CHUNK_BYTES } from '../../src/core/chunk.ts'

const outputsOf = (items: readonly string[]) => items.map(item => JSON.parse(item).output)

test('a chunk that fits is one item, its text as it was', () => {
  assert.deepEqual(chunkItems('{"output": 12345678901234567890}'), ['{"output":12345678901234567890}'])
  assert.deepEqual(chunkItems('{"output":1,"metrics":{"a": 1}}'), ['{"output":1,"metrics":{"a": 1}}'])
  assert.deepEqual(chunkItems('[1, 2]'), ['{"output":[1, 2]}'])
  assert.deepEqual(chunkItems('{"output": NaN}'), ['{"output":null}'])
  assert.deepEqual(chunkItems('no json'), ['{"output":"no json"}'])
})

test('a long string is cut between characters, and no item is too large', () => {
  const characters = fc.constantFrom('a', 'ä', '€', '😀', '"', '\\', '\n')
  fc.assert(
    fc.property(fc.array(characters, { minLength: 1, maxLength: 50 }), unit => {
      const text = unit.join('').repeat(Math.ceil(2_500_000 / unit.join('').length))
      const items = chunkItems(JSON.stringify({ output: text }))
      assert.ok(items.every(item => Buffer.byteLength(item) <= MAX_CHUNK_BYTES))
      const pieces = outputsOf(items) as string[]
      assert.equal(pieces.join(''), text)
      assert.ok(pieces.every(piece => piece.isWellFormed()))
    }),
    { numRuns: 5 },
  )
})

test('a long list becomes shorter lists, and items that are too long themselves become lists of pieces', () => {
  const list = Array.from({ length: 300_000 }, (_, n) => n)
  const items = chunkItems(JSON.stringify({ output: list }))
  assert.ok(items.length > 1 && items.every(item => Buffer.byteLength(item) <= MAX_CHUNK_BYTES))
  assert.deepEqual(outputsOf(items).flat(), list)
  const long = chunkItems(JSON.stringify({ output: ['x', 'y'.repeat(2_000_000)] }))
  assert.equal(outputsOf(long).flat().join(''), `x${'y'.repeat(2_000_000)}`)
})

test('any other long value becomes numbered pieces of its JSON text', () => {
  const value = { text: 'z'.repeat(2_500_000) }
  const items = chunkItems(JSON.stringify({ output: value }))
  const parts = outputsOf(items) as { part: number; parts: number; json: string }[]
  assert.deepEqual(
    parts.map(({ part }) => part),
    Array.from({ length: parts.length }, (_, n) => n + 1),
  )
  assert.ok(parts.every(({ parts: count }) => count === parts.length))
  assert.ok(items.every(item => Buffer.byteLength(item) <= MAX_CHUNK_BYTES))
  assert.deepEqual(JSON.parse(parts.map(({ json }) => json).join('')), value)
})
