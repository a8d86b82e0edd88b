import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { assertClean, assertNone, read, root, sources } from './files.ts'
import {
  constructedPatterns,
  findConstructors,
  findHiddenConstructors,
  findSlowPatterns,
  isSlow,
  type Pattern,
  patternsOf,
  slowTextOf,
} from './patterns.ts'

const programs = sources('src/', 'packages/worker/src/', 'console/', 'bin/')
/** Sources that run where texts of clients and workers come in. */
const servers = sources('src/', 'packages/worker/src/')

test('no regular expression takes time that grows faster than its text', () => {
  assertClean(programs, findSlowPatterns)
})

test('a regular expression that is put together is a constant of its module', () => {
  assertClean(sources('src/'), findHiddenConstructors)
})

test('no regular expression takes long for a text that repeats a part of what it takes', async () => {
  const constructing = sources('src/').filter(path => findConstructors(read(path)).length > 0)
  const constructed = await constructedPatterns(() =>
    Promise.all(constructing.map(path => import(pathToFileURL(join(root, path)).href))),
  )
  assert.ok(constructed.length >= constructing.length)
  const patterns = new Map<string, Pattern>()
  for (const pattern of [...servers.flatMap(path => patternsOf(read(path), path)), ...constructed]) {
    patterns.set(`/${pattern.source}/${pattern.flags}`, pattern)
  }
  assertNone(
    [...patterns].flatMap(([name, pattern]) => {
      const text = slowTextOf(pattern)
      return text === null ? [] : [`${name} takes too long for ${text}`]
    }),
  )
})

const SLOW: readonly Pattern[] = [
  { source: String.raw`\r+$`, flags: '' },
  { source: '(a+)+b', flags: '' },
]

for (const pattern of SLOW) {
  test(`/${pattern.source}/ is found by analysis and by trial`, () => {
    assert.equal(isSlow(pattern), true)
    assert.notEqual(slowTextOf(pattern), null)
  })
}

test('a run of several characters is found by trial', () => {
  assert.match(slowTextOf({ source: ', found "[^]*"$', flags: '' }) ?? '', /found/)
})

test('patterns whose time grows as their text are allowed', () => {
  for (const source of [String.raw`\s+`, '^a*b', String.raw`(?<!\/)\/+$`, '"[^"]*"', 'no .{0,80}such']) {
    assert.deepEqual([isSlow({ source, flags: 'g' }), slowTextOf({ source, flags: 'g' })], [false, null], source)
  }
})

test('a regular expression is found in code, in JSX, and not in texts', () => {
  const found = (source: string, path = 'a.ts') =>
    patternsOf(source, path).map(each => [each.line, each.source, each.flags])
  assert.deepEqual(found("const a = 1 / 2 / 3\nconst b = /x[/]y/gi.test('/no/')"), [[2, 'x[/]y', 'gi']])
  assert.deepEqual(found('const a = <b>/no/ {c.replace(/x/, "")}</b>', 'a.tsx'), [[1, 'x', '']])
})

test('a constructor within a function is found', () => {
  const inside = 'function f(a: string) {\n  return new RegExp(a)\n}'
  const outside = 'const A = new RegExp(\n  `x`,\n)\nexport const B = {\n  c: new RegExp(D),\n}'
  assert.deepEqual(
    findHiddenConstructors(inside).map(({ line }) => line),
    [2],
  )
  assert.deepEqual(findHiddenConstructors(outside), [])
})
