import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_JSON_DEPTH } from '../../../src/core/json/json-depth.ts'
import { JsonScanner, type JsonSink } from '../../../src/core/json/json-scanner.ts'
import { isJsonObject, memberTexts, readJson } from '../../../src/core/json/json-text.ts'

/** Scans a text in pieces that end at these places. */
function scan(text: string, cuts: readonly number[] = [], lenient = true) {
  const values: [string | null, string][] = []
  const sink: JsonSink = {
    begin: name => void values.push([name, '']),
    text: part => {
      values.at(-1)![1] += part
    },
  }
  const scanner = new JsonScanner(sink, lenient)
  const places = [0, ...cuts.map(cut => cut % (text.length + 1)), text.length].sort((a, b) => a - b)
  for (const [index, place] of places.slice(1).entries()) scanner.push(text.slice(places[index], place))
  const problem = scanner.end()
  return { problem, values, replaced: scanner.replaced }
}

/** Asserts that a text is read as the reader of small texts reads it, with the tokens of Python and without. */
function assertAlike(text: string, cuts: readonly number[]): void {
  for (const lenient of [true, false]) assertReadAlike(text, cuts, lenient)
}

function assertReadAlike(text: string, cuts: readonly number[], lenient: boolean): void {
  const small = readJson(text, lenient)
  const { problem, values, replaced } = scan(text, cuts, lenient)
  assert.equal(problem === null, small.ok, `${text} ${JSON.stringify(problem)}`)
  if (!small.ok) return
  assert.equal(replaced, small.replaced, text)
  const wanted = isJsonObject(small.value) ? memberTexts(small.text) : new Map([[null, small.text.trim()]])
  assert.deepEqual(new Map(values as [string, string][]), wanted, text)
}

const cuts = fc.array(fc.nat(), { maxLength: 8 })

test('any JSON is read in any pieces as the reader of small texts reads it, character for character', () => {
  const blank = fc.constantFrom('', ' ', '\n\t\r ')
  const object = fc.dictionary(fc.string(), fc.json(), { maxKeys: 4 })
  const texts = fc.oneof(
    fc.tuple(fc.json(), blank).map(([json, around]) => `${around}${json}${around}`),
    fc.tuple(object, blank).map(([members, between]) => {
      const written = Object.entries(members).map(
        ([name, json]) => `${JSON.stringify(name)}${between}:${between}${json}`,
      )
      return `{${between}${written.join(`${between},${between}`)}${between}}`
    }),
  )
  fc.assert(fc.property(texts, cuts, (text, places) => assertAlike(text, places)))
})

test('no other text is taken than the reader of small texts takes', () => {
  const tokens = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u00e9\\n"',
    '"\\x"',
    '"\n"',
    '-',
    '0',
    '01',
    '1',
    '.5',
    '1e5',
  ]
  const more = [
    '-0.5E-7',
    '1.',
    'true',
    'nul',
    'null',
    'NaN',
    '-Infinity',
    'Infinity',
    '-NaN',
    ' ',
    'é',
    '"',
    '"\\ud800"',
  ]
  const texts = fc.array(fc.constantFrom(...tokens, ...more), { maxLength: 9 }).map(parts => parts.join(''))
  fc.assert(
    fc.property(texts, cuts, (text, places) => assertAlike(text, places)),
    { numRuns: 2_000 },
  )
})

test('each kind of number and literal is read across every cut', () => {
  for (const text of [
    '{"output":-12.50E+10,"b":true}',
    '[NaN,-Infinity,Infinity,false]',
    '-0',
    '{"\\u0061":null }',
    'NaN',
  ]) {
    for (let cut = 0; cut <= text.length; cut += 1) assertAlike(text, [cut])
    assertAlike(
      text,
      Array.from(text, (_, index) => index),
    )
  }
})

test('a text that nests too deeply is refused where it does, and one at the limit is not', () => {
  assert.equal(scan('['.repeat(MAX_JSON_DEPTH) + ']'.repeat(MAX_JSON_DEPTH)).problem, null)
  assert.equal(scan('['.repeat(MAX_JSON_DEPTH + 1)).problem?.tooDeep, true)
})

test('a refusal names the place and nothing of the text', () => {
  assert.deepEqual(scan('{"secret":"s3cr3t"!', [4, 9]).problem, {
    problem: 'there is an unexpected character after 18 characters',
    tooDeep: false,
  })
  assert.deepEqual(scan('{"secret":"s3cr3t').problem, { problem: 'it ends too early', tooDeep: false })
})
