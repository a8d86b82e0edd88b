import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_MODEL_BYTES, ModelScan, replaced } from '../../../src/core/openai/model-scan.ts'

const encoder = new TextEncoder()
const joined = (pieces: readonly Uint8Array[]) => Buffer.concat(pieces).toString()

/** The pieces of a text, each of at most so many bytes. */
function pieces(text: string, size: number): Uint8Array[] {
  const bytes = encoder.encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

function scanned(text: string, size = 7): ModelScan {
  const scan = new ModelScan()
  for (const piece of pieces(text, size)) scan.push(piece)
  return scan
}

test('the model of the outermost object is found wherever it is, in pieces of any size', () => {
  const member = fc.record({ model: fc.string({ unit: 'grapheme', maxLength: 40 }) })
  const around = fc.dictionary(
    fc.string().filter(key => key !== 'model' && key !== '__proto__'),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(around, member, around, fc.integer({ min: 1, max: 50 }), (before, { model }, after, size) => {
      const text = JSON.stringify({ ...before, model, ...after }, null, size % 3)
      const { found } = scanned(text, size)
      assert.equal(found?.text, model)
      const other = replaced(pieces(text, size), found!, encoder.encode('"other"'))
      const expected = { ...JSON.parse(text), model: 'other' }
      assert.deepEqual(JSON.parse(joined(other)), expected)
    }),
  )
})

test('everything but the model stays byte for byte', () => {
  const text =
    '{ "messages" : [{"model":"not this", "content":"a\\"model\\":\\\\"}],\n "model" :"x\\u0041" , "n":1.50 }'
  for (const size of [1, 2, 5, 200]) {
    const { found } = scanned(text, size)
    assert.equal(found?.text, 'xA')
    assert.equal(joined(replaced(pieces(text, size), found!, encoder.encode('"y"'))), text.replace('"x\\u0041"', '"y"'))
  }
})

test('a body without a model that is a text has none, and is not read further', () => {
  const long = JSON.stringify({ model: 'm'.repeat(MAX_MODEL_BYTES) })
  for (const text of [
    '{}',
    '[]',
    '"model"',
    '',
    'model',
    '{"model":1}',
    '{"model":{"model":"m"}}',
    '[{"model":"m"}]',
    long,
  ]) {
    assert.equal(scanned(text).found, null, text.slice(0, 30))
  }
  assert.equal(scanned('{"model":null,"model":"m"}').over, true)
  assert.equal(scanned('{"messages":[').over, false)
})
