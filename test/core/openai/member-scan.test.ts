import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_MEMBER_BYTES, MemberScan, memberValue, replaced } from '../../../src/core/openai/member-scan.ts'

const encoder = new TextEncoder()
const joined = (pieces: readonly Uint8Array[]) => Buffer.concat(pieces).toString()

/** The pieces of a text, each of at most so many bytes. */
function pieces(text: string, size: number): Uint8Array[] {
  const bytes = encoder.encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

function scanned(text: string, size = 7, names: readonly string[] = ['model']): MemberScan<string> {
  const scan = new MemberScan(names)
  for (const piece of pieces(text, size)) scan.push(piece)
  return scan
}

/** The value of a member; undefined if it is not found, or not read. */
function valueIn(text: string, name = 'model', size = 7): unknown {
  const place = scanned(text, size, [name]).places.get(name)
  return place === undefined ? undefined : memberValue(pieces(text, size), place)
}

test('members of the outermost object are found wherever they are, in pieces of any size', () => {
  const member = fc.record({ model: fc.string({ unit: 'grapheme', maxLength: 40 }), stream: fc.jsonValue() })
  const others = fc.dictionary(
    fc.string().filter(key => !['model', 'stream', '__proto__'].includes(key)),
    fc.jsonValue(),
  )
  fc.assert(
    fc.property(others, member, others, fc.integer({ min: 1, max: 50 }), (before, { model, stream }, after, size) => {
      const text = JSON.stringify({ ...before, model, ...after, stream }, null, size % 3)
      const parts = pieces(text, size)
      const { places } = scanned(text, size, ['stream', 'model'])
      assert.equal(memberValue(parts, places.get('model')!), model)
      const { start, end } = places.get('stream')!
      assert.deepEqual(JSON.parse(Buffer.from(text).subarray(start, end).toString()), JSON.parse(text).stream)
      const other = replaced(parts, places.get('model')!, encoder.encode('"other"'))
      assert.deepEqual(JSON.parse(joined(other)), { ...JSON.parse(text), model: 'other' })
    }),
  )
})

test('everything but the replaced value stays byte for byte', () => {
  const text =
    '{ "messages" : [{"model":"not this", "content":"a\\"model\\":\\\\"}],\n "model" :"x\\u0041" , "n":1.50 }'
  for (const size of [1, 2, 5, 200]) {
    assert.equal(valueIn(text, 'model', size), 'xA')
    assert.equal(valueIn(text, 'n', size), 1.5)
    const place = scanned(text, size).places.get('model')!
    assert.equal(joined(replaced(pieces(text, size), place, encoder.encode('"y"'))), text.replace('"x\\u0041"', '"y"'))
  }
})

test('a value of any kind is read, and one that is too long is not', () => {
  const values = { a: true, b: null, c: -1.5e3, d: { stream: [1, '}'] }, e: [[], {}], f: 'm'.repeat(MAX_MEMBER_BYTES) }
  for (const space of [0, 2]) {
    const text = JSON.stringify(values, null, space)
    for (const name of ['a', 'b', 'c', 'd', 'e'] as const) assert.deepEqual(valueIn(text, name), values[name], name)
    assert.equal(valueIn(text, 'f'), undefined)
  }
  assert.equal(valueIn('{"model": tru }'), undefined)
})

test('of members with one name the last is found, as JSON.parse finds it, and all are noted', () => {
  for (const text of ['{"model":"a","model":"b"}', '{"model":1,"a":{"model":2},"mod\\u0065l":"b","x":[]}']) {
    for (const size of [1, 7, 100]) {
      assert.equal(valueIn(text, 'model', size), JSON.parse(text).model)
      assert.deepEqual([...scanned(text, size).repeated], ['model'])
    }
  }
  assert.equal(scanned('{"model":"a","b":{"model":1}}').repeated.size, 0)
})

test('a body without the member has none, and is not read further than needed', () => {
  for (const text of ['{}', '[]', '"model"', '', 'model', '[{"model":"m"}]', '{"a":"model"}', '{"a":{"model":"m"}}']) {
    assert.equal(valueIn(text), undefined, text)
  }
  assert.equal(scanned('{"model":null,"model":"m"}').over, true)
  assert.equal(scanned('{"messages":[').over, false)
})
