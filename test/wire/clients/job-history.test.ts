/** What became of jobs, on the command line: in a pipe as on a terminal. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
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
    assert.deepEqual([unsure.code, /say --yes to do it, or --dry-run to count/.test(unsure.stderr)], [64, true])
    assert.equal(await text('jobs', 'retry', 'node-everyday', '--failed', '--yes'), '1 jobs are queued again\n')
    const wrong = await runyard('jobs', 'list', 'node-everyday', '--since', 'lately')
    assert.deepEqual([wrong.code, /--since takes a time ago such as 10m/.test(wrong.stderr)], [64, true])
  })
})
