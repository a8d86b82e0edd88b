import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isJsonObject, memberTexts, readJson } from '../../../src/core/json/json-text.ts'
import { patient } from '../../support/patience.ts'

const BLANKS = fc.array(fc.constantFrom(' ', '\n', '\t', '\r'), { maxLength: 3 }).map(blanks => blanks.join(''))

/** JSON texts of a value, with blanks wherever JSON allows some. */
function jsonTexts(value: unknown): fc.Arbitrary<string> {
  if (Array.isArray(value)) return listTexts('[', value.map(jsonTexts), ']')
  if (isJsonObject(value)) return listTexts('{', Object.entries(value).map(memberText), '}')
  return around(fc.constant(JSON.stringify(value)))
}

function memberText([name, value]: [string, unknown]): fc.Arbitrary<string> {
  return fc.tuple(around(fc.constant(JSON.stringify(name))), jsonTexts(value)).map(texts => texts.join(':'))
}

function listTexts(open: string, items: fc.Arbitrary<string>[], close: string): fc.Arbitrary<string> {
  const inside = items.length === 0 ? BLANKS : fc.tuple(...items).map(texts => texts.join(','))
  return around(inside.map(text => `${open}${text}${close}`))
}

function around(inner: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(BLANKS, inner, BLANKS).map(texts => texts.join(''))
}

const NAMES = fc.oneof(
  fc.string({ maxLength: 6 }),
  fc.constantFrom('"', '\\', '\\"', '}', ']', ',', ':', '\n', '\u2028', '\u{1f600}', '\ud800'),
)
const OBJECTS = fc
  .dictionary(NAMES, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 })
  .map(value => JSON.parse(JSON.stringify(value)) as Record<string, unknown>)

test('the text of each member means what the member means, however the object is laid out', () => {
  const laidOut = OBJECTS.chain(value => jsonTexts(value).map(text => ({ value, text })))
  fc.assert(
    fc.property(laidOut, ({ value, text }) => {
      const members = memberTexts(text)
      assert.deepEqual([...members.keys()].sort(), Object.keys(value).sort())
      for (const [name, slice] of members) {
        assert.deepEqual(JSON.parse(slice), value[name])
        assert.ok(text.includes(slice))
        assert.equal(slice, slice.trim())
      }
    }),
    { numRuns: 150 },
  )
})

const slices: [text: string, members: Record<string, string>][] = [
  ['{}', {}],
  ['  {  }  ', {}],
  ['{"n":12345678901234567890}', { n: '12345678901234567890' }],
  ['{"a":1.0,"b":-0,"c":1E400}', { a: '1.0', b: '-0', c: '1E400' }],
  ['{"a":1,"a":{"b": 2}}', { a: '{"b": 2}' }],
  ['{"\\u0061":1}', { a: '1' }],
  ['{"a":"}],\\"{","b":"\\\\"}', { a: '"}],\\"{"', b: '"\\\\"' }],
  ['{"a":[{"b":[1, {"c": "]"}]} , [ ]],"d":null}', { a: '[{"b":[1, {"c": "]"}]} , [ ]]', d: 'null' }],
  ['{ "a" : "x" , "b" : true }', { a: '"x"', b: 'true' }],
  [
    '{"":"","__proto__":1}',
    Object.fromEntries([
      ['', '""'],
      ['__proto__', '1'],
    ]),
  ],
]

for (const [text, members] of slices) {
  test(`the members of ${text} are found`, () => {
    assert.deepEqual([...memberTexts(text)], Object.entries(members))
  })
}

test('a text is kept as it came, and one that is no JSON is refused with the reason', () => {
  assert.deepEqual(readJson(' {"a": 1} '), { ok: true, value: { a: 1 }, text: ' {"a": 1} ', replaced: 0 })
  const refused = readJson('{"a": NaN}')
  assert.ok(!refused.ok && refused.problem.length > 0)
})

const lenient: [text: string, kept: string | null, replaced: number][] = [
  ['NaN', 'null', 1],
  ['[NaN, Infinity, -Infinity]', '[null, null, null]', 3],
  ['{"a":NaN,"b":"NaN"}', '{"a":null,"b":"NaN"}', 1],
  ['{"a":"\\"NaN, -Infinity","b":-Infinity}', '{"a":"\\"NaN, -Infinity","b":null}', 1],
  ['{"a":"\\\\","b":NaN}', '{"a":"\\\\","b":null}', 1],
  ['{"NaN":12345678901234567890,"b":NaN}', '{"NaN":12345678901234567890,"b":null}', 1],
  ['{"a":"NaN"}', '{"a":"NaN"}', 0],
  ['{"a":NaNs}', null, 0],
  ['{"a":xNaN}', null, 0],
  ['{"a":-NaN}', null, 0],
  ['"NaN', null, 0],
  ['{"a":NaN', null, 0],
  ['', null, 0],
]

for (const [text, kept, replaced] of lenient) {
  test(`${text || 'nothing'} from Python is ${kept === null ? 'refused' : `kept as ${kept}`}`, () => {
    const reading = readJson(text, true)
    if (kept === null) assert.ok(!reading.ok)
    else assert.deepEqual(reading, { ok: true, value: JSON.parse(kept), text: kept, replaced })
  })
}

const large: [what: string, text: string][] = [
  ['a long string', `{"a":"${'x'.repeat(1_000_000)}","b":NaN}`],
  ['a string of escapes', `{"a":"${'\\n'.repeat(4_000_000)}","b":NaN}`],
  ['a string of escaped quotes', `{"a":"${'\\"'.repeat(500_000)}","b":NaN}`],
  ['many short strings', `{"a":[${'"",'.repeat(100_000)}1],"b":NaN}`],
  ['a long number', `{"a":1${'0'.repeat(1_000_000)},"b":NaN}`],
  ['many brackets', `{"a":[${'[],'.repeat(200_000)}[]],"b":NaN}`],
]

for (const [what, text] of large) {
  test(`${what} of great length is read to its end`, () => {
    const reading = readJson(text, true)
    assert.ok(reading.ok && reading.replaced === 1)
    assert.deepEqual([...memberTexts(reading.text).keys()], ['a', 'b'])
    assert.equal(memberTexts(reading.text).get('b'), 'null')
  })
}

/** Each would take minutes and more if the work grew with the square of the size. */
const hostile = ['\\"'.repeat(200_000), '"'.repeat(199_999), '"\\'.repeat(1_000_000), `"${'\\'.repeat(2_000_000)}`]

for (const text of hostile) {
  test(`much text that begins with ${text.slice(0, 4)} are refused without delay`, { timeout: patient(5_000) }, () => {
    assert.ok(!readJson(text, true).ok)
  })
}

test('an object is neither null nor an array', () => {
  assert.deepEqual([{}, [], null, 1, 'a', undefined].map(isJsonObject), [true, false, false, false, false, false])
})

const DEEP = 1_000
const shapes: [what: string, open: string, inner: string, close: string][] = [
  ['lists', '[', '', ']'],
  ['objects', '{"a":', '1', '}'],
  ['lists of objects, with brackets in strings between', '[{"]}\\"":', '"[{"', '}]'],
]

for (const [what, open, inner, close] of shapes) {
  const levels = open.startsWith('[{') ? 2 : 1
  const nested = (depth: number) => open.repeat(depth / levels) + inner + close.repeat(depth / levels)
  test(`${what} may be ${DEEP} deep and no deeper`, () => {
    assert.ok(readJson(nested(DEEP)).ok)
    const reading = readJson(nested(DEEP + levels))
    assert.ok(!reading.ok && reading.problem === 'it has more than 1000 levels of lists and objects')
  })
  test(`${what} that were never closed are refused before they are parsed`, () => {
    assert.ok(!readJson(open.repeat(530_000)).ok)
  })
}
