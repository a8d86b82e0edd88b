/** A checker that cannot fail proves nothing: each mistake that they should find is made once on purpose. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientChecker, type SeenJob } from '../../sim/checks/client-checker.ts'
import { CounterChecker } from '../../sim/checks/counter-checker.ts'
import { FleetChecker } from '../../sim/checks/fleet-checker.ts'
import { JobChecker } from '../../sim/checks/job-checker.ts'
import { LimitChecker } from '../../sim/checks/limit-checker.ts'
import { OrderChecker } from '../../sim/checks/order-checker.ts'
import { PurgeChecker } from '../../sim/checks/purge-checker.ts'
import { ResponseTimeChecker } from '../../sim/checks/response-time-checker.ts'
import { RunChecker } from '../../sim/checks/run-checker.ts'
import { type Chunk, StreamChecker } from '../../sim/checks/stream-checker.ts'
import type { Change } from '../../sim/ledger.ts'
import type { Call } from '../../sim/network.ts'
import type { EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import type { JobStatus, Transition } from '../../src/core/jobs/job.ts'
import type { WorkerState } from '../../src/core/workers/worker.ts'

const endpointId = 'endpoint' as EndpointId
const [jobId, otherId] = ['job-1', 'job-2'] as [JobId, JobId]
const [w1, w2] = ['worker1', 'worker2'] as [WorkerId, WorkerId]

const SUBMITTED: Change = {
  n: 1,
  kind: 'insert',
  job: jobId,
  endpoint: endpointId,
  was: null,
  now: 'IN_QUEUE',
  was_worker: null,
  worker: null,
  was_attempt: 0,
  attempt: 0,
  was_lost: 0,
  lost: 0,
  low: 0,
  queued_at_ms: 0,
  expires_at_ms: 1_000,
  webhook: null,
  input: '{"tag":"a"}',
  output: null,
  error: null,
  batch: null,
  queue: '',
  endpoint_there: 1,
}

let changes = 1

/** A change of the same job. */
function changed(was: JobStatus, now: JobStatus | null, rest: Partial<Change> = {}): Change {
  changes += 1
  const kind = now === null ? 'delete' : 'update'
  return { ...SUBMITTED, n: changes, kind, was, now, ...rest }
}

const claim = (worker: WorkerId, attempt = 1) =>
  changed('IN_QUEUE', 'IN_PROGRESS', { worker, attempt, was_attempt: attempt - 1 })
const finish = (worker: WorkerId, rest: Partial<Change> = {}) =>
  changed('IN_PROGRESS', 'COMPLETED', { was_worker: worker, worker, attempt: 1, was_attempt: 1, ...rest })
const requeue = (worker: WorkerId) =>
  changed('IN_PROGRESS', 'IN_QUEUE', { was_worker: worker, worker, attempt: 1, was_attempt: 1, lost: 1 })

/** A job that was stored and reported, with its later stored states. */
function jobs() {
  const problems: string[] = []
  const checker = new JobChecker(
    problem => problems.push(problem),
    () => 500,
    () => false,
  )
  const store = (...stored: Change[]) => checker.committed({ changes: stored, acknowledged: true })
  const emit = (transition: Transition, from: JobStatus, to: JobStatus, workerId: WorkerId | null, attempt: number) =>
    checker.moved({ endpointId, jobId, transition, from, to, workerId, attempt })
  store(SUBMITTED)
  checker.accepted({ endpointId, jobId })
  return { checker, problems, store, emit }
}

test('a lawful life has no problems', () => {
  const { checker, problems, store, emit } = jobs()
  store(claim(w1))
  emit('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  store(requeue(w1))
  emit('requeue', 'IN_PROGRESS', 'IN_QUEUE', w1, 1)
  checker.lost(w1)
  store(claim(w2, 2))
  emit('claim', 'IN_QUEUE', 'IN_PROGRESS', w2, 2)
  checker.posted(w2, jobId)
  store(finish(w2, { attempt: 2, was_attempt: 2 }))
  emit('finish', 'IN_PROGRESS', 'COMPLETED', w2, 2)
  checker.settled()
  assert.deepEqual(problems, [])
  assert.deepEqual(checker.unfinished(), [])
})

test('a move that is not in the table is found', () => {
  const { problems, store } = jobs()
  store(changed('IN_QUEUE', 'TIMED_OUT'))
  assert.match(problems.join('\n'), /timeOut of job job-1 .* is not in the table/)
})

test('a result from a worker that does not hold the job is found', () => {
  const { checker, problems, store } = jobs()
  store(claim(w1))
  checker.posted(w2, jobId)
  store(finish(w1, { worker: w2 }))
  assert.match(problems.join('\n'), /came from worker2, but its holder was worker1/)
})

test('a result that is credited to a worker that did not send it is found', () => {
  const { problems, store } = jobs()
  store(claim(w1), finish(w1))
  assert.match(problems.join('\n'), /has worker worker1, which sent no result/)
})

test('a job for a worker that was lost is found', () => {
  const { checker, problems, store } = jobs()
  store(claim(w1), requeue(w1))
  checker.lost(w1)
  store(claim(w1, 2))
  assert.match(problems.join('\n'), /dispatched the job to worker1, which was lost/)
})

test('an attempt that is counted wrongly is found', () => {
  const { problems, store } = jobs()
  store(changed('IN_QUEUE', 'IN_PROGRESS', { worker: w1, attempt: 2 }))
  assert.match(problems.join('\n'), /has attempt 2 after attempt 0/)
})

test('a retry that keeps what the last attempt left is found', () => {
  const { problems, store } = jobs()
  store(changed('FAILED', 'IN_QUEUE', { was_worker: w1, error: 'it has failed' }))
  assert.match(problems.join('\n'), /kept the result of the last attempt/)
})

test('a job that is removed before its time, or is changed after it was removed, is found', () => {
  const { problems, store } = jobs()
  store(changed('IN_QUEUE', null), claim(w1))
  assert.match(problems.join('\n'), /was removed as IN_QUEUE, 500 ms too early/)
  assert.match(problems.join('\n'), /which was removed or never stored, was changed/)
})

test('a move that is reported and not stored, or stored and not acknowledged, is found, unless a crash explains it', () => {
  const { checker, problems, store, emit } = jobs()
  emit('cancel', 'IN_QUEUE', 'CANCELLED', null, 0)
  assert.match(problems.join('\n'), /cancel of job job-1 .* has an event and was never stored/)
  problems.length = 0
  store(claim(w1))
  checker.serverEnded()
  checker.settled()
  assert.deepEqual(problems, [])
  store(requeue(w1))
  checker.settled()
  assert.match(problems.join('\n'), /there was no event for its update from IN_PROGRESS to IN_QUEUE/)
})

test('a job that is claimed before one that was there first, or is of higher priority, is found', () => {
  const problems: string[] = []
  const order = new OrderChecker(
    problem => problems.push(problem),
    { latest: () => 0, slackMs: 0 },
    () => false,
  )
  const second: Change = { ...SUBMITTED, n: 2, job: otherId }
  order.committed({ changes: [SUBMITTED, second], acknowledged: true })
  assert.deepEqual(order.queuedJobs(endpointId), [jobId, otherId])
  order.committed({ changes: [{ ...claim(w1), job: otherId }], acknowledged: true })
  assert.match(problems.join('\n'), /job job-2 was claimed .* before job job-1/)
  problems.length = 0
  const low: Change = { ...SUBMITTED, n: 3, low: 1 }
  order.committed({ changes: [changed('IN_QUEUE', 'CANCELLED'), low, { ...second, n: 4 }], acknowledged: true })
  order.committed({ changes: [{ ...claim(w1), low: 1 }], acknowledged: true })
  assert.equal(problems.length, 1)
})

test('a counter that differs from the ends of jobs is found', () => {
  const problems: string[] = []
  const counters = new CounterChecker(problem => problems.push(problem))
  counters.committed({ changes: [SUBMITTED, claim(w1), requeue(w1), claim(w1, 2), finish(w1)], acknowledged: true })
  counters.compare(endpointId, { completed: 1, failed: 0, retried: 1 }, 'the store')
  assert.deepEqual(problems, [])
  counters.compare(endpointId, { completed: 2, failed: 0, retried: 1 }, 'the store')
  assert.match(problems.join('\n'), /has 2 completed in the store, and 1 by the changes/)
})

test('a job that is still queued after a purge, and a purge that counts too many, are found', () => {
  const problems: string[] = []
  let nowMs = 1_000
  const latestMs = () => nowMs
  const purges = new PurgeChecker(problem => problems.push(problem), latestMs)
  purges.committed({ changes: [SUBMITTED], acknowledged: true })
  purges.answered(endpointId, 1, 0)
  assert.deepEqual(problems, [], 'past its ttl it is no job any more')
  nowMs = 999
  purges.answered(endpointId, 1, 0)
  assert.match(problems.join('\n'), /job job-1 is still queued after a purge/)
  purges.answered(endpointId, 0, 1)
  assert.match(problems.join('\n'), /says 1 jobs, and 0 were cancelled/)
})

/** A run that has kept three chunks, and a reader of its stream. */
function streams(held = false) {
  const problems: string[] = []
  const runs = new RunChecker(problem => problems.push(problem), { holds: () => held })
  runs.committed({ changes: [claim(w1)], acknowledged: true })
  const run = runs.began(jobId, w1, 'mark')
  run.chunks.push(...[1, 2, 3].map(() => ({ state: 'kept' as const, twice: false })))
  const stream = new StreamChecker(
    jobId,
    problem => problems.push(problem),
    nonce => runs.find(nonce),
  )
  const chunk = (number: number): Chunk => ({ job: jobId, nonce: 'mark', chunk: number })
  return { problems, runs, run, stream, chunk }
}

test('a worker that gets a job on which another still works is found', () => {
  const { problems, runs } = streams(true)
  runs.committed({ changes: [requeue(w1), claim(w2, 2)], acknowledged: true })
  assert.match(problems.join('\n'), /was dispatched to worker worker2 while worker worker1 runs it/)
})

test('a job that was taken back from its worker may go to another one, which then has it alone', () => {
  const { problems, runs } = streams(true)
  const takeBack = changed('IN_PROGRESS', 'IN_QUEUE', { was_worker: w1, worker: w1, was_attempt: 1, attempt: 0 })
  runs.committed({ changes: [takeBack, claim(w2)], acknowledged: true })
  assert.deepEqual(problems, [])
  runs.committed({ changes: [requeue(w2), claim(w1, 2)], acknowledged: true })
  assert.match(problems.join('\n'), /was dispatched to worker worker1 while worker worker2 runs it/)
})

test('an output that no run has sent is found', () => {
  const { problems, runs, run } = streams()
  const output = '{"nonce":"mark"}'
  run.posted = true
  runs.committed({ changes: [finish(w1, { output })], acknowledged: true })
  assert.deepEqual(problems, [])
  runs.committed({ changes: [finish(w2, { output })], acknowledged: true })
  assert.match(problems.join('\n'), /has an output that no run of it has sent/)
})

test('chunks that come twice, are left out, or come after the end are found', () => {
  const twice = streams()
  twice.stream.got([twice.chunk(1), twice.chunk(1)], null)
  assert.match(twice.problems.join('\n'), /chunk 1 of job job-1 came after chunk 1/)
  const left = streams()
  left.stream.got([left.chunk(1), left.chunk(3)], null)
  assert.match(left.problems.join('\n'), /chunk 2 of job job-1 never arrived/)
  const late = streams()
  late.stream.got([late.chunk(1)], 'COMPLETED')
  late.stream.got([late.chunk(2)], null)
  assert.match(late.problems.join('\n'), /goes on after it was COMPLETED/)
  const short = streams()
  short.stream.got([short.chunk(1), short.chunk(2)], 'COMPLETED')
  short.stream.completed('mark')
  assert.match(short.problems.join('\n'), /chunk 3 of job job-1 never arrived/)
})

test('chunks that were lost on the way, or are repeated because their receipt was unknown, are allowed', () => {
  const { problems, stream, chunk } = streams()
  stream.got([chunk(1)], null)
  stream.excuse({ missed: true, repeated: false })
  stream.got([chunk(3)], null)
  stream.excuse({ missed: false, repeated: true })
  stream.got([chunk(3)], 'COMPLETED')
  stream.completed('mark')
  assert.deepEqual(problems, [])
})

test('a request that is held for too long is found, unless the store was slow', () => {
  const problems: string[] = []
  let isSlow = true
  const holds = new ResponseTimeChecker(
    problem => problems.push(problem),
    () => isSlow,
  )
  const call = { who: 'a', method: 'GET', url: 'http://s.sim/v2/e/status/j', headers: {} } as unknown as Call
  holds.answered({ call, status: 200, text: '', fromMs: 0, toMs: 5_000 })
  assert.deepEqual(problems, [])
  isSlow = false
  holds.answered({ call, status: 200, text: '', fromMs: 0, toMs: 5_000 })
  assert.match(problems.join('\n'), /GET \/v2\/e\/status\/j of a took 5000 ms/)
})

/** A worker whose changes are reported, on an endpoint with a max. */
function fleet() {
  const problems: string[] = []
  const checker = new FleetChecker(
    problem => problems.push(problem),
    () => null,
  )
  const move = (from: WorkerState, to: WorkerState) =>
    checker.moved({ endpointId, workerId: w1, from, to, reason: null })
  const count = (alive: number, max: number) =>
    checker.compare([{ id: endpointId, workers_min: 0, workers_max: max, alive, frozen: 0 }])
  return { checker, problems, move, count }
}

test('a job for a draining worker is found', () => {
  const { checker, problems, move } = fleet()
  move('STARTING', 'READY')
  checker.claimed(w1, jobId)
  assert.deepEqual(problems, [])
  move('READY', 'DRAINING')
  checker.claimed(w1, jobId)
  assert.match(problems.join('\n'), /worker1 got job job-1 while it was DRAINING/)
})

test('a worker that goes backwards is found', () => {
  const { problems, move } = fleet()
  move('READY', 'DRAINING')
  move('STARTING', 'READY')
  assert.match(problems.join('\n'), /moved from STARTING to READY, but it was DRAINING/)
})

test('a worker goes back by a thaw, and by nothing else, and gets no job before', () => {
  const { checker, problems, move } = fleet()
  move('READY', 'FROZEN')
  move('FROZEN', 'READY')
  checker.claimed(w1, jobId)
  assert.deepEqual(problems, [])
  move('READY', 'FROZEN')
  checker.claimed(w1, jobId)
  assert.match(problems.join('\n'), /worker1 got job job-1 while it was FROZEN/)
})

test('a worker that is FROZEN and runs for long is found', () => {
  const { checker, problems } = fleet()
  const left = { ended: [], stranded: [], orphans: [], unsettled: [{ id: w1, state: 'FROZEN' }] } as const
  for (const atMs of [0, 5_000]) checker.lingering(atMs, left)
  assert.match(problems.join('\n'), /worker1 is FROZEN, and its process runs/)
})

test('too many workers are found, but not those that a lowered max has left', () => {
  const { problems, count } = fleet()
  count(3, 3)
  count(3, 1)
  count(2, 1)
  assert.deepEqual(problems, [])
  count(3, 1)
  assert.match(problems.join('\n'), /has 3 workers, but its max is 1/)
})

test('a worker that stays in the store after its end is found once, after some time', () => {
  const { checker, problems } = fleet()
  const left = { ended: [{ id: w1, state: 'STARTING' }], stranded: [], orphans: [], unsettled: [] } as const
  checker.lingering(1_000, left)
  checker.lingering(5_000, left)
  assert.deepEqual(problems, [])
  for (const atMs of [6_000, 7_000]) checker.lingering(atMs, left)
  assert.equal(problems.length, 1)
})

test('a job that stays with an ended worker, and an unknown process, are found', () => {
  const { checker, problems } = fleet()
  const left = { ended: [], stranded: [{ id: jobId, worker_id: w1 }], orphans: [w2], unsettled: [] }
  for (const atMs of [0, 5_000]) checker.lingering(atMs, left)
  assert.equal(problems.length, 2)
})

/** A client that follows a job. */
function client(retainedUntilMs: number) {
  const problems: string[] = []
  const checker = new ClientChecker(problem => problems.push(problem))
  checker.follow(jobId, endpointId, retainedUntilMs, 'a')
  let order = 0
  const saw = (status: JobStatus, rest: Partial<SeenJob> = {}) => {
    order += 1
    checker.saw({ id: jobId, status, ...rest }, order)
  }
  return { checker, problems, saw }
}

test('a status that leaves a final one is found', () => {
  const { problems, saw } = client(1_000)
  saw('IN_PROGRESS')
  saw('IN_QUEUE')
  saw('COMPLETED', { output: jobId })
  saw('COMPLETED', { output: jobId })
  assert.deepEqual(problems, [])
  saw('IN_PROGRESS')
  assert.equal(problems.length, 1)
})

test('a second output, one of another job, and one that shows while the job waits are found', () => {
  const { problems, saw } = client(1_000)
  saw('COMPLETED', { output: { job: jobId } })
  saw('COMPLETED', { output: { job: jobId, again: true } })
  assert.equal(problems.length, 1)
  const foreign = client(1_000)
  foreign.saw('COMPLETED', { output: { job: otherId } })
  assert.match(foreign.problems.join('\n'), /has the output/)
  const early = client(1_000)
  early.saw('IN_QUEUE', { output: 1 })
  assert.match(early.problems.join('\n'), /is IN_QUEUE and shows the result/)
})

test('a state that belies the answer to a cancel or a retry is found', () => {
  const { checker, problems, saw } = client(1_000)
  checker.canceled(jobId, 0)
  saw('COMPLETED', { output: jobId })
  assert.match(problems.join('\n'), /is COMPLETED after its cancel/)
  problems.length = 0
  checker.retries(jobId)
  checker.retried(jobId, 2_000, 9)
  assert.match(problems.join('\n'), /was COMPLETED and could be retried/)
})

test('an acknowledged job that vanishes before its time is found', () => {
  const { checker, problems } = client(1_000)
  checker.missed(jobId, { latest: () => 1_000, slackMs: 0 })
  assert.deepEqual(problems, [])
  checker.missed(jobId, { latest: () => 999, slackMs: 0 })
  assert.equal(problems.length, 1)
})

test('another key of a client whose first one has expired may have a job of its own', () => {
  const { checker, problems } = client(1_000)
  checker.submits(endpointId, 'a', 'key')
  checker.committed({ changes: [SUBMITTED], acknowledged: true })
  checker.submits(endpointId, 'a', 'key again')
  checker.committed({ changes: [{ ...SUBMITTED, job: otherId }], acknowledged: true })
  checker.follow(otherId, endpointId, 1_000, 'a')
  assert.deepEqual(problems, [])
})

test('a job that runs on after its execution timeout is found, and one whose pause has just ended is not', () => {
  const problems: string[] = []
  let [nowMs, running] = [0, [{ id: jobId, started: 0, timeout: 5_000 }]]
  const database = { query: () => running } as never
  const checker = new LimitChecker(problem => problems.push(problem), database, { now: () => nowMs, slackMs: 0 })
  const at = (ms: number, jobs = running) => {
    ;[nowMs, running] = [ms, jobs]
    checker.inspect(true)
  }
  const jobs = running
  at(0)
  at(6_000, [])
  at(40_000, jobs)
  at(49_000)
  assert.deepEqual(problems, [], 'it was paused from 6 s to 40 s')
  at(51_000)
  assert.deepEqual(problems, [`job ${jobId} runs 11000 ms after its execution timeout of 5000 ms`])
})

test('two jobs of one key, and an answer with another job than the first, are found', () => {
  const { checker, problems } = client(1_000)
  checker.submits(endpointId, 'a', 'key')
  checker.committed({ changes: [SUBMITTED, { ...SUBMITTED, job: otherId }], acknowledged: true })
  assert.match(problems.join('\n'), /was sent 1 times and has 2 jobs/)
  checker.follow(otherId, endpointId, 1_000, 'a')
  assert.match(problems.join('\n'), /the response to a names job job-2, and its key belongs to job job-1/)
})
