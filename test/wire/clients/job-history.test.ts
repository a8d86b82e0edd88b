/** History of jobs on the command line: in a pipe as on a terminal. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { submit, whenFinal } from '../support/client.ts'
import { fixture, runCommand, type Server, startServer } from '../support/server.ts'

let server: Server

before(async () => {
  server = await startServer({ args: ['--worker', fixture('node-everyday')] })
})

function runyard(...args: string[]) {
  return runCommand(args, { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey })
}

async function text(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runyard(...args)
  assert.equal(code, 0, stderr)
  return stdout
}

describe('a pipe', () => {
  test('gets what a terminal shows, and JSON lines where they are asked for', async () => {
    assert.match(await text('endpoints', 'list'), /^ID +NAME +TYPE .*\nnodeeveryday +node-everyday +QUEUE /)
    assert.match(
      await text('why', 'node-everyday'),
      /^endpoint nodeeveryday \(node-everyday\): nothing_waits\n {2}no job/,
    )
    assert.match(await text('top'), /node-everyday/)
    assert.equal(JSON.parse(await text('endpoints', 'list', '--json')).id, 'nodeeveryday')
    assert.equal((await text('endpoints', 'get', 'node-everyday', '--json')).trim().split('\n').length, 1)
  })
})

describe('runyard jobs', () => {
  test('lists jobs within 80 columns, shows one with its input and error, replays it, and retries many', async () => {
    const failed = await submit(server, 'nodeeveryday', { fail: 'row 17 is empty' })
    await whenFinal(server, 'nodeeveryday', failed)
    const list = await text('jobs', 'list', 'node-everyday', '--failed', '--since', '1h')
    const [head = '', row = ''] = list.split('\n')
    assert.match(head, /^ID +STATUS +AGE +WAITED +RAN$/)
    assert.match(row, new RegExp(`^${failed} +FAILED +\\d+s `))
    assert.ok(
      list.split('\n').every(line => line.length <= 80),
      list,
    )
    assert.match(await text('jobs', 'list', '--failed'), new RegExp(`^${failed} +nodeeveryday +FAILED `, 'm'))
    assert.match(await text('jobs', 'list', 'node-everyday', '--error', 'no such error'), /^there are no such jobs$/m)
    const shown = await text('jobs', 'get', failed)
    assert.match(shown, /^status {5}FAILED$/m)
    assert.match(shown, /^input {6}\{"fail":"row 17 is empty"\}$/m)
    assert.match(shown, /^error {6}fingerprint [0-9a-f]{16}\n {2}.*row 17 is empty/m)
    const replayed = JSON.parse(await text('jobs', 'replay', failed, '--input', '{"name":"Ada"}', '--json'))
    assert.notEqual(replayed.id, failed)
    await whenFinal(server, 'nodeeveryday', replayed.id)
    const dry = await text('jobs', 'retry', 'node-everyday', '--failed', '--dry-run')
    assert.equal(dry, '1 jobs would be queued again\n')
    const unsure = await runyard('jobs', 'retry', 'node-everyday', '--failed')
    assert.deepEqual([unsure.code, /say --yes to do it/.test(unsure.stderr)], [64, true])
    assert.equal(await text('jobs', 'retry', 'node-everyday', '--failed', '--yes'), '1 jobs are queued again\n')
    const wrong = await runyard('jobs', 'list', 'node-everyday', '--since', 'lately')
    assert.deepEqual([wrong.code, /--since takes a time ago such as 10m/.test(wrong.stderr)], [64, true])
  })
})

describe('commands for the rest of the API', () => {
  test('a file of requests is a batch, which is listed and read', async () => {
    const file = join(temporaryFolder(), 'requests.jsonl')
    writeFileSync(file, [1, 2, 3].map(n => `{"input":{"word":"w${n}"}}\n`).join(''))
    const made = JSON.parse(await text('batches', 'create', 'node-everyday', '--requests', file, '--name', 'three'))
    assert.deepEqual([made.requestTotal, made.name], [3, 'three'])
    assert.match(await text('batches', 'list', 'node-everyday'), new RegExp(`^${made.id} `, 'm'))
    assert.match(await text('batches', 'list'), new RegExp(`^${made.id} +nodeeveryday +`, 'm'))
    const results = (await text('batches', 'requests', 'node-everyday', made.id)).trim().split('\n')
    assert.equal(results.length, 3)
    writeFileSync(file, '{"input":{}}\n{"inptu":{}}\n')
    const wrong = await runyard('batches', 'create', 'node-everyday', '--requests', file)
    assert.deepEqual([wrong.code, wrong.stderr], [65, 'runyard: line 2 must be an object with an "input"'])
  })

  test('registries are made without their password in the arguments, listed and deleted', async () => {
    const file = join(temporaryFolder(), 'password')
    writeFileSync(file, 'planted')
    const flags = ['--name', 'mine', '--username', 'me', '--password', `@${file}`]
    const made = await text('registries', 'create', ...flags)
    assert.equal(made.includes('planted'), false)
    const { id } = JSON.parse(made)
    assert.match(await text('registries', 'list'), new RegExp(`^${id} +mine$`, 'm'))
    assert.equal((await runyard('registries', 'update', id)).code, 2)
    assert.match(await text('registries', 'delete', id), /is deleted/)
  })

  test('releases say what changed, the catalogue what there is, and a purge how many it cancelled', async () => {
    await text('endpoints', 'update', 'node-everyday', '--env', 'A=1')
    assert.match(await text('endpoints', 'releases', 'node-everyday'), /^VERSION +AGE +WORKERS +CHANGED\n2 .* env/)
    assert.match(await text('endpoints', 'releases', 'node-everyday', '2'), /^env.*\n {2}- .*\n {2}\+ .*1/)
    assert.match(await text('endpoints', 'releases', 'node-everyday', '1..2'), /^env.*\n {2}- .*\n {2}\+ .*1/)
    assert.equal((await runyard('endpoints', 'releases', 'node-everyday', '2..1')).code, 64)
    assert.equal((await runyard('endpoints', 'releases', 'node-everyday', '99')).code, 66)
    assert.match(await text('endpoints', 'releases', 'node-everyday', '2'), /configuration\n.*env\.A: 1\n/s)
    assert.match(
      await text('endpoints', 'rollback', 'node-everyday'),
      /^node-everyday goes back to release 1 with the new release 3\nenv/,
    )
    assert.equal((await runyard('endpoints', 'rollback', 'node-everyday', '99')).code, 66)
    assert.equal((await runyard('endpoints', 'promote', 'node-everyday')).code, 65)
    const alone = await runyard('endpoints', 'update', 'node-everyday', '--max', '1', '--env', 'A=2', '--canary', '10')
    assert.equal(alone.code, 65)
    assert.match(alone.stderr, /^runyard: --canary 10 needs a --max of at least 2: /)
    assert.match(await text('catalog', 'gpus'), /^NVIDIA GeForce RTX 4090 +RTX 4090 +ADA_24 +24 /m)
    assert.match(await text('catalog', 'cpus'), /^cpu3g /m)
    await text('endpoints', 'update', 'node-everyday', '--max', '0')
    await submit(server, 'nodeeveryday', {})
    assert.equal((await runyard('jobs', 'purge', 'node-everyday')).code, 64)
    assert.equal(await text('jobs', 'purge', 'node-everyday', '--yes'), '1 jobs are cancelled\n')
  })
})
