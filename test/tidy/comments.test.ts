import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findDeeds, findMissingPaths, findQuestions, findWideComments } from './comments.ts'
import { assertClean, files, sources } from './files.ts'

const all = sources('src/', 'console/', 'packages/', 'sim/', 'bench/', 'scripts/', 'test/')

test('comments begin with their subject', () => {
  assertClean(all, findQuestions)
})

test('lines of comments end before column 120', () => {
  assertClean(all, findWideComments)
})

test('files that comments name exist', () => {
  assertClean(all, source => findMissingPaths(source, path => files.includes(path)))
})

test('classes are named for something that acts', () => {
  assertClean(all, findDeeds)
})

test('a question, a long line, a missing file and a deed are found in comments, not in texts', () => {
  const long = 'x '.repeat(60)
  assert.deepEqual(findQuestions("/**\n * How long it may take.\n */\nconst text = '/** What */'\n"), [
    { line: 1, what: 'a comment that begins with How, not with its subject' },
  ])
  assert.deepEqual(findWideComments(`// ${long}\nconst text = '// ${long}'\n`), [
    { line: 1, what: 'a comment of 123 columns' },
  ])
  assert.deepEqual(
    findMissingPaths('/** See\n * src/gone.ts and src/here.ts. */', path => path === 'src/here.ts'),
    [{ line: 2, what: 'src/gone.ts does not exist' }],
  )
  assert.deepEqual(findDeeds('class Freezing {}\nclass WorkerFreezer {}'), [
    { line: 1, what: 'class Freezing is named for a deed' },
  ])
})
