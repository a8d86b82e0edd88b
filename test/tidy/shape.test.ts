import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertClean, assertNone, read, sources } from './files.ts'
import {
  exportedTypes,
  findAnyTypes,
  findFunctions,
  findLongFile,
  findLongFunctions,
  findPackedSpreads,
  findUndocumentedExports,
} from './shape.ts'

const measured = sources('src/', 'sim/', 'packages/worker/src/')

test('no source file is longer than a reader can hold', () => {
  assertClean(measured, source => findLongFile(source))
})

test('no function is longer than a reader can hold', () => {
  assertClean(measured, source => findLongFunctions(source))
})

test('every export of core, ports and services says what it does', () => {
  assertClean(sources('src/core/', 'src/ports/', 'src/services/'), source => findUndocumentedExports(source))
})

test('no type is any', () => {
  assertClean(sources('src/'), source => findAnyTypes(source))
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

test('a file is too long from the first line above the limit', () => {
  assert.deepEqual(findLongFile('a\nb\n', 2), [])
  assert.deepEqual(findLongFile('a\nb\nc', 2), [{ line: 3, what: 'the file has 3 lines, 2 are allowed' }])
})

/** Headers of functions, each to be followed by a body, with the name that is reported. */
const headers: [header: string, name: string][] = [
  ['function f(a: string) {', 'f'],
  ['export async function* f<T extends { a: 1 }>(a: T): AsyncGenerator<T> {', 'f'],
  ['const f = (a: string): string => {', 'f'],
  ['const f = async a => {', 'f'],
  ['const f = (a: { b: string }): a is { b: string; c: 1 } => {', 'f'],
  ['function f(a: unknown): asserts a is string {', 'f'],
  ['function f(): { a: string; b: () => void } {', 'f'],
  ['function f(): () => void {', 'f'],
  ['function f(): () => { a: string } {', 'f'],
  ['function f(): readonly string[] | { [key: string]: number } | undefined {', 'f'],
  ["function f(): Promise<Map<'a' | `b`, (c: string) => void>> {", 'f'],
  ['function f(): A extends B ? C : D.E {', 'f'],
  ['class A { f(a = g({})): void {', 'f'],
  ['class A { get f() {', 'f'],
  ['class A { async #f(): Promise<void> {', '#f'],
  ['class A extends B(C) { constructor(private_: string) {', 'constructor'],
  ['const a = { f() {', 'f'],
]

for (const [header, name] of headers) {
  test(`the body behind ${header} is measured`, () => {
    const close = '}'.repeat(header.startsWith('class') || header.startsWith('const a') ? 2 : 1)
    const source = `\n${header}\n  a()\n  if (b) {\n  }\n${close}\n`
    assert.deepEqual(findFunctions(source), [{ name, firstLine: 2, lines: 5 }])
  })
}

const bodiless = [
  'if (a) {\n}',
  'for await (const a of b) {\n}',
  'while (a()) {\n}',
  'switch (a) {\n  case f(b): {\n  }\n}',
  'try {\n} catch (error) {\n}',
  'const a = b ? c(d) : {\n}',
  'const a = () => ({\n})',
  'class A extends mixin(B) {\n}',
  'interface A {\n  a(): string\n  b(): { c: string }\n}\nconst d = {\n}',
  'declare function a(b: string): void\nconst d = {\n}',
  '// function a() {\n// }',
  "const a = 'function b() {}'",
]

for (const source of bodiless) {
  test(`${JSON.stringify(source)} holds no body of a function`, () => {
    assert.deepEqual(findFunctions(source), [])
  })
}

test('a function is too long from the first line above the limit, a short one inside it is not', () => {
  const source = 'function f() {\n  g(() => {\n  })\n}'
  assert.deepEqual(findLongFunctions(source, 4), [])
  assert.deepEqual(findLongFunctions(source, 3), [{ line: 1, what: 'f has 4 lines, 3 are allowed' }])
})

test('braces in strings and templates do not end a function', () => {
  const source = `function f() {\n  a('}')\n  b(\`} \${c({})} }\`)\n  // }\n}`
  assert.deepEqual(findFunctions(source), [{ name: 'f', firstLine: 1, lines: 5 }])
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

test('the type any is found wherever it stands, the word is not', () => {
  const types = [
    'let a: any',
    'b as any',
    'let c: any[]',
    'let d: Map<string, any>',
    'let e: Array<any>',
    'let f: A | any',
  ]
  assert.deepEqual(
    types.map(type => findAnyTypes(type).length),
    [1, 1, 1, 1, 1, 1],
  )
  assert.deepEqual(findAnyTypes("// as any\nconst a = ': any'\nz.any()\nconst b = { any: 1 }\nlet c: anything"), [])
})
