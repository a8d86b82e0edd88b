import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allowanceOf, findAmbientCalls, findSleeps } from './ambient.ts'
import { assertClean, sources } from './files.ts'

test('only adapters use the real clock, randomness, the network and the process', () => {
  const walled = sources('src/', 'sim/', 'test/').filter(path => allowanceOf(path) !== undefined)
  assertClean(walled, (source, path) => findAmbientCalls(source, allowanceOf(path)))
})

test('no test sleeps on the real clock outside wire and browser', () => {
  const checked = sources('test/').filter(path => !/^test\/(?:wire|browser)\//.test(path))
  assertClean(checked, findSleeps)
})

const ambient = [
  'const x = Date.now()',
  'const clock = { now: Date.now }',
  'new Date()',
  'new Date( )',
  'new Date\n',
  'Date()',
  'performance.now()',
  'Temporal.Now.instant()',
  'setTimeout(f, 1)',
  'globalThis.setTimeout(f, 1)',
  'f(...setTimeout(f, 1))',
  'const t = on ? setTimeout(f, 1) : undefined',
  'setInterval(f, 1)',
  'setImmediate(f)',
  'clearTimeout(t)',
  "import { setTimeout as sleep } from 'node:timers/promises'",
  "import { env } from 'node:process'",
  'AbortSignal.timeout(5)',
  'Math.random()',
  'crypto.randomUUID()',
  'globalThis.crypto.getRandomValues(a)',
  'randomUUID()',
  'randomBytes(4)',
  'await crypto.subtle.digest(a, b)',
  'await fetch(url)',
  'const r = ok ? await fetch(url) : undefined',
  'globalThis.fetch(url)',
  'process.env.HOME',
  "process.env['HOME']",
  'console.log(1)',
  `const text = \`it is \${Date.now()}\``,
]

for (const source of ambient) {
  test(`${JSON.stringify(source)} is found`, () => {
    assert.equal(findAmbientCalls(source).length, 1)
  })
}

const permitted = [
  '// Date.now()',
  '/* setTimeout(f, 1) */',
  "const x = 'Date.now()'",
  'const x = `Math.random()`',
  'const x = /fetch(url)/',
  'new Date(nowMs)',
  'new Date(0).toISOString()',
  'clock.now()',
  'clock.setTimeout(f, 1)',
  'await app.fetch(request)',
  'await app\n  .fetch(request)',
  'app?.fetch(request)',
  'const app = { fetch(request) { return handle(request) } }',
  'interface App {\n  name: string\n  fetch(request: Request): Promise<Response>\n}',
  'interface Random { randomBytes(length: number): Uint8Array }',
  'export function fetch(request: Request): Response { return handle(request) }',
  'let timer: ReturnType<typeof setTimeout>',
  'options.console.log(1)',
  'worker.process.env',
  'prefetch(url)',
]

for (const source of permitted) {
  test(`${JSON.stringify(source)} is allowed`, () => {
    assert.deepEqual(findAmbientCalls(source), [])
  })
}

test('a finding names the line and the call', () => {
  assert.deepEqual(findAmbientCalls('// one\nconst x =\n  Date.now()'), [{ line: 3, what: 'Date.now' }])
})

test('what a file is allowed is not found, the rest is', () => {
  const source = 'console.log(1)\nsetImmediate(f)\nDate.now()'
  assert.deepEqual(findAmbientCalls(source, ['console', 'setImmediate']), [{ line: 3, what: 'Date.now' }])
})

test('a sleep is found in each of its forms', () => {
  const forms = [
    'setTimeout(f, 1)',
    'await new Promise(done => setTimeout(done, 1))',
    "import { setTimeout } from 'timers/promises'",
    'Atomics.wait(a, 0, 0, 10)',
  ]
  assert.deepEqual(
    forms.map(form => findSleeps(form).length),
    [1, 1, 1, 1],
  )
  assert.deepEqual(findSleeps("clock.setTimeout(f, 1)\nconst a = 'setTimeout(f)'"), [])
})

test('adapters, and tests that need them, may use everything', () => {
  const inside = [
    'src/core/jobs/job.ts',
    'src/app.ts',
    'src/drivers/process/process.ts',
    'sim/clock.ts',
    'test/core/jobs/job.test.ts',
  ]
  const outside = [
    'src/system/clock.ts',
    'src/main/server.ts',
    'src/server/listen.ts',
    'src/cli/commands/serve.ts',
    'bench/jobs.ts',
  ]
  const testsOutside = ['test/wire/sdk.test.ts', 'test/browser/a.test.ts', 'test/support/server.ts', 'scripts/test.ts']
  for (const path of inside) assert.deepEqual(allowanceOf(path), [], path)
  for (const path of [...outside, ...testsOutside]) assert.equal(allowanceOf(path), undefined, path)
})
