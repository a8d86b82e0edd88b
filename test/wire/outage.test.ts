/** What becomes of the work of an official Python worker while its server is away. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { temporaryFolder } from './support/cleanup.ts'
import { makeEndpoint, runJob, statusOf, submit, whenFinal } from './support/client.ts'
import { python, skip } from './support/python.ts'
import { fixture, startServer } from './support/server.ts'
import { sleep, timed, until } from './support/until.ts'

const START_MS = 60_000

describe('an official Python worker whose server is away for 5 s', { skip, concurrency: 2 }, () => {
  async function killedWhileRunning(seconds: number) {
    const dataDir = temporaryFolder()
    const notes = temporaryFolder()
    const first = await startServer({ dataDir })
    const endpoint = await makeEndpoint(first, {
      ...{ folder: fixture('python-worker'), args: `"${python}" handler.py` },
      env: { WIRE_FOLDER: notes },
      settings: { workersMax: 1, idleTimeout: 3600 },
    })
    const id = await submit(first, endpoint, { sleepOnce: seconds })
    await until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)
    const { workerId } = await statusOf(first, endpoint, id)
    await first.kill9()
    await sleep(5_000)
    return { second: await startServer({ dataDir, port: first.port }), endpoint, id, workerId }
  }

  test('a job that is still running then is done by the worker that has it', async () => {
    const { second, endpoint, id, workerId } = await killedWhileRunning(9)
    const done = await whenFinal(second, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.workerId, done.retries], ['COMPLETED', workerId, undefined])
    assert.equal((await runJob(second, endpoint, {})).workerId, workerId, 'and the worker stays')
    await second.stop()
  })

  test('a result that the SDK gave up is missed within seconds, and the job is done by another worker', async () => {
    const { second, endpoint, id, workerId } = await killedWhileRunning(2)
    const { ms } = await timed(() =>
      until('the loss to be seen', async () => (await statusOf(second, endpoint, id)).retries === 1, 10_000),
    )
    assert.ok(ms < 3_000, `${Math.round(ms)} ms`)
    const done = await whenFinal(second, endpoint, id, START_MS)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
    assert.notEqual(done.workerId, workerId)
    await second.stop()
  })
})
