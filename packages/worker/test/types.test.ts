import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const blocks = Array.from(readme.matchAll(/^```ts\n(.*?)^```/gms), match => match[1] as string)

const head = `import { start } from '@runyard/worker'\nimport { z } from 'zod'\n`
const typed = (handler: string, options = '') =>
  `${head}start<{ name: string }, { size: number }>({ handler: ${handler}${options} })\n`
const checked = (use: string) =>
  `${head}start({ inputSchema: z.object({ n: z.number().default(1) }), handler: ({ input }) => ${use} })\n`

const right: Record<string, string> = {
  'a plain value': typed('job => ({ size: job.input.name.length })'),
  'a failure': typed('async () => ({ error: "too large", refresh_worker: true })'),
  'a generator': typed('function* () { yield { size: 1 } }'),
  'an async generator': typed('async function* () { yield { size: 1 } }'),
  'a promise of a stream': typed('async () => (async function* () { yield { size: 1 } })()'),
  'the output of a schema': checked('input.n.toFixed(2)'),
}
const wrong: Record<string, string> = {
  'an input that there is not': typed('job => ({ size: job.input.nam.length })'),
  'another output': typed('async () => ({ size: "large" })'),
  'another chunk': typed('async function* () { yield "large" }'),
  'an unknown option': typed('() => ({ size: 1 })', ', concurency: 2'),
  'another type than the schema has': checked('input.n.toUpperCase()'),
}
const files = [...blocks, ...Object.values(right), ...Object.values(wrong)]
let mistakes: string

/** Compiles all samples at once: the start of the compiler takes longer than its work. */
before(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'worker-types-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const [index, source] of files.entries()) writeFileSync(join(folder, `file${index}.mts`), source)
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2023',
    lib: ['es2023'],
    types: ['node'],
    paths: { '@runyard/worker': [join(root, 'packages/worker/src/index.ts')] },
    allowImportingTsExtensions: true,
    skipLibCheck: true,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.mts'] }))
  mistakes = await new Promise(resolve => {
    execFile(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { cwd: folder }, (_, stdout, stderr) =>
      resolve(stdout + stderr),
    )
  })
  rmSync(folder, { recursive: true })
})

function mistakesIn(source: string): string[] {
  const name = `file${files.indexOf(source)}.mts`
  return mistakes.split('\n').filter(line => line.startsWith(name))
}

describe('types', () => {
  it('every block of TypeScript in the README compiles in strict mode', () => {
    assert.ok(blocks.length >= 5)
    for (const block of blocks) assert.deepEqual(mistakesIn(block), [], block)
    assert.doesNotMatch(readme, /^```js/m, 'a block of JavaScript is not checked')
  })

  it('every kind of handler of an input and an output is taken', () => {
    for (const [what, source] of Object.entries(right)) assert.deepEqual(mistakesIn(source), [], what)
  })

  it('a handler is held to its input and its output', () => {
    for (const [what, source] of Object.entries(wrong)) assert.equal(mistakesIn(source).length, 1, what)
    assert.equal(
      mistakes
        .trim()
        .split('\n')
        .filter(line => !/^(file\d| )/.test(line))
        .join('\n'),
      '',
    )
  })
})
