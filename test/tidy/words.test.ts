import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertClean, sources } from './files.ts'
import { findReplacedWords } from './words.ts'

test('the sources use no word that the vocabulary replaced', () => {
  assertClean(sources('src/', 'sim/', 'bench/', 'scripts/', 'packages/'), findReplacedWords)
})

test('a replaced word is found in names, in any case, and across two lines of a comment', () => {
  assert.deepEqual(findReplacedWords('const isStranger = 1\n/** Jobs In\n * line. */'), [
    { line: 2, what: "'In line', which is now 'in the queue'" },
    { line: 1, what: "'isStranger', which is now 'isAnonymous'" },
  ])
})

test('a longer word, and a line of text, are allowed', () => {
  assert.deepEqual(findReplacedWords('const inline = history // a line in a log'), [])
})
