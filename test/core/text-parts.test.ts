import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasInOrder, listItems, textBefore, withoutEnd } from '../../src/core/text-parts.ts'

test('a run of a character is removed from the end of a text, and nowhere else', () => {
  assert.equal(withoutEnd('http://a//b///', '/'), 'http://a//b')
  assert.equal(withoutEnd('///', '/'), '')
  assert.equal(withoutEnd('', '/'), '')
  assert.equal(withoutEnd('a\r\rb', '\r'), 'a\r\rb')
})

test('a text ends before the first of its marks', () => {
  assert.equal(textBefore('/a?b#c', '#', '?'), '/a')
  assert.equal(textBefore('/a', '?'), '/a')
  assert.equal(textBefore('?a', '?'), '')
})

test('words are found each behind the one before', () => {
  assert.equal(hasInOrder('exec: a: no such file', 'exec: ', 'no such file'), true)
  assert.equal(hasInOrder('no such file: exec: a', 'exec: ', 'no such file'), false)
  assert.equal(hasInOrder('aa', 'a', 'a', 'a'), false)
})

test('a list in one text has trimmed items, and no more than a thousand', () => {
  assert.deepEqual(listItems(' a, ,b,', ','), ['a', 'b'])
  assert.deepEqual(listItems('a\r\n\r\nb', '\n'), ['a', 'b'])
  assert.throws(() => listItems(','.repeat(3_000_000), ','), /a list has more than 1000 items/)
})
