/** Real processes that are paused in the middle of a job, on CPUs and on a card of the driver library for tests. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import { root, rootUrl, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Counts to a number in steps of 20 ms of work, and answers with a checksum of all steps and its process. */
const HANDLER = `import { start } from '${rootUrl}/packages/worker/index.js'
await start({ handler: async ({ input }) => {
  let sum = 0
  for (let step = 1; step <= input.steps; step += 1) {
    const until = performance.now() + 2
    while (performance.now() < until);
    sum = (sum * 33 + step) >>> 0
    await new Promise(done => setTimeout(done, 18))
  }
  return { pid: process.pid, sum }
} })`

function sumOf(steps: number): number {
  let sum = 0
  for (let step = 1; step <= steps; step += 1) sum = (sum * 33 + step) >>> 0
  return sum
}

describe('paused workers', { timeout: patient(60_000) }, () => {
  test('a job of high priority runs while one of low priority is paused, which ends with the same output', async t => {
    const folder = temporaryFolder()
    const image = join(folder, 'image')
    mkdirSync(image)
    writeFileSync(join(image, 'handler.mjs'), HANDLER)
    const args = ['--process-root', folder, '--process-root', root, '--max-workers', '1']
    const server = await startServer({ args })
    t.after(() => server.stop())
    const common = { workersMax: 1, idleTimeout: 1, scalerType: 'QUEUE_DELAY', scalerValue: 1 }
    const make = (settings: object) => makeEndpoint(server, { folder: image, settings: { ...common, ...settings } })
    const batch = await make({ priority: 'low', preemptible: true })
    const chat = await make({ priority: 'high' })
    const low = await submit(server, batch, { steps: 120 })
    await until('the job to run', async () => (await statusOf(server, batch, low)).status === 'IN_PROGRESS')
    const askedMs = Date.now()
    const high = await runJob(server, chat, { steps: 5 })
    assert.equal(high.output.sum, sumOf(5))
    assert.ok(Date.now() - askedMs < patient(5_000))
    assert.equal((await statusOf(server, batch, low)).status, 'IN_PROGRESS')
    const done = await whenFinal(server, batch, low)
    assert.deepEqual([done.status, done.output.sum, done.retries ?? 0], ['COMPLETED', sumOf(120), 0])
    assert.equal(server.events('worker.paused').length, 1)
    assert.equal(server.events('worker.pause_ended').length, 1)
    assert.equal(server.events('worker.created').length, 2, 'the paused process went on')
  })
})
