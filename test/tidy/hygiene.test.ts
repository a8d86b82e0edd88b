import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertClean, assertNone, files, read, readIfThere, sources } from './files.ts'
import {
  findAddresses,
  findLeftovers,
  findLockMistakes,
  findLooseVersions,
  findOnly,
  findStaleLock,
  findVagueFolders,
} from './hygiene.ts'

test('every folder says what it holds', () => {
  assertNone(findVagueFolders(files))
})

test('no work is left over in the sources', () => {
  assertClean(
    files.filter(path => path.startsWith('src/')),
    findLeftovers,
  )
})

test('no test shuts out the others', () => {
  assertClean(sources('test/', 'packages/'), findOnly)
})

test('no file names a path or an address that holds on one machine only', () => {
  assertClean(files, source => (source.includes('\0') ? [] : findAddresses(source)))
})

test('every dependency is pinned to one version', () => {
  assertClean(
    files.filter(path => /(?:^|\/)package\.json$/.test(path)),
    findLooseVersions,
  )
})

test('the lock file holds every package by its hash, not by an address', () => {
  assertClean(
    files.filter(path => path === 'package-lock.json'),
    findLockMistakes,
  )
})

test('the lock file is in step with package.json', { skip: !files.includes('package-lock.json') }, () => {
  const lock = readIfThere('package-lock.json') ?? ''
  assertNone(findStaleLock(read('package.json'), lock).map(({ line, what }) => `package-lock.json:${line} ${what}`))
})

test('a vague folder is found once, at any depth, and a file of that name is let pass', () => {
  assert.deepEqual(findVagueFolders(['src/api/utils/a.ts', 'src/api/utils/b.ts', 'lib/a.ts', 'src/common.ts']), [
    'src/api/utils',
    'lib',
  ])
})

test('leftovers are found in comments too, but not within longer words', () => {
  assert.deepEqual(findLeftovers('a // TODO: b\n// FIXME\nconst TODOS = 1'), [
    { line: 1, what: 'TODO' },
    { line: 2, what: 'FIXME' },
  ])
})

test('a test that shuts out others is found in both forms', () => {
  assert.equal(findOnly("test.only('a', f)\ntest('b', { only: true }, f)").length, 2)
  assert.deepEqual(findOnly("const a = 'test.only(b)' // it.only(c)"), [])
})

/** Put together from parts, so that this file does not hold what the check looks for. */
const spoiled = [
  `cd /${'work'}/main`,
  `"file:///${'ho'}me/me/x"`,
  `see /${'Us'}ers/me`,
  `https://registry.${'npm'}js.org/zod`,
  `${'regi'}stry=https://example.org`,
]

for (const text of spoiled) {
  test(`${text} holds on one machine only`, () => {
    assert.equal(findAddresses(text).length, 1)
  })
}

test('paths that hold anywhere are let pass', () => {
  assert.deepEqual(findAddresses('./work/a $HOME/work/b /workspace/c /v2/{id}/home/d src/registry.ts'), [])
})

test('a range, a tag and an address are not one version', () => {
  const manifest = { dependencies: { a: '1.2.3', b: '^1.2.3' }, devDependencies: { c: 'latest', d: 'https://e' } }
  assert.equal(findLooseVersions(JSON.stringify(manifest)).length, 3)
  assert.deepEqual(findLooseVersions('{"optionalDependencies":{"a":"1.0.0-rc.1"}}'), [])
})

test('a lock file with an address, or without a hash, is found', () => {
  const lock = (entry: object): string => JSON.stringify({ packages: { '': {}, 'node_modules/a': entry } })
  assert.deepEqual(findLockMistakes(lock({ version: '1.0.0', integrity: 'sha512-x' })), [])
  assert.deepEqual(findLockMistakes(lock({ resolved: 'packages/a', link: true })), [])
  assert.equal(findLockMistakes(lock({ version: '1.0.0' })).length, 1)
  assert.equal(findLockMistakes(lock({ resolved: 'https://a.example/a.tgz', integrity: 'sha512-x' })).length, 1)
})

test('a lock file that is behind its package.json is found', () => {
  const lock = JSON.stringify({ packages: { 'node_modules/a': { version: '1.0.0' } } })
  assert.deepEqual(findStaleLock('{"dependencies":{"a":"1.0.0"}}', lock), [])
  assert.equal(findStaleLock('{"dependencies":{"a":"1.0.1"}}', lock).length, 1)
  assert.equal(findStaleLock('{"devDependencies":{"b":"1.0.0"}}', lock).length, 1)
})
