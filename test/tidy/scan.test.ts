import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closing, codeOnly, lineAt } from './scan.ts'

/** Sources, each with the words that must be left of it as code. */
const cases: [source: string, words: string[]][] = [
  ['a // b\nc', ['a', 'c']],
  ['a /* b\n c */ d', ['a', 'd']],
  ["a('b // c') d", ['a', 'd']],
  [String.raw`a("b\"c") d`, ['a', 'd']],
  [`a(\`b \${c + \`d \${e} f\`} g\`) h`, ['a', 'c', 'e', 'h']],
  [`\`\${ { a: \`}\` }.a } b\` + c`, ['a', 'a', 'c']],
  ['a = /b"c/g.test(d)', ['a', 'g', 'test', 'd']],
  ["a = /[/'b]/ ; c", ['a', 'c']],
  ['a / b / c', ['a', 'b', 'c']],
  ['(a) / b / c', ['a', 'b', 'c']],
  ['if (a) /b c/.test(d)', ['if', 'a', 'test', 'd']],
  ['return /b"/', ['return']],
  ['x.return / b / c', ['x', 'return', 'b', 'c']],
  ['a[0]! / b / c', ['a', '0', 'b', 'c']],
  ['a++ / b / c', ['a', 'b', 'c']],
  ["a = 'never closed\nb", ['a', 'b']],
  ['#!/usr/bin/env node\na', ['a']],
]

for (const [source, words] of cases) {
  test(`of ${JSON.stringify(source)} only the code is left`, () => {
    const code = codeOnly(source)
    assert.deepEqual(code.match(/\w+/g), words)
    assert.equal(code.length, source.length)
    assert.equal(code.split('\n').length, source.split('\n').length)
  })
}

test('lines are counted from one', () => {
  assert.deepEqual(
    [0, 1, 2, 3].map(index => lineAt('a\nb\n', index)),
    [1, 1, 2, 2],
  )
})

test('a bracket is closed by its own partner', () => {
  assert.equal(closing('f(a(b), c) d', 1), 9)
  assert.equal(closing('f(a', 1), 3)
})
