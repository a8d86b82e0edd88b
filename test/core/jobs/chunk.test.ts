import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_CHUNK_BYTES, readChunk } from '../../../src/core/jobs/chunk.ts'

function chunkItems(body: string): readonly string[] {
  const reading = readChunk(body)
  return 'items' in reading ? reading.items : assert.fail(reading.problem)
}

const readOutputs = (items: readonly string[]) => items.map(item => JSON.parse(item).output)

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
      const pieces = readOutputs(items) as string[]
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
  assert.deepEqual(readOutputs(items).flat(), list)
  const long = chunkItems(JSON.stringify({ output: ['x', 'y'.repeat(2_000_000)] }))
  assert.equal(readOutputs(long).flat().join(''), `x${'y'.repeat(2_000_000)}`)
})

test('any other long value becomes numbered pieces of its JSON text', () => {
  const value = { text: 'z'.repeat(2_500_000) }
  const items = chunkItems(JSON.stringify({ output: value }))
  const parts = readOutputs(items) as { part: number; parts: number; json: string }[]
  assert.deepEqual(
    parts.map(({ part }) => part),
    Array.from({ length: parts.length }, (_, n) => n + 1),
  )
  assert.ok(parts.every(({ parts: count }) => count === parts.length))
  assert.ok(items.every(item => Buffer.byteLength(item) <= MAX_CHUNK_BYTES))
  assert.deepEqual(JSON.parse(parts.map(({ json }) => json).join('')), value)
})

test('numbers in a list that is split keep all their digits', () => {
  const list = Array.from({ length: 100_000 }, () => '12345678901234567890.10')
  const items = chunkItems(`{"output":[${list.join(', ')}]}`)
  const texts = items.flatMap(item => item.slice('{"output":['.length, -']}'.length).split(','))
  assert.deepEqual(texts, list)
})

test('a chunk is split in one pass, however deep its lists are', () => {
  const text = 'x'.repeat(10_000_000)
  const deep = `${'[1,'.repeat(998)}"${text}"${']'.repeat(998)}`
  const items = chunkItems(`{"output":${deep}}`)
  assert.ok(items.every(item => Buffer.byteLength(item) <= MAX_CHUNK_BYTES))
  const strings = items.flatMap(item => readOutputs([item]).flat(1_000)).filter(leaf => typeof leaf === 'string')
  assert.equal(strings.join(''), text)
})

test('a chunk that is too deep makes no items, and says why', () => {
  const brackets = 530_000
  for (const body of [
    `{"output":${'['.repeat(brackets)}${']'.repeat(brackets)}}`,
    `${'{"a":'.repeat(brackets)}1${'}'.repeat(brackets)}`,
    '['.repeat(brackets),
  ]) {
    assert.deepEqual(readChunk(body), { problem: 'it has more than 1000 levels of lists and objects' })
  }
})

test('metrics that are large do not multiply with the pieces of a chunk', () => {
  const items = chunkItems(JSON.stringify({ output: 'y'.repeat(5_000_000), metrics: 'm'.repeat(5_000_000) }))
  assert.equal(readOutputs(items).join(''), 'y'.repeat(5_000_000))
  assert.ok(items.every(item => Buffer.byteLength(item) <= MAX_CHUNK_BYTES))
})
