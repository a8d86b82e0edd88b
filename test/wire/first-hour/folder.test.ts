/** The first hour of a user with a folder: it becomes an endpoint, is changed, crashes, and is fixed. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, submit, whenFinal } from '../support/client.ts'
import { killAll } from '../support/processes.ts'
import { programFile, root, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A folder with nothing but a handler that returns a word: the server gives it the package that it imports. */
function makeFolder(word: string): string {
  const folder = join(temporaryFolder(), 'my-model')
  mkdirSync(folder)
  writeHandler(folder, `'${word}'`)
  return folder
}

function writeHandler(folder: string, body: string): void {
  writeFileSync(
    join(folder, 'handler.mjs'),
    `import { start } from '@runyard/worker'\nstart({ handler: () => ${body} })\n`,
  )
}

/** Workers are in cages where this machine can make them, as for somebody who says nothing about it. */
const AS_STARTED = { RUNYARD_WORKER_SANDBOX: '' }

async function answerOf(server: Server): Promise<unknown> {
  return (await ask(server, '/v2/mymodel/runsync?wait=30000', { body: { input: {} } })).json.output
}

function runyard(server: Server, ...args: string[]) {
  return runCommand([...args, '--json'], { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey })
}

describe('a folder', () => {
  test('has new workers after each change of its files while it is watched', async () => {
    const folder = makeFolder('first')
    const args = ['--worker', folder, '--watch', '--gpu', 'none', '--max-workers', '2']
    const server = await startServer({ args, env: AS_STARTED })
    assert.equal(await answerOf(server), 'first')
    writeHandler(folder, "'second'")
    await until('the new code', async () => (await answerOf(server)) === 'second')
    writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
    await until('the word about packages', () => server.events('folder.packages_changed').length === 1)
    assert.match(
      String(server.events('folder.packages_changed')[0]?.run),
      /^npm install --prefix .*my-model, then runyard/,
    )
    const shown = (await runyard(server, 'endpoints', 'get', 'my-model')).stdout
    assert.equal(JSON.parse(shown).workers.max, 2)
  })

  test('that crashes is fixed with a restart, without the wait for the next try', async () => {
    const folder = makeFolder('first')
    writeFileSync(join(folder, 'handler.mjs'), "throw new Error('no weights')\n")
    const server = await startServer({ args: ['--worker', folder] })
    const id = await submit(server, 'mymodel', {})
    await until('several crashes', () => server.events('worker.exited').length >= 4, 60_000)
    writeHandler(folder, "'mended'")
    const { code, stdout } = await runyard(server, 'endpoints', 'restart', 'my-model')
    assert.deepEqual([code, JSON.parse(stdout)], [0, { id: 'mymodel', version: 2 }])
    const before = Date.now()
    assert.equal((await whenFinal(server, 'mymodel', id)).output, 'mended')
    assert.ok(Date.now() - before < 7_000, 'the fourth crash delays the next start by 8 s')
  })

  test('keeps its endpoint and what was changed over a restart of the server', async () => {
    const folder = makeFolder('first')
    writeHandler(folder, 'process.env.WORD')
    const dataDir = temporaryFolder()
    const first = await startServer({ dataDir, args: ['--worker', folder], env: AS_STARTED })
    assert.equal((await runyard(first, 'endpoints', 'update', 'my-model', '--env', 'WORD=kept')).code, 0)
    await first.stop()
    const second = await startServer({ dataDir, args: ['--worker', folder], env: AS_STARTED })
    assert.equal(await answerOf(second), 'kept')
    const { stdout } = await runyard(second, 'endpoints', 'list')
    assert.equal(stdout.trim().split('\n').length, 1)
  })

  test('runs a command of its own, given behind --', async () => {
    const folder = makeFolder('by the handler')
    writeFileSync(
      join(folder, 'serve.mjs'),
      "import { start } from '@runyard/worker'\nstart({ handler: () => process.argv.slice(2) })\n",
    )
    const server = await startServer({
      args: ['--worker', folder, '--', process.execPath, 'serve.mjs', 'two words', "it's"],
    })
    assert.deepEqual(await answerOf(server), ['two words', "it's"])
  })
})

describe('a name', () => {
  test('stands for its endpoint in every command, and a mistyped one is said', async () => {
    const server = await startServer({ args: ['--worker', makeFolder('by name')] })
    const run = await runyard(server, 'run', 'my-model', '--input', '{}')
    assert.equal(run.code, 0, run.stderr)
    assert.match(run.stdout, /by name/)
    for (const command of [['why'], ['logs'], ['jobs', 'list'], ['workers', 'list'], ['endpoints', 'get'], ['usage']]) {
      const { code, stderr } = await runyard(server, ...command, 'my-model')
      assert.equal(code, 0, `${command}: ${stderr}`)
    }
    const typo = await runyard(server, 'run', 'my-modle', '--input', '{}')
    assert.deepEqual([typo.code, /did you mean my-model\?$/.test(typo.stderr)], [66, true], typo.stderr)
    const gpu = await runyard(server, 'endpoints', 'update', 'my-model', '--gpu', 'RTX 4O90')
    assert.match(gpu.stderr, /did you mean RTX 4090\?$/)
    const changed = JSON.parse(
      (await runyard(server, 'endpoints', 'update', 'my-model', '--gpu', 'L4', '--max', '1')).stdout,
    )
    assert.deepEqual([changed.gpu.pools, changed.workers.max], [['AMPERE_24'], 1])
    const back = JSON.parse((await runyard(server, 'endpoints', 'update', 'my-model', '--gpu', 'none')).stdout)
    assert.equal(back.cpu[0].id, 'cpu3g')
  })
})

describe('a folder by a relative path', () => {
  test('is saved by its absolute path: of the terminal by the command, of the first process root by the API', async () => {
    const folder = makeFolder('relative')
    const server = await startServer({ args: ['--process-root', dirname(folder)] })
    const cpu = JSON.stringify([{ id: 'cpu3g', vcpuCount: 2 }])
    const path = relative(root, folder)
    const command = await runyard(
      server,
      'endpoints',
      'create',
      '--name',
      'one',
      '--image',
      `dir:${path}`,
      '--cpu',
      cpu,
    )
    assert.equal(command.code, 0, command.stderr)
    const created = JSON.parse(command.stdout)
    assert.equal(created.image, `dir:${folder}`)
    const image = { image: `dir:./${basename(folder)}` }
    const changed = await ask(server, `/v2/serverless/${created.id}`, { method: 'PATCH', body: image })
    assert.equal(changed.json.image, `dir:${folder}`)
    const body = { name: 'two', ...image, serverless: true }
    const template = await ask(server, '/v2/templates', { body })
    assert.equal(template.json.image, `dir:${folder}`, JSON.stringify(template.json))
  })
})

/** A machine where the kernel makes no namespaces for programs without rights, as in most containers. */
const NO_NAMESPACES = ['unshare', '-Ur', 'sh', '-c', 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', 'sh']
const cannotMakeOne = spawnSync(NO_NAMESPACES[0]!, [...NO_NAMESPACES.slice(1), 'true']).status !== 0

test('a machine that makes no cages still runs a folder, and the start says why and what a worker can read then', {
  skip: cannotMakeOne && 'no namespace can be made here',
}, async () => {
  const dataDir = temporaryFolder()
  const serve = [programFile(), 'serve', '--port', '0', '--docker', 'off', '--data-dir', dataDir]
  const [program = '', ...words] = [...NO_NAMESPACES, ...serve, '--worker', makeFolder('open')]
  const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  const ended = once(child, 'exit')
  try {
    let said = ''
    child.stdout.setEncoding('utf8').on('data', text => (said += text))
    await until('the start', () => said.includes('Try it'))
    assert.match(said, /^Workers run without a cage \(bubblewrap .*\): a worker can read and change every file/m)
    assert.ok(said.includes(`the keys in ${dataDir} among them`), said)
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)![0]
    const authorization = `Bearer ${readFileSync(join(dataDir, 'api-key'), 'utf8').trim()}`
    const headers = { authorization, 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify({ input: {} }) }
    const response = await fetch(`${url}/v2/mymodel/runsync?wait=30000`, request)
    assert.equal(((await response.json()) as { status: string }).status, 'COMPLETED')
  } finally {
    killAll(dataDir)
    process.kill(-child.pid!, 'SIGKILL')
    await ended
  }
})
