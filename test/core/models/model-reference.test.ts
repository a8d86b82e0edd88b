import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isCommit, modelFolder, modelInFolder, parseModelReference } from '../../../src/core/models/model-reference.ts'

const COMMIT = '317b7eb96312eda0c431d1dab1af958a308cb35e'

for (const [text, name, revision] of [
  ['a/b', 'a/b', 'main'],
  ['Qwen/Qwen2.5-0.5B-Instruct', 'Qwen/Qwen2.5-0.5B-Instruct', 'main'],
  ['https://huggingface.co/a/b:v1.0', 'a/b', 'v1.0'],
  [`a/b:${COMMIT}`, 'a/b', COMMIT],
  ['a/b:refs/pr/1', 'a/b', 'refs/pr/1'],
] as const) {
  test(`${text} means revision ${revision} of ${name}`, () => {
    assert.deepEqual(parseModelReference(text), { name, revision })
    const folder = modelFolder(name)
    assert.match(folder, /^models--[^/]+$/)
    assert.equal(modelInFolder(folder), name)
  })
}

test('no reference leads out of a cache, and no two names are one folder', () => {
  const names = [
    '..',
    '../..',
    '../b',
    'a/..',
    './b',
    'a/.b',
    '.a/b',
    'a--b/c',
    'a/b--c',
    'a..b/c',
    '-a/b',
    'a/b-',
    'a/b.',
  ]
  const revisions = ['..', '../x', 'x/../y', '/x', 'x/', 'x//y', '.x', 'x/.y', 'x..y', 'x y', '']
  for (const text of [...names, ...revisions.map(revision => `a/b:${revision}`), 'a/b:c:d', 'a', ''])
    assert.equal(parseModelReference(text), null, text)
})

test('folders that are not models of a hub have no reference', () => {
  for (const folder of ['datasets--a--b', 'models--a', 'models--a--b--c', 'models--..--b', '.locks', 'version.txt'])
    assert.equal(modelInFolder(folder), null, folder)
})

test('a commit is forty hexadecimal digits', () => {
  assert.deepEqual([COMMIT, COMMIT.slice(1), 'main', COMMIT.toUpperCase()].map(isCommit), [true, false, false, false])
})
