import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertClean, assertNone, files, read, readIfThere, sources } from './files.ts'
import {
  findAddresses,
  findFocusedTests,
  findLeftovers,
  findLockMistakes,
  findStaleLock,
  findUnpinnedVersions,
  findVagueFolders,
} from './hygiene.ts'

test('every folder says what is in it', () => {
  assertNone(findVagueFolders(files))
})

test('the sources have no marks of unfinished work', () => {
  assertClean(
    files.filter(path => path.startsWith('src/')),
    findLeftovers,
  )
})

test('no test is focused', () => {
  assertClean(sources('test/', 'packages/'), findFocusedTests)
})

test('no file names a path or an address of one machine', () => {
  assertClean(files, source => (source.includes('\0') ? [] : findAddresses(source)))
})

test('every dependency is pinned to one version', () => {
  assertClean(
    files.filter(path => /(?:^|\/)package\.json$/.test(path)),
    findUnpinnedVersions,
  )
})

test('the lock file has a hash and no address for each package', () => {
  assertClean(
    files.filter(path => path === 'package-lock.json'),
    findLockMistakes,
  )
})

test('the lock file agrees with package.json', { skip: !files.includes('package-lock.json') }, () => {
  const lock = readIfThere('package-lock.json') ?? ''
  assertNone(findStaleLock(read('package.json'), lock).map(({ line, what }) => `package-lock.json:${line} ${what}`))
})

test('a vague folder is found once, at any depth, and a file of that name is allowed', () => {
  assert.deepEqual(findVagueFolders(['src/api/utils/a.ts', 'src/api/utils/b.ts', 'lib/a.ts', 'src/common.ts']), [
    'src/api/utils',
    'lib',
  ])
})

test('marks of unfinished work are found in comments, too, but not within longer words', () => {
  assert.deepEqual(findLeftovers('a // TODO: b\n// FIXME\nconst TODOS = 1'), [
    { line: 1, what: 'TODO' },
    { line: 2, what: 'FIXME' },
  ])
})

test('a focused test is found in both forms', () => {
  assert.equal(findFocusedTests("test.only('a', f)\ntest('b', { only: true }, f)").length, 2)
  assert.deepEqual(findFocusedTests("const a = 'test.only(b)' // it.only(c)"), [])
})

/** In parts, so that this file does not match the check itself. */
const machineAddresses = [
  `cd /${'work'}/main`,
  `"file:///${'ho'}me/me/x"`,
  `see /${'Us'}ers/me`,
  `https://registry.${'npm'}js.org/zod`,
  `${'regi'}stry=https://example.org`,
]

for (const text of machineAddresses) {
  test(`${text} is of one machine`, () => {
    assert.equal(findAddresses(text).length, 1)
  })
}

test('paths that are valid anywhere are allowed', () => {
  assert.deepEqual(findAddresses('./work/a $HOME/work/b /workspace/c /v2/{id}/home/d src/registry.ts'), [])
})

test('a range, a tag and an address are not one version', () => {
  const manifest = { dependencies: { a: '1.2.3', b: '^1.2.3' }, devDependencies: { c: 'latest', d: 'https://e' } }
  assert.equal(findUnpinnedVersions(JSON.stringify(manifest)).length, 3)
  assert.deepEqual(findUnpinnedVersions('{"optionalDependencies":{"a":"1.0.0-rc.1"}}'), [])
})

test('a lock file with an address, or without a hash, is found', () => {
  const lock = (entry: object): string => JSON.stringify({ packages: { '': {}, 'node_modules/a': entry } })
  assert.deepEqual(findLockMistakes(lock({ version: '1.0.0', integrity: 'sha512-x' })), [])
  assert.deepEqual(findLockMistakes(lock({ resolved: 'packages/a', link: true })), [])
  assert.equal(findLockMistakes(lock({ version: '1.0.0' })).length, 1)
  assert.equal(findLockMistakes(lock({ resolved: 'https://a.example/a.tgz', integrity: 'sha512-x' })).length, 1)
})

test('a lock file that differs from its package.json is found', () => {
  const lock = JSON.stringify({ packages: { 'node_modules/a': { version: '1.0.0' } } })
  assert.deepEqual(findStaleLock('{"dependencies":{"a":"1.0.0"}}', lock), [])
  assert.equal(findStaleLock('{"dependencies":{"a":"1.0.1"}}', lock).length, 1)
  assert.equal(findStaleLock('{"devDependencies":{"b":"1.0.0"}}', lock).length, 1)
})
