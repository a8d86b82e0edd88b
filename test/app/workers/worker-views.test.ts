import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import type { Placement } from '../../../src/core/workers/placement.ts'
import { openRig, type Rig, type RigWorker } from '../../support/rig.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'

const UNFIT = '&status=unhealthy&check=gpu_check&reason=RuntimeError%3A%20no%20card'

/** Views of the workers of an endpoint on every surface. */
async function looks(rig: Rig, id: EndpointId) {
  const ask = async (path: string) => (await rig.ask('GET', path)).json
  const pods = `{ myself { endpoint(id: "${id}") { pods { id desiredStatus } } } }`
  const top = (await ask('/ops/top')).endpoints.find((one: { id: string }) => one.id === id)
  return {
    list: await ask(`/v2/serverless/${id}/workers`),
    health: await ask(`/v2/${id}/health`),
    metrics: await ask(`/v2/${id}/metrics`),
    explain: await ask(`/v2/${id}/explain`),
    v1: await ask(`/v1/endpoints/${id}?includeWorkers=true`),
    pods: (await rig.graphql(pods)).myself.endpoint.pods as { id: string; desiredStatus: string }[],
    top,
  }
}

type Row = { readonly id: string; readonly status: string; readonly phase: string }

async function assertAgreed(rig: Rig, id: EndpointId, what: string): Promise<void> {
  const { list, health, metrics, explain, v1, pods, top } = await looks(rig, id)
  const rows = list.workers as Row[]
  const { running, idle, initializing, throttled, unhealthy, total } = list.summary
  assert.equal(running + idle + initializing + throttled + unhealthy, total, what)
  assert.equal(rows.length, total, what)
  const { ready, ...counts } = health.workers
  assert.deepEqual(counts, { running, idle, initializing, throttled, unhealthy }, what)
  assert.deepEqual(metrics.workers, health.workers, what)
  assert.equal(metrics.readyWorkers.length, ready, what)
  assert.deepEqual(top.summary, { ...list.summary, ready }, what)
  assert.deepEqual(
    (top.workers as Row[]).map(row => [row.id, row.status, row.phase]),
    rows.map(row => [row.id, row.status, row.phase]),
    what,
  )
  const there = rows.filter(({ phase }) => phase !== 'exited' && phase !== 'queued').map(row => row.id)
  for (const others of [pods, v1.workers, explain.workers] as { id: string }[][]) {
    assert.deepEqual(others.map(worker => worker.id).sort(), [...there].sort(), what)
  }
  const ofReady = rows.filter(({ id: one }) => metrics.readyWorkers.includes(one))
  assert.ok(
    ofReady.every(({ status, phase }) => status === 'RUNNING' || (status === 'IDLE' && phase === 'ready')),
    what,
  )
}

test('whatever happens to workers, every surface shows and counts the same ones', async t => {
  const rig = await openRig(t, { onTerminate: () => {} })
  const random = createSeededRandom(7)
  const pick = (below: number) => random.bytes(1)[0]! % below
  const id = await rig.endpoint({ workersMin: 2, workersMax: 4 })
  const moves: ((worker: RigWorker) => Promise<unknown>)[] = [
    async worker => void worker.take(),
    async worker => worker.ping([], UNFIT),
    async worker => rig.fleet.exit(worker.id, { code: pick(3) }),
    async () => rig.submit(id),
    async () => rig.clock.advance(2_000),
    async worker => {
      const [job] = await rig.store.jobs.heldBy(worker.id)
      if (job !== undefined) await worker.done(job)
    },
    async worker => rig.ask('DELETE', `/v2/serverless/${id}/workers/${worker.id}`),
    async () =>
      rig.change(id, { executionTimeoutMs: 60_000 + pick(200) * 1_000, env: [{ key: 'A', value: `${pick(9)}` }] }),
  ]
  await rig.clock.advance(100)
  const seen = new Set<string>()
  for (let step = 0; step < 120; step += 1) {
    const alive = rig.fleet.running()
    const target = alive[pick(Math.max(1, alive.length))]
    const index = rig.fleet.started.findIndex(({ workerId }) => workerId === target)
    const number = pick(moves.length)
    if (index >= 0) await moves[number]!(rig.worker(index))
    await rig.clock.advance(50)
    await assertAgreed(rig, id, `step ${step}, move ${number}`)
    for (const { status } of (await rig.ask('GET', `/v2/serverless/${id}/workers`)).json.workers) seen.add(status)
  }
  assert.deepEqual([...seen].sort(), ['IDLE', 'INITIALIZING', 'RUNNING', 'UNHEALTHY'])
})

async function oneWorker(rig: Rig, id: EndpointId, worker: string) {
  const { status, json, text } = await rig.ask('GET', `/v2/serverless/${id}/workers/${worker}`)
  assert.equal(status, 200, text)
  return json
}

test('a worker is shown with its phases from its start to its end, and stays readable after it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const phases = async () => (await oneWorker(rig, endpoint, worker.id)).phase
  assert.equal(await phases(), 'initializing')
  void worker.take()
  await rig.clock.advance(100)
  assert.equal(await phases(), 'ready')
  const job = await rig.submit(endpoint)
  const busy = await oneWorker(rig, endpoint, worker.id)
  assert.deepEqual([busy.status, busy.jobsHeld, busy.jobs[0].id], ['RUNNING', 1, job])
  await worker.done(job)
  rig.print(worker.id, 'one', 'boom')
  rig.fleet.exit(worker.id, { code: 3 })
  await rig.clock.advance(100)
  const ended = await oneWorker(rig, endpoint, worker.id)
  assert.deepEqual([ended.status, ended.phase, ended.jobsFinished], ['EXITED', 'exited', 1])
  assert.deepEqual(ended.exit, { code: 3, signal: null, cause: 'exited with code 3', lastLines: ['one', 'boom'] })
  assert.deepEqual(
    ended.timeLine.map((step: { phase: string }) => step.phase),
    ['initializing', 'ready'],
  )
  const life = ended.timeLine.reduce((sum: number, { ms }: { ms: number }) => sum + ms, 0)
  assert.equal(life, Date.parse(ended.exitedAt) - Date.parse(ended.createdAt))
  const { json } = await rig.ask('GET', `/v2/serverless/${endpoint}/workers?ended=true`)
  const [row] = json.ended
  assert.deepEqual([row.id, row.status, row.exit.code], [worker.id, 'EXITED', 3])
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}/workers`)).json.ended, undefined)
})

test('a worker of another endpoint or account is not found', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  const other = await rig.endpoint()
  assert.equal((await rig.ask('GET', `/v2/serverless/${other}/workers/${worker.id}`)).status, 404)
  assert.equal((await rig.ask('GET', `/v2/serverless/${other}/workers/nosuch`)).status, 404)
  assert.equal((await rig.ask('GET', '/ops/top?endpoint=nosuch')).status, 404)
})

test('while an image is downloaded its percentage is shown with the worker and as the reason to wait', async t => {
  const rig = await openRig(t)
  const { start } = rig.ports.driver
  const gate = Promise.withResolvers<void>()
  rig.ports.driver.start = async (spec, watch) => {
    await rig.clock.advance(10)
    watch?.pulling(null)
    watch?.pulling(41.6)
    await gate.promise
    watch?.pulled()
    return start.call(rig.ports.driver, spec, watch)
  }
  const endpoint = await rig.endpoint({ workersMax: 1 })
  await rig.submit(endpoint)
  await rig.clock.advance(3_000)
  const { workers } = (await rig.ask('GET', `/v2/serverless/${endpoint}/workers`)).json
  assert.deepEqual([workers[0].phase, workers[0].pullPercent, workers[0].status], ['pulling', 41.6, 'INITIALIZING'])
  assert.match((await rig.why(endpoint)).summary, /^worker \w+ downloads its image \(42 %\), for 3 s$/)
  gate.resolve()
  await rig.clock.advance(500)
  const after = await oneWorker(rig, endpoint, workers[0].id)
  assert.deepEqual([after.phase, after.pullPercent], ['initializing', null])
  assert.ok(after.timeLine.find((step: { phase: string }) => step.phase === 'pulling').ms >= 2_900)
})

test('what a worker was given of the machine is shown with it', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const stored = await worker.record()
  const gpus = [{ index: 3, uuid: 'GPU-1', type: 'NVIDIA L40', memoryGb: 48 }]
  const placement: Placement = { gpus, pool: 'ADA_48_PRO', vcpus: 4, memoryMb: 8_192 }
  t.mock.method(rig.store.workers, 'find', async () => ({ ...stored, placement }))
  const find = rig.store.endpoints.snapshot.bind(rig.store.endpoints)
  t.mock.method(rig.store.endpoints, 'snapshot', async (id: EndpointId) => {
    const found = await find(id)
    return found === null ? null : { ...found, workers: found.workers.map(one => ({ ...one, placement })) }
  })
  const shown = await oneWorker(rig, endpoint, worker.id)
  assert.deepEqual([shown.gpuCount, shown.gpuTypeId, shown.pool], [1, 'NVIDIA L40', 'ADA_48_PRO'])
  assert.deepEqual(shown.gpus, [{ index: 3, id: 'NVIDIA L40', memoryGb: 48 }])
  assert.deepEqual([shown.vcpus, shown.memoryMb], [4, 8_192])
})

test('how a worker is kept apart is shown with it, and what it cannot take more of', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.ports.driver.isolation = () => ({ kind: 'cage', limits: ['memory', 'disk'] })
  const { workers } = (await rig.ask('GET', `/v2/serverless/${endpoint}/workers`)).json
  assert.equal(workers[0].isolation, 'cage')
  const { isolation, limits } = await oneWorker(rig, endpoint, worker.id)
  assert.deepEqual([isolation, limits], ['cage', ['memory', 'disk']])
})

test('a failed fitness check is seen in the list, in health, in why and with the worker, before and after its end', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.submit(endpoint)
  await worker.ping([], UNFIT)
  const problem = 'its check gpu_check failed: RuntimeError: no card'
  const row = async () => (await rig.ask('GET', `/v2/serverless/${endpoint}/workers`)).json.workers[0]
  assert.deepEqual([(await row()).status, (await row()).reason], ['UNHEALTHY', problem])
  assert.equal((await rig.why(endpoint)).cause, 'fitness_failed')
  rig.print(worker.id, 'RuntimeError: no card')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(100)
  const why = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  const cause = `exited with code 1 because ${problem}`
  assert.deepEqual([why.cause, why.evidence], ['fitness_failed', ['RuntimeError: no card']])
  assert.ok(why.summary.includes(cause))
  assert.deepEqual([(await row()).id, (await row()).status, (await row()).reason], [worker.id, 'UNHEALTHY', cause])
  assert.equal((await rig.health(endpoint)).workers.unhealthy, 1)
  assert.deepEqual((await oneWorker(rig, endpoint, worker.id)).exit.lastLines, ['RuntimeError: no card'])
})

test('a crash loop shows exit code, last lines and the next try, on every surface', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.submit(endpoint)
  rig.print(worker.id, 'OSError: [Errno 98] Address already in use')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(10)
  const why = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.deepEqual(
    [why.cause, why.summary, why.evidence],
    [
      'crash_loop',
      'the last worker exited with code 1; the next one starts in 1 s',
      ['OSError: [Errno 98] Address already in use'],
    ],
  )
  assert.match(why.action, /variable PORT/)
  const { explanations } = (await rig.ask('GET', `/ops/why/${endpoint}`)).json
  assert.equal(explanations[0].summary, why.summary)
  const { endpoints } = (await rig.ask('GET', `/ops/top?endpoint=${endpoint}`)).json
  assert.equal(endpoints[0].explanation.cause, 'crash_loop')
  await assertAgreed(rig, endpoint, 'in the back-off')
})

test('the phases of cold starts are counted', async t => {
  const rig = await openRig(t, { metricsPublic: true })
  const { worker } = await rig.endpointWithWorker()
  void worker.take()
  await rig.clock.advance(1_500)
  const { text } = await rig.ask('GET', '/metrics')
  assert.match(text, /runyard_worker_cold_start_phase_seconds_count\{phase="initializing"\} 1/)
  assert.match(text, /runyard_worker_cold_start_phase_seconds_sum\{phase="pulling"\} 0/)
})

test('watching all endpoints reads each of them once', async t => {
  const rig = await openRig(t)
  for (let count = 0; count < 3; count += 1) await rig.endpoint()
  const before = rig.calls('endpoints.snapshot')
  const { endpoints, more } = (await rig.ask('GET', '/ops/top')).json
  assert.deepEqual([endpoints.length, more], [3, false])
  assert.equal(rig.calls('endpoints.snapshot') - before, 3)
})
