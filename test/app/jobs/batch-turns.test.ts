import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { RigBatches } from '../../support/batches.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

/** Duration of every job. */
const TAKES_MS = 1_000

/** Workers that take a job, work for a second and finish it, for as long as they are asked to. */
async function work(rig: Rig, workers: readonly RigWorker[], until: () => boolean): Promise<void> {
  const loop = async (worker: RigWorker) => {
    while (!until()) {
      const taken = await worker.take()
      if (taken.status !== 200) continue
      await new Promise<void>(resolve => void rig.clock.after(TAKES_MS, resolve))
      await worker.done(taken.json.id, { output: 1 })
    }
  }
  const loops = workers.map(loop)
  for (let n = 0; n < 100_000 && !until(); n += 1) await rig.clock.advance(TAKES_MS)
  await rig.clock.advance(60_000)
  await Promise.all(loops)
}

async function withWorkers(rig: Rig, count: number): Promise<{ endpoint: EndpointId; workers: RigWorker[] }> {
  const endpoint = await rig.endpoint({ workersMin: count, workersMax: count })
  await rig.clock.advance(100)
  return { endpoint, workers: Array.from({ length: count }, (_, index) => rig.worker(index)) }
}

test('while a batch of 2000 requests runs, a job waits for at most one of them and what was running', async t => {
  const rig = await openRig(t)
  const { endpoint, workers } = await withWorkers(rig, 2)
  const batches = new RigBatches(rig, endpoint)
  const id = await batches.running(2_000)
  const jobs: JobId[] = []
  let done = false
  const submitting = (async () => {
    for (let n = 0; n < 20; n += 1) {
      await new Promise<void>(resolve => void rig.clock.after(7_300, resolve))
      jobs.push(await rig.submit(endpoint, { input: {} }))
    }
    await new Promise<void>(resolve => void rig.clock.after(10_000, resolve))
    done = true
  })()
  await work(rig, workers, () => done)
  await submitting
  for (const job of jobs) {
    const { status, delayTime } = (await rig.status(endpoint, job)).json
    assert.equal(status, 'COMPLETED')
    assert.ok(delayTime <= 2 * TAKES_MS, `${delayTime}`)
  }
  const [, , , completed] = await batches.counts(id)
  assert.ok(completed > 250, 'the batch went on meanwhile')
})

test('two batches share the workers, however much later the second one began', async t => {
  const rig = await openRig(t)
  const { endpoint, workers } = await withWorkers(rig, 3)
  const batches = new RigBatches(rig, endpoint)
  const large = await batches.running(2_000)
  const early = rig.clock.now() + 100_000
  await work(rig, workers, () => rig.clock.now() > early)
  const [, , , before] = await batches.counts(large)
  const small = await batches.running(60)
  let left = 60
  const watching = (async () => {
    while (left > 0) {
      await new Promise<void>(resolve => void rig.clock.after(TAKES_MS, resolve))
      const [, total, , completed] = await batches.counts(small)
      left = total - completed
    }
  })()
  const startedMs = rig.clock.now()
  await work(rig, workers, () => left === 0)
  await watching
  const [, , , after] = await batches.counts(large)
  const share = after - before
  assert.ok(share >= 55 && share <= 70, `the large one had ${share} turns while the small one had 60`)
  const { requests } = await batches.page(small)
  const endedMs = Math.max(...requests.map((request: { completedAt: number }) => request.completedAt))
  assert.ok(endedMs - startedMs <= 50_000, `120 requests by three workers take about 40 s: ${endedMs - startedMs}`)
})

test('a batch is not starved by jobs that arrive faster than they are done', async t => {
  const rig = await openRig(t)
  const { endpoint, workers } = await withWorkers(rig, 1)
  const batches = new RigBatches(rig, endpoint)
  for (let n = 0; n < 30; n += 1) await rig.submit(endpoint)
  const id = await batches.running(5)
  let done = false
  const flood = (async () => {
    while (!done) {
      await new Promise<void>(resolve => void rig.clock.after(TAKES_MS / 2, resolve))
      await rig.submit(endpoint)
      if (rig.clock.elapsedMs > 900_000) done = true
    }
  })()
  await work(rig, workers, () => done)
  await flood
  const [, , , completed] = await batches.counts(id)
  assert.ok(completed >= 4, `${completed}`)
})

test('a worker that takes several jobs at once takes them in turns', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const batches = new RigBatches(rig, endpoint)
  const [a, b] = [await batches.running(10), await batches.running(10)]
  const jobs = [await rig.submit(endpoint), await rig.submit(endpoint)]
  const taken = (await worker.take({ batch: 6 })).json as { id: JobId; batchId?: string }[]
  const of = (batch?: string) => taken.filter(job => job.batchId === batch).length
  assert.deepEqual([of(a), of(b), of()], [2, 2, 2])
  assert.deepEqual(
    taken.filter(job => job.batchId === undefined).map(({ id }) => id),
    jobs,
  )
})
