import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compactJson, indentedJson, JsonText, jsonText } from '../../../src/core/json/json-format.ts'

/** JSON that JSON.parse and JSON.stringify would change. */
const ODD =
  '{"n":18446744073709551615,"f":1.0,"e":1e400,"z":-0,"10":1,"9":2,"__proto__":{"x":1E5},"9":3,"s":"\\u00e9\\/ a: [1, 2]"}'

test('a text keeps its numbers, names, order and strings, with and without blanks', () => {
  assert.equal(compactJson(indentedJson(ODD)), ODD)
  assert.equal(compactJson(` ${ODD.replaceAll('":', '" : ')}\n`), ODD)
  assert.equal(
    jsonText({ input: new JsonText(ODD), more: [new JsonText('1.0'), undefined], none: undefined }),
    `{"input":${ODD},"more":[1.0,null]}`,
  )
  assert.equal(
    indentedJson('{"a":[],"b":{},"c":[1.0,{"d":1e400}]}'),
    '{\n  "a": [],\n  "b": {},\n  "c": [\n    1.0,\n    {\n      "d": 1e400\n    }\n  ]\n}',
  )
})

test('the members of an object keep their texts, and other values have no members', () => {
  const members = new JsonText(ODD).members()!
  assert.deepEqual([...members.keys()], ['n', 'f', 'e', 'z', '10', '9', '__proto__', 's'])
  assert.deepEqual([members.get('9')?.text, members.get('__proto__')?.text], ['3', '{"x":1E5}'])
  for (const text of ['null', '[{}]', '"{}"', '1']) assert.equal(new JsonText(text).members(), null)
})

test('what has nothing odd looks as JSON.stringify makes it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), value => {
      const text = JSON.stringify(value)
      assert.equal(jsonText(JSON.parse(text)), JSON.stringify(JSON.parse(text)))
      assert.equal(compactJson(JSON.stringify(value, null, 3)), text)
      assert.equal(indentedJson(text), JSON.stringify(value, null, 2))
    }),
  )
})
