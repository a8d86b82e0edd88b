/** Releases that become ready and fail their jobs. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { EndpointId, JobId, WorkerId } from '../../../src/core/ids.ts'
import type { JobStatus, Transition } from '../../../src/core/jobs/job.ts'
import { TRIAL_MS } from '../../../src/core/scaling/rollout-judge.ts'
import type { Events } from '../../../src/events.ts'
import type { WorkerResults } from '../../../src/ports/store/management-store.ts'
import { ReleaseResults } from '../../../src/services/endpoints/release-results.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { openRig, type Rig, type RigOptions } from '../../support/rig.ts'
import { RigProgram } from '../../support/rig-program.ts'

const QUEUE = { workersMin: 2, workersMax: 6, scalerType: 'REQUEST_COUNT', scalerValue: 1 } as const
const FAILING = { env: { FAILS_EVERY: '1' } }

async function loaded(t: TestContext, options: RigOptions = {}, goodMs = 12_000) {
  const rig = await openRig(t, options)
  const program = new RigProgram(rig)
  const endpoint = await rig.endpoint(QUEUE)
  await program.load(endpoint, goodMs)
  return { rig, program, endpoint }
}

async function patch(rig: Rig, endpoint: EndpointId, body: object): Promise<void> {
  const { status, json } = await rig.ask('PATCH', `/v2/serverless/${endpoint}`, { body })
  assert.equal(status, 200, JSON.stringify(json))
}

async function rolloutOf(rig: Rig, endpoint: EndpointId) {
  return (await rig.ask('GET', `/v2/serverless/${endpoint}/releases`)).json.rollout
}

async function versions(rig: Rig, endpoint: EndpointId): Promise<number[]> {
  return [...new Set((await rig.alive(endpoint)).map(({ version }) => version))].sort()
}

/** As {@link loaded}, with few jobs and as many results as are given. */
async function withResults(t: TestContext, options: RigOptions = {}, good = 100) {
  const world = await loaded(t, options, 1_000)
  const { rig, program, endpoint } = world
  /** Results of the newest release, once a worker of it is ready. */
  const come = async (failed: number, ended: number) => {
    await program.load(endpoint, 1_000)
    const results = new ReleaseResults(rig.ports, true)
    const workerId = rig.worker(-1).id
    for (let job = 0; job < ended; job += 1)
      results.emit('job.moved', {
        jobId: `job ${job}` as JobId,
        workerId,
        transition: 'finish',
        to: job < failed ? 'FAILED' : 'COMPLETED',
      } as Events['job.moved'])
    await results.flush()
    await program.load(endpoint, 1_000)
  }
  if (good > 0) await come(0, good)
  const release = (change: string) => patch(rig, endpoint, { env: { CHANGE: change } })
  return { ...world, come, release }
}

/** Number of failed jobs of the endpoint. */
async function failedJobs(rig: Rig, endpoint: EndpointId): Promise<number> {
  return (await rig.health(endpoint)).jobs.failed!
}

test('a release that becomes ready and fails its jobs is stopped, is named with its numbers, and the one before goes on', async t => {
  const { rig, program, endpoint } = await loaded(t)
  await patch(rig, endpoint, FAILING)
  await program.load(endpoint, 12_000)
  const [stopped, ...more] = rig.happened('rollout.stopped')
  assert.deepEqual(more, [])
  assert.deepEqual([stopped!.version, stopped!.working, stopped!.crashes], [2, 1, 0])
  const { ended, failed, workingEnded, workingFailed } = stopped!.failures!
  assert.ok(ended >= 20 && ended <= 30 && failed === ended, JSON.stringify(stopped))
  assert.ok(workingEnded >= 20 && workingFailed === 0, JSON.stringify(stopped))
  const said = `${failed} of ${ended} jobs failed on release 2, 0 of ${workingEnded} on release 1`
  assert.equal(stopped!.cause, said)
  await rig.clock.advance(1_000)
  const metrics = (await rig.ask('GET', '/metrics')).text
  assert.match(metrics, /runyard_rollouts_stopped_total\{(?=[^}]*reason="failures")[^}]*\} 1\n/)
  const why = (await rig.ask('GET', `/v2/${endpoint}/explain`)).json
  assert.equal(why.cause, 'rollout_stopped')
  assert.ok(why.summary.includes(`the rollout of release 2 has stopped: ${said}; workers of release 1 go on`))
  assert.deepEqual(why.commands, [
    `runyard endpoints rollback ${endpoint} 1`,
    `runyard jobs list ${endpoint} --failed`,
    `runyard endpoints promote ${endpoint} 2`,
  ])
  const rollout = await rolloutOf(rig, endpoint)
  assert.deepEqual([rollout.state, rollout.workingVersion, rollout.reason], ['STOPPED', 1, said])
  assert.deepEqual(
    [rollout.failures.ended, rollout.failures.failed, rollout.failures.workingEnded],
    [ended, failed, workingEnded],
  )
  assert.deepEqual(await versions(rig, endpoint), [1])
  const before = await failedJobs(rig, endpoint)
  await program.load(endpoint, 5_000)
  assert.equal(await failedJobs(rig, endpoint), before, 'no job fails any more')
  assert.deepEqual(await versions(rig, endpoint), [1])
})

test('a stop for failures survives a restart of the server, and so do earlier results', async t => {
  const { rig, program, endpoint } = await loaded(t)
  await rig.crash()
  await rig.start()
  await patch(rig, endpoint, FAILING)
  await program.load(endpoint, 12_000)
  assert.equal((await rolloutOf(rig, endpoint)).state, 'STOPPED')
  await rig.crash()
  await rig.start()
  await program.load(endpoint, 4_000)
  assert.equal((await rolloutOf(rig, endpoint)).state, 'STOPPED')
  assert.deepEqual(await versions(rig, endpoint), [1])
})

test('a release that fails as the one before does goes on', async t => {
  const { rig, endpoint, come, release } = await withResults(t, {}, 0)
  await come(60, 100)
  await release('1')
  await come(60, 100)
  await come(70, 100)
  assert.deepEqual(rig.happened('rollout.stopped'), [])
  assert.deepEqual(await versions(rig, endpoint), [2])
})

test('with a handful of results of the other release twenty failures are not enough', async t => {
  const { rig, come, release } = await withResults(t, {}, 0)
  await release('1')
  await come(20, 20)
  assert.deepEqual(rig.happened('rollout.stopped'), [])
})

test('the judge can be switched off', async t => {
  const { rig, program, endpoint } = await loaded(t, { judgesRollouts: false })
  await patch(rig, endpoint, FAILING)
  await program.load(endpoint, 12_000)
  assert.deepEqual(rig.happened('rollout.stopped'), [])
  assert.deepEqual(await versions(rig, endpoint), [2])
})

test('an endpoint can decline the judge by a variable', async t => {
  const { rig, endpoint, come, release } = await withResults(t)
  await patch(rig, endpoint, { env: { CHANGE: '1', RUNYARD_ROLLOUT_JUDGE: 'off' } })
  await come(50, 50)
  assert.deepEqual(rig.happened('rollout.stopped'), [])
  await release('2')
  await come(0, 0)
  assert.deepEqual(await versions(rig, endpoint), [3])
})

test('a stopped release goes on when somebody promotes it, and is judged no more; no other release can be', async t => {
  const { rig, endpoint, come, release } = await withResults(t)
  await release('1')
  await come(20, 20)
  assert.deepEqual(await versions(rig, endpoint), [1])
  const promote = (version: number) => rig.ask('POST', `/v2/serverless/${endpoint}/releases/${version}/promote`)
  assert.equal((await promote(1)).status, 409)
  assert.equal((await promote(2)).status, 200)
  assert.equal((await promote(2)).status, 409)
  await come(0, 0)
  await come(50, 50)
  assert.equal(rig.happened('rollout.stopped').length, 1)
  assert.deepEqual(await versions(rig, endpoint), [2])
  assert.equal((await rolloutOf(rig, endpoint)).failures, null)
})

test('a rollback out of a stop is not judged, keeps what is known of its release, and is what the next one is compared with', async t => {
  const { rig, endpoint, come, release } = await withResults(t)
  const back = async (to: number) => {
    assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/${to}/rollback`)).status, 201)
    await come(0, 0)
  }
  await release('1')
  await come(20, 20)
  await back(1)
  assert.deepEqual(await versions(rig, endpoint), [3])
  await release('2')
  await come(20, 20)
  const stops = rig.happened('rollout.stopped').map(({ version, working }) => [version, working])
  assert.deepEqual(stops, [
    [2, 1],
    [4, 3],
  ])
  await back(2)
  await come(50, 50)
  assert.equal(rig.happened('rollout.stopped').length, 2, 'who goes back to a release knows it')
  assert.deepEqual(await versions(rig, endpoint), [5])
})

test('a change of a stopped release is compared with the one that goes on, and so is one that comes before twenty results', async t => {
  const { rig, endpoint, come, release } = await withResults(t)
  await release('1')
  await come(20, 20)
  await release('2')
  await come(5, 5)
  await release('3')
  await come(20, 20)
  const last = rig.happened('rollout.stopped').at(-1)!
  assert.deepEqual([last.version, last.working], [4, 1])
  assert.deepEqual(await versions(rig, endpoint), [1])
})

test('a change that makes no release leaves a stop as it is', async t => {
  const { rig, endpoint, come, release } = await withResults(t)
  await release('1')
  await come(20, 20)
  await patch(rig, endpoint, { workers: { max: 8 }, name: 'other' })
  await come(0, 0)
  assert.equal((await rolloutOf(rig, endpoint)).state, 'STOPPED')
  assert.deepEqual(await versions(rig, endpoint), [1])
})

test('a canary that fails its jobs is stopped, and its base goes on alone', async t => {
  const rig = await openRig(t)
  const program = new RigProgram(rig)
  // No room for idle workers, so that each gets its share.
  const endpoint = await rig.endpoint({ ...QUEUE, workersMax: 3 })
  await program.load(endpoint, 12_000)
  await patch(rig, endpoint, { ...FAILING, rollout: { canary: 40 } })
  await program.load(endpoint, 25_000)
  assert.deepEqual(
    rig.happened('rollout.stopped').map(({ version, working }) => [version, working]),
    [[2, 1]],
  )
  const rollout = await rolloutOf(rig, endpoint)
  assert.deepEqual([rollout.state, rollout.workingVersion], ['STOPPED', 1])
  assert.deepEqual(await versions(rig, endpoint), [1])
  assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/2/promote`)).json.canary, null)
  await program.load(endpoint, 5_000)
  assert.deepEqual(await versions(rig, endpoint), [2])
})

test('a worker that crashes with a job is a failure of its release, and a reclaimed worker is not', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint(QUEUE)
  const first = await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  await rig.worker(0).take()
  await rig.worker(0).done(first)
  await patch(rig, endpoint, { env: { CHANGE: '1' } })
  const lose = async (end: (id: WorkerId) => void) => {
    await rig.submit(endpoint)
    await rig.clock.advance(10_000)
    const worker = rig.worker(-1)
    assert.deepEqual([worker.spec.env.CHANGE, (await worker.take()).status], ['1', 200])
    end(worker.id)
    await rig.clock.advance(3_000)
    const all = (await rig.store.workers.list(endpoint)).map(({ id }) => id)
    const [judged] = await rig.store.releases.addResults(
      all.map(workerId => ({ workerId, ended: 0, failed: 0, lostJobs: false })),
    )
    return judged!.results
  }
  assert.deepEqual(await lose(id => rig.fleet.exit(id, { code: 9 })), { ended: 1, failed: 1 })
  assert.deepEqual(await lose(id => rig.fleet.reclaim(id, { kind: 'preempted', node: null, said: '' })), {
    ended: 1,
    failed: 1,
  })
})

test('of jobs and requests those count as results that their workers answer for', async () => {
  const counted: WorkerResults[] = []
  const addResults = async (results: readonly WorkerResults[]) => {
    counted.push(...results)
    return []
  }
  const of = async (about: (results: ReleaseResults) => void) => {
    const results = new ReleaseResults({ store: { releases: { addResults } } } as never, true)
    about(results)
    await results.flush()
    const [sum] = counted.splice(0)
    return sum === undefined ? 'nothing' : `${sum.failed} of ${sum.ended}`
  }
  const job = (moves: readonly (readonly [Transition, JobStatus])[]) =>
    of(({ emit }) => {
      for (const [transition, to] of moves)
        emit('job.moved', { jobId: 'j' as JobId, workerId: 'w' as WorkerId, transition, to } as Events['job.moved'])
    })
  assert.equal(await job([['finish', 'COMPLETED']]), '0 of 1')
  assert.equal(await job([['finish', 'FAILED']]), '1 of 1')
  assert.equal(await job([['timeOut', 'TIMED_OUT']]), '1 of 1')
  for (const transition of ['claim', 'cancel', 'purge', 'release', 'requeue'] as const)
    assert.equal(await job([[transition, transition === 'requeue' ? 'FAILED' : 'CANCELLED']]), 'nothing', transition)
  const again = [
    ['retry', 'IN_QUEUE'],
    ['finish', 'FAILED'],
  ] as const
  assert.equal(await job([['finish', 'FAILED'], ...again, ...again, ...again]), '1 of 1', 'the same input again')
  const request = (status: number, complete = true, workerId: string | null = 'w') =>
    of(({ emit }) =>
      emit('gateway.request_finished', { status, complete, workerId } as Events['gateway.request_finished']),
    )
  assert.equal(await request(200), '0 of 1')
  assert.equal(await request(404), '0 of 1')
  assert.equal(await request(500), '1 of 1')
  assert.equal(await request(502, false), '1 of 1', 'the worker broke its answer')
  assert.equal(await request(200, false), 'nothing', 'the client may have gone')
  assert.equal(await request(499, false), 'nothing')
  assert.equal(await request(503, false, null), 'nothing', 'no worker had it')
})

test('jobs that run out of their execution timeout are failures of a release', async t => {
  const rig = await openRig(t)
  const program = new RigProgram(rig)
  const endpoint = await rig.endpoint({ ...QUEUE, executionTimeoutMs: 5_000 })
  await program.load(endpoint, 12_000)
  await patch(rig, endpoint, { env: { HANGS: '1' } })
  await program.load(endpoint, 90_000)
  assert.match(
    rig.happened('rollout.stopped')[0]!.cause,
    /^(\d+) of \1 jobs failed on release 2, 0 of \d+ on release 1$/,
  )
})

for (const after of ['200 results', 'a week'] as const) {
  test(`after ${after} a release is judged no more`, async t => {
    const { rig, endpoint, come, release } = await withResults(t)
    await release('1')
    await come(0, after === 'a week' ? 20 : 200)
    if (after === 'a week') await rig.clock.leap(TRIAL_MS)
    await come(100, 100)
    assert.deepEqual(rig.happened('rollout.stopped'), [])
    assert.deepEqual(await versions(rig, endpoint), [2])
  })
}

test('results that the store did not take are counted with the next ones', async t => {
  const { rig, program, endpoint } = await loaded(t, {}, 2_000)
  const { workerId } = rig.fleet.started[0]!
  let fails = true
  const releases = {
    ...rig.store.releases,
    addResults: (results: readonly WorkerResults[]) =>
      fails ? Promise.reject(new Error('away')) : rig.store.releases.addResults(results),
  }
  const results = new ReleaseResults({ ...rig.ports, store: { ...rig.store, releases } }, true)
  await patch(rig, endpoint, { env: { CHANGE: '1' } })
  await program.load(endpoint, 2_000)
  const fresh = rig.worker(-1).id
  for (const id of [workerId, fresh])
    for (let job = 0; job < 30; job += 1)
      results.emit('job.moved', {
        jobId: `${id} ${job}` as JobId,
        workerId: id,
        transition: 'finish',
        to: id === fresh ? 'FAILED' : 'COMPLETED',
      } as Events['job.moved'])
  await assert.rejects(results.flush())
  fails = false
  await results.flush()
  assert.match(rig.happened('rollout.stopped')[0]!.cause, /^30 of \d+ jobs failed on release 2, 0 of \d+ on release 1$/)
})

test('requests that a new release of a load-balancing endpoint answers with 5xx stop it', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 2 })
  await rig.clock.advance(1_000)
  const results = new ReleaseResults(rig.ports, true)
  const answered = async (count: number, status: number) => {
    const workerId = rig.worker(-1).id
    for (let request = 0; request < count; request += 1)
      results.emit('gateway.request_finished', {
        workerId,
        status,
        complete: true,
      } as Events['gateway.request_finished'])
    await results.flush()
  }
  await answered(60, 200)
  await patch(rig, id, { env: { RELEASE: 'next' } })
  await rig.clock.advance(5_000)
  assert.deepEqual(await versions(rig, id), [2])
  await answered(40, 404)
  assert.deepEqual(rig.happened('rollout.stopped'), [])
  await answered(40, 500)
  assert.equal(rig.happened('rollout.stopped')[0]!.cause, '40 of 80 requests failed on release 2, 0 of 60 on release 1')
  gateway.fewestReady.set(id, 1)
  await rig.clock.advance(5_000)
  assert.deepEqual(await versions(rig, id), [1])
  assert.equal(gateway.endpoints.get(id)?.version, 1)
  assert.equal(gateway.fewestReady.get(id), 1, 'a worker serves all the time')
  assert.match((await rig.why(id)).summary, /40 of 80 requests failed on release 2/)
})
