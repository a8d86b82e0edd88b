/** `runyard test`: the tests of a worker's `.runpod/tests.json`, on a server of their own or on one that runs. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint } from '../support/client.ts'
import { python, skip } from '../support/python.ts'
import { root, runCommand, startServer } from '../support/server.ts'

const NODE_HANDLER = `import { start } from '@runyard/worker'
start({ handler: ({ input }) => {
  if (input.fail) throw new RangeError(input.fail)
  return process.env.GREETING + input.name
} })`

const PYTHON_HANDLER = `import os, runpod
def handler(job):
    if "fail" in job["input"]:
        raise ValueError(job["input"]["fail"])
    return os.environ["GREETING"] + job["input"]["name"]
runpod.serverless.start({"handler": handler})`

const TESTS = {
  tests: [
    { name: 'greets', input: { name: 'Ada' }, timeout: 60_000 },
    { name: 'fails', input: { fail: 'no luck' }, timeout: 60_000 },
  ],
  config: { gpuTypeId: 'NVIDIA GeForce RTX 4090', gpuCount: 1, env: [{ key: 'GREETING', value: 'Hello ' }] },
}

function worker(file: string, source: string, tests: unknown = TESTS): string {
  const folder = join(temporaryFolder(), 'tested')
  mkdirSync(join(folder, '.runpod'), { recursive: true })
  mkdirSync(join(folder, 'node_modules/@runyard'), { recursive: true })
  symlinkSync(join(root, 'packages/worker'), join(folder, 'node_modules/@runyard/worker'))
  writeFileSync(join(folder, file), source)
  writeFileSync(join(folder, '.runpod/tests.json'), JSON.stringify(tests))
  return folder
}

async function runTests(folder: string, ...args: string[]) {
  const temporary = temporaryFolder()
  const { code, stdout, stderr } = await runCommand(['test', folder, '--json', ...args], { TMPDIR: temporary })
  const left = readdirSync(temporary).filter(name => name.startsWith('runyard'))
  assert.deepEqual(left, [], 'something is left behind')
  const lines = stdout.split('\n').filter(line => line !== '')
  return { code, stderr, results: lines.map(line => JSON.parse(line)) }
}

describe('runyard test', () => {
  test('a handler for Node is tested on a server of its own, which is gone afterwards', async () => {
    const { code, stderr, results } = await runTests(worker('handler.mjs', NODE_HANDLER))
    assert.deepEqual(
      results.map(({ name, passed, status }) => [name, passed, status]),
      [
        ['greets', true, 'COMPLETED'],
        ['fails', false, 'FAILED'],
      ],
    )
    assert.match(results[1].error, /^RangeError: no luck\n {4}at .*handler\.mjs/)
    assert.ok(results.every(({ ms, executionTime }) => ms >= executionTime && executionTime >= 0))
    assert.deepEqual([code, stderr.split('\n').at(-1)], [1, '1 passed, 1 failed'])
  })

  test('a handler for Python is tested likewise', { skip }, async () => {
    const folder = worker('handler.py', PYTHON_HANDLER)
    symlinkSync(dirname(dirname(python)), join(folder, '.venv'))
    const { code, results } = await runTests(folder)
    assert.deepEqual([code, results.map(({ passed }) => passed)], [1, [true, false]])
    assert.match(results[1].error, /ValueError.*no luck/)
  })

  test('a worker that cannot start fails its tests with the reason', async () => {
    const tests = { tests: [{ name: 'starts', input: {} }] }
    const folder = worker('handler.mjs', `console.error('no model'); process.exit(3)`, tests)
    const { code, results } = await runTests(folder)
    assert.deepEqual([code, results.length, results[0].passed], [1, 1, false])
    assert.match(results[0].error, /exited with code 3[\s\S]*no model/)
  })

  test('the tests run on an endpoint of a server that is there, where one is named', async () => {
    const server = await startServer({ args: ['--process-root', root] })
    const env = { GREETING: 'Hi ' }
    const endpoint = await makeEndpoint(server, {
      folder: `${root}/examples/hello-node`,
      env,
      settings: { workersMax: 1 },
    })
    const folder = worker('handler.mjs', 'never run', { tests: [TESTS.tests[0]] })
    const { code, results } = await runTests(folder, '--endpoint', endpoint, '--data-dir', server.dataDir)
    assert.deepEqual([code, results.map(({ passed }) => passed)], [0, [true]])
  })

  test('all mistakes of the file are reported before anything starts', async () => {
    const folder = worker('handler.mjs', NODE_HANDLER, { tests: [{ timeout: 0 }], config: { env: 1 } })
    const { code, stderr } = await runTests(folder)
    assert.equal(code, 65)
    assert.match(stderr, /4 thing\(s\) are wrong in .*tests\.json:\n.*name.*\n.*input.*\n.*timeout.*\n.*config\.env/)
    const none = await runTests(temporaryFolder())
    assert.deepEqual([none.code, /there is no .*tests\.json/.test(none.stderr)], [66, true])
  })
})
