import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertClean, assertNone, read, sources } from './files.ts'
import { exportedTypes, findPackedSpreads, findUndocumentedExports } from './shape.ts'

test('every export of core, ports and services says what it does', () => {
  assertClean(sources('src/core/', 'src/ports/', 'src/services/'), source => findUndocumentedExports(source))
})

test('no object is spread where it is written', () => {
  assertClean(sources('src/', 'sim/', 'test/', 'bench/', 'scripts/', 'packages/'), source => findPackedSpreads(source))
})

test('no two exported types share a name', () => {
  const types = exportedTypes(new Map(sources('src/').map(path => [path, read(path)])))
  assertNone(
    [...types].filter(([, paths]) => paths.length > 1).map(([name, paths]) => `${name} is in ${paths.join(' and ')}`),
  )
})

test('a spread of a literal object is found, and one of a name or a choice is not', () => {
  assert.equal(findPackedSpreads('a = { ...{ b, c }, d }').length, 1)
  assert.deepEqual(findPackedSpreads("a = { ...b, ...(c ? { d } : {}), e: '...{' }"), [])
})

test('types of one name in two files are found', () => {
  const texts = new Map([
    ['a.ts', 'export interface A {}\nexport type B = 1'],
    ['b.ts', 'export abstract class A {}\ninterface B {}'],
  ])
  assert.deepEqual(exportedTypes(texts).get('A'), ['a.ts', 'b.ts'])
  assert.deepEqual(exportedTypes(texts).get('B'), ['a.ts'])
})

const undocumented = [
  'export function f() {}',
  'export const a = 1',
  '/** Far away. */\n\nexport class A {}',
  '// Not a docstring.\nexport interface A {}',
  '/* Not a docstring. */\nexport type A = string',
  '/** */\nexport type A = string',
  '/** Of a. */\nconst a = 1 /* b */\nexport const b = 2',
  'export abstract class A {}',
  'export default async function f() {}',
  'const a = 1\nexport { a }',
]

for (const source of undocumented) {
  test(`${JSON.stringify(source)} lacks a docstring`, () => {
    assert.equal(findUndocumentedExports(source).length, 1)
  })
}

const documented = [
  '/** What it does. */\nexport function f() {}',
  '/**\n * What it does, for `src/**` and `/v2/*`.\n */\nexport const a = 1',
  '/** What it does. */\n// biome-ignore lint/x: why\nexport const a = 1',
  '/** What it does. */\nexport function f(a: string): void\nexport function f(a: number): void\n',
  "export type { A } from './a.ts'\nexport * from './b.ts'",
  'const a = 1',
  '// export const a = 1',
]

for (const source of documented) {
  test(`${JSON.stringify(source)} needs no other docstring`, () => {
    assert.deepEqual(findUndocumentedExports(source), [])
  })
}
