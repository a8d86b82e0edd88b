/** The commands that show and change things, as a person and a script use them. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { fixture, runCommand, type Server, startServer } from './support/server.ts'

let server: Server

before(async () => {
  server = await startServer({ args: ['--worker', fixture('node-everyday')] })
})

async function runyard(...args: string[]) {
  return runCommand(args, { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey })
}

async function shown(...args: string[]) {
  const { code, stdout, stderr } = await runyard(...args)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

describe('commands for resources', () => {
  test('an endpoint is created, listed, read, changed and deleted', async () => {
    const flags = [
      '--image',
      'python:3.13',
      '--gpu',
      'ADA_24,AMPERE_24',
      '--max',
      '2',
      '--env',
      'A=1',
      '--env',
      'B=x=y',
    ]
    const made = await shown('endpoints', 'create', '--name', 'mine', ...flags, '--set', 'gpu.count=2')
    assert.deepEqual([made.type, made.gpu.pools, made.gpu.count], ['QUEUE', ['ADA_24', 'AMPERE_24'], 2])
    assert.deepEqual([made.env, made.workers.max], [{ A: '1', B: 'x=y' }, 2])
    const list = (await runyard('endpoints', 'list')).stdout.trim().split('\n')
    assert.ok(list.map(line => JSON.parse(line).id).includes(made.id))
    const changed = await shown('endpoints', 'update', made.id, '--max', '0', '--set', 'timeout=60000')
    assert.deepEqual([changed.workers, changed.timeout], [{ ...made.workers, max: 0 }, 60_000])
    assert.deepEqual(await shown('endpoints', 'get', made.id), changed)
    assert.deepEqual(await shown('endpoints', 'delete', made.id), { deleted: made.id })
    const gone = await runyard('endpoints', 'get', made.id)
    assert.deepEqual([gone.code, gone.stderr], [66, `runyard: endpoint ${made.id} not found`])
  })

  test('all that is wrong with a request is told, one line each, with an exit code for bad data', async () => {
    const { code, stderr } = await runyard('endpoints', 'create', '--name', 'x', '--set', 'bogus=1')
    assert.equal(code, 65)
    assert.deepEqual(stderr.split('\n').slice(1), [
      "  $: additional properties 'bogus' not allowed",
      '  $.image: is required where there is no templateId',
      '  $: exactly one of gpu and cpu is needed',
    ])
    assert.equal((await runyard('endpoints', 'create', '--max', 'many')).code, 64)
  })

  test('a key that is created works with what it may do, until it is disabled or revoked', async () => {
    const key = await shown('keys', 'create', '--name', 'reader', '--scope', '{"type":"read-only"}')
    const as = (...args: string[]) => runCommand(args, { RUNYARD_URL: server.url, RUNYARD_API_KEY: key.key })
    assert.equal((await as('endpoints', 'list')).code, 0)
    const refused = await as('templates', 'create', '--name', 't', '--image', 'i')
    assert.deepEqual([refused.code, refused.stderr], [77, 'runyard: this API key has no write right for management'])
    await shown('keys', 'disable', key.id)
    assert.equal((await as('endpoints', 'list')).code, 77)
    await shown('keys', 'enable', key.id)
    assert.equal((await as('endpoints', 'list')).code, 0)
    await shown('keys', 'revoke', key.id)
    assert.equal((await as('endpoints', 'list')).code, 77)
    const { stdout } = await runyard('keys', 'list')
    assert.equal(stdout.includes(key.key), false)
  })

  test('the value of a secret is never shown', async () => {
    const secret = await shown('secrets', 'create', '--name', 'token', '--value', 'hunter2', '--description', 'd')
    const all = JSON.stringify([secret, (await runyard('secrets', 'list')).stdout])
    assert.equal(all.includes('hunter2'), false)
    assert.equal(secret.name, 'token')
  })
})

describe('runyard run', () => {
  test('it waits for the job and prints it, and ends with 1 when it did not complete', async () => {
    const [endpoint] = (await runyard('endpoints', 'list')).stdout.trim().split('\n')
    const { id } = JSON.parse(endpoint!)
    const done = await runyard('run', id, '--input', '{"name":"Ada"}')
    assert.deepEqual([done.code, JSON.parse(done.stdout).status], [0, 'COMPLETED'])
    const bad = await runyard('run', id, '--input', '{"name"')
    assert.deepEqual([bad.code, bad.stderr.startsWith('runyard: --input is not JSON')], [65, true])
    assert.equal((await runyard('run', 'nothing', '--input', '{}')).code, 66)
    const detached = await runyard('run', id, '--input', '{}', '--detach')
    assert.equal(JSON.parse(detached.stdout).status, 'IN_QUEUE')
  })
})

test('the completion script knows commands, their verbs and their options', async () => {
  const { stdout } = await runyard('completion', 'bash')
  for (const word of ['endpoints', 'create', '--follow', 'completion']) assert.ok(stdout.includes(word), word)
})
