/** Real processes that are paused in the middle of a job, on CPUs and on a card of the driver library for tests. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { openCardMachine, rightOutput, watchedJob } from '../support/card-machine.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
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

describe('paused workers', { timeout: patient(120_000) }, () => {
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

  test('a job in mid-work leaves the only card to an urgent one, and goes on with its process and its memory', {
    skip: noFakeGpus,
  }, async t => {
    const { folder, options, endpoint, usedMib } = openCardMachine(t)
    const server = await startServer(options)
    t.after(() => server.stop())
    const scaling = { scalerType: 'REQUEST_COUNT', scalerValue: 1 }
    const batch = await endpoint(server, { ...scaling, priority: 'low', preemptible: true })
    const chat = await endpoint(server, { ...scaling, priority: 'high' })
    // Both jobs take as long as the test wants.
    const [low, high] = [watchedJob(folder, 'low'), watchedJob(folder, 'high')]
    const lowJob = await submit(server, batch, low.input)
    const { pid } = await until('the job to work', () => low.seen())
    const highJob = await submit(server, chat, high.input)
    const urgent = await until('the urgent job to work', () => high.seen())
    const before = low.seen()
    assert.equal(server.events('worker.suspended').length, 1)
    assert.equal(await usedMib(), 1_536, 'the urgent worker alone is on the card')
    await until('some more steps', () => (high.seen()?.steps ?? 0) > urgent.steps + 20)
    assert.deepEqual(low.seen(), before, 'the paused process stands still')
    assert.equal((await statusOf(server, batch, lowJob)).status, 'IN_PROGRESS')
    high.end()
    const { status, output } = await whenFinal(server, chat, highJob)
    assert.deepEqual([status, output], ['COMPLETED', rightOutput(urgent.pid, output.steps)])
    await until('the paused job to go on', () => (low.seen()?.steps ?? 0) > (before?.steps ?? 0))
    low.end()
    const done = await whenFinal(server, batch, lowJob)
    assert.deepEqual([done.status, done.output], ['COMPLETED', rightOutput(pid, done.output.steps)])
    assert.equal((await ask(server, `/v2/${batch}/requests/${lowJob}`)).json.attempts, 1)
    const happened = ['worker.paused', 'worker.suspended', 'worker.pause_ended'].map(name => server.events(name).length)
    assert.deepEqual(happened, [1, 1, 1])
  })
})
