/** Jobs that were lost twice run alone, so that what ends its workers takes no other job with it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'

const ids = (taken: { json: { id: JobId }[] }) => taken.json.map(({ id }) => id)

/** Ends the worker as a handler does that calls `os._exit(9)`; resolves when its replacement has been started. */
async function die(rig: Rig, worker: RigWorker): Promise<RigWorker> {
  const before = rig.fleet.started.length
  rig.fleet.exit(worker.id, { code: 9 })
  for (let wait = 0; rig.fleet.started.length === before && wait < 100; wait += 1) await rig.clock.advance(100)
  return rig.worker(-1)
}

/** An endpoint whose job was lost twice, with what it was lost with, and a new worker. */
async function withSuspects(rig: Rig, count: number, fields: Record<string, unknown> = {}) {
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1, ...fields })
  const jobs: JobId[] = []
  for (let number = 0; number < count; number += 1) jobs.push(await rig.submit(endpoint))
  const take = { batch: Math.max(2, count) }
  assert.deepEqual(ids(await worker.take(take)), jobs)
  const second = await die(rig, worker)
  assert.deepEqual(ids(await second.take(take)), jobs)
  return { endpoint, jobs, worker: await die(rig, second) }
}

const statusOf = async (rig: Rig, endpoint: EndpointId, job: JobId) => (await rig.job(endpoint, job)).status

test('a job that crashes its workers fails alone, with how they ended and their last output, and other jobs are done', async t => {
  const rig = await openRig(t)
  const { endpoint, jobs, worker } = await withSuspects(rig, 4)
  const [poison, ...neighbours] = jobs as [JobId, ...JobId[]]
  assert.deepEqual(ids(await worker.take({ batch: 4 })), [poison])
  const token = worker.spec.protocolEnv.RUNPOD_AI_API_KEY!
  rig.print(worker.id, 'loading the model', `my token is ${token}`, 'x'.repeat(5_000))
  let next = await die(rig, worker)
  const { status, error } = await rig.job(endpoint, poison)
  assert.equal(status, 'FAILED')
  assert.match(error!, /lost 3 times while it ran this job, the last time because it exited with code 9; /)
  assert.match(
    error!,
    new RegExp(`this was worker ${worker.id}, and its last lines were:\nloading the model\nmy token is`),
  )
  assert.ok(!error!.includes(token), 'tokens are hidden')
  assert.ok(error!.length < 4_000, `the error has ${error!.length} characters`)
  for (const job of neighbours) {
    assert.deepEqual(ids(await next.take({ batch: 4 })), [job])
    await next.done(job)
    assert.equal(await statusOf(rig, endpoint, job), 'COMPLETED')
    next = rig.worker(-1)
  }
})

test('a worker that runs a suspect job gets further jobs as soon as that is done', async t => {
  const rig = await openRig(t)
  const { endpoint, jobs, worker } = await withSuspects(rig, 1)
  assert.deepEqual(ids(await worker.take({ batch: 4 })), jobs)
  const others = [await rig.submit(endpoint), await rig.submit(endpoint)]
  const poll = worker.take({ batch: 3, busy: true })
  await rig.clock.advance(5_000)
  await worker.done(jobs[0]!)
  assert.deepEqual(ids(await poll), others)
})

test('a free worker gets it although a busy one is before it in the poll queue', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 3, workersMax: 3 })
  await rig.clock.advance(100)
  const [busy, second, third] = [rig.worker(0), rig.worker(1), rig.worker(2)]
  const poison = await rig.submit(endpoint)
  assert.equal(await second.takeJob(), poison)
  const poll = busy.take({ batch: 3, busy: true })
  const held = await rig.submit(endpoint)
  assert.deepEqual(ids(await poll), [held])
  const fourth = await die(rig, second)
  assert.equal(await third.takeJob(), poison)
  const fromBusy = busy.take({ batch: 2, busy: true })
  await rig.clock.settle()
  const fromFree = fourth.take()
  await rig.clock.settle()
  rig.fleet.exit(third.id, { code: 9 })
  await rig.clock.advance(40)
  assert.equal((await fromFree).json.id, poison)
  const job = await rig.submit(endpoint)
  assert.deepEqual(ids(await fromBusy), [job], 'the busy one goes on')
})

test('under steady load it does not wait forever: where no worker is free, one is left without other jobs for it', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2, workersMax: 2 })
  await rig.clock.advance(100)
  const [oldest, other] = [rig.worker(0), rig.worker(1)]
  const held = [await rig.submit(endpoint)]
  assert.deepEqual(ids(await oldest.take({ batch: 2 })), held)
  const poison = await rig.submit(endpoint)
  assert.equal(await other.takeJob(), poison)
  const again = await die(rig, other)
  assert.equal(await again.takeJob(), poison)
  // The one that is started in its place takes minutes to load.
  await die(rig, again)
  let most = 0
  let polls = 0
  for (let second = 0; second < 120 && !held.includes(poison); second += 1) {
    await rig.submit(endpoint)
    if (polls === 0) {
      polls += 1
      void oldest.take({ batch: 2, busy: true }).then(taken => {
        polls -= 1
        if (taken.status === 200) held.push(...ids(taken))
      })
    }
    await rig.clock.advance(1_000)
    most = Math.max(most, held.length)
    // Jobs overlap, so that it always has one.
    if (held.length >= 2 || second > 60) await oldest.done(held.shift()!)
  }
  assert.ok(most >= 2, 'it went on with others before')
  assert.deepEqual(held, [poison])
  assert.equal(await statusOf(rig, endpoint, poison), 'IN_PROGRESS')
})

test('explain says why it waits, for the job, and for the endpoint where nothing else waits', async t => {
  const rig = await openRig(t)
  const { endpoint, jobs, worker } = await withSuspects(rig, 2)
  assert.deepEqual(ids(await worker.take({ batch: 2 })), [jobs[0]])
  const { json } = await rig.ask('GET', `/v2/${endpoint}/explain/${jobs[1]}`)
  assert.equal(json.cause, 'runs_alone')
  assert.match(json.summary, /1 queued job runs alone, because its worker was lost twice while it ran/)
  assert.equal((await rig.why(endpoint)).cause, 'runs_alone')
  await rig.submit(endpoint)
  const one = (await rig.ask('GET', `/v2/${endpoint}/explain/${jobs[1]}`)).json
  assert.match(one.summary, /it runs alone, because its worker was lost twice while it ran/)
  const all = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.equal(all.cause, 'max_reached')
  assert.deepEqual(all.notes, ['1 queued job runs alone, because its worker was lost twice while it ran'])
})

test('workers are started for suspect jobs, one for each, within max', async t => {
  const rig = await openRig(t)
  const scaling = { workersMin: 0, workersMax: 3, scalerType: 'REQUEST_COUNT', scalerValue: 10 }
  const endpoint = await rig.endpoint(scaling)
  const jobs = [await rig.submit(endpoint), await rig.submit(endpoint)]
  await rig.clock.advance(100)
  let worker = rig.worker(-1)
  for (const _ of [1, 2]) {
    assert.deepEqual(ids(await worker.take({ batch: 2 })), jobs)
    worker = await die(rig, worker)
  }
  await rig.clock.advance(10_000)
  assert.equal((await rig.alive(endpoint)).length, 2)
  const free = (await rig.alive(endpoint)).map(({ id }) => rig.fleet.started.findIndex(spec => spec.workerId === id))
  const taken = await Promise.all(free.map(index => rig.worker(index).takeJob()))
  assert.deepEqual(taken.sort(), jobs.sort())
})
