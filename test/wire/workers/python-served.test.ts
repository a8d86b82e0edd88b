/** The official Python client against the development server of our own worker SDK. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { skip } from '../support/python.ts'
import { callAll } from '../support/python-surface.ts'
import { fixture } from '../support/server.ts'
import { until } from '../support/until.ts'

const NUMBERS = [{ number: 0 }, { number: 1 }, { number: 2 }, { number: 3 }]
const COUNTERS = ['completed', 'failed', 'inProgress', 'inQueue', 'retried']
const STATES = ['idle', 'initializing', 'ready', 'running', 'throttled', 'unhealthy']

/** A handler with `--rp_serve_api`; its address. */
async function serve(): Promise<string> {
  const args = ['--rp_serve_api', '--rp_api_host', '127.0.0.1', '--rp_api_port', '0']
  const env = { PATH: process.env.PATH ?? '', HOME: temporaryFolder() }
  const worker = spawn(process.execPath, [`${fixture('node-everyday')}/handler.mjs`, ...args], { env })
  atEnd(() => worker.kill('SIGKILL'))
  let said = ''
  for (const output of [worker.stdout, worker.stderr]) output.setEncoding('utf8').on('data', text => (said += text))
  return until('the development server', () => /is at (http:\S+),/.exec(said)?.[1])
}

describe('the official Python client and --rp_serve_api', { skip, concurrency: 2 }, () => {
  const servers: Record<string, string> = {}

  before(async () => {
    // One for each test, since they run at once and empty the queue.
    for (const part of ['sync', 'async']) servers[part] = await serve()
  })

  const client = (part: string) =>
    callAll(part, { url: servers[part] as string, key: 'any key', endpoints: ['mymodel', 'nosuch'] })

  test('run, run_sync, status, output, stream, cancel, purge_queue and health work', async () => {
    const seen = await client('sync')
    assert.deepEqual([seen.once, seen.impatient.error, seen.impatient.text], [null, 'TimeoutError', 'Job timed out.'])
    assert.deepEqual([seen.output, seen.status], [{ echo: { a: 1 } }, 'COMPLETED'])
    assert.deepEqual([seen.streamed, seen.broken], [NUMBERS, NUMBERS.slice(0, 1)])
    assert.deepEqual([seen.brokenStatus, seen.brokenOutput], ['FAILED', null])
    assert.deepEqual([seen.purged, seen.purgedStatus], [{ removed: 1, status: 'completed' }, 'CANCELLED'])
    assert.deepEqual([seen.cancel.status, seen.cancelledOutput, seen.failedSync], ['CANCELLED', null, null])
    const wrapped = [{ c: 3 }, { c: 3 }, {}, { input: {} }]
    assert.deepEqual(
      seen.wrapped,
      wrapped.map(echo => ({ echo })),
    )
    assert.deepEqual(Object.keys(seen.health.jobs).sort(), COUNTERS)
    assert.deepEqual(Object.keys(seen.health.workers).sort(), STATES)
  })

  test('the asynchronous client does the same', async () => {
    const seen = await client('async')
    assert.deepEqual([seen.atOnce.error, seen.impatient.error], ['TimeoutError', 'TimeoutError'])
    assert.deepEqual([seen.output, seen.status], [{ echo: { a: 1 } }, 'COMPLETED'])
    assert.deepEqual([seen.streamed, seen.streamedStatus], [NUMBERS, 'COMPLETED'])
    assert.deepEqual([seen.purged, seen.purgedStatus], [{ removed: 1, status: 'completed' }, 'CANCELLED'])
    assert.deepEqual([seen.cancel.status, seen.cancelled], ['CANCELLED', 'CANCELLED'])
    assert.deepEqual(Object.keys(seen.health.jobs).sort(), COUNTERS)
  })
})
