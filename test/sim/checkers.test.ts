/** A checker that cannot fail proves nothing: each mistake that they are there for is made once on purpose. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClientChecker, type SeenJob } from '../../sim/client-checker.ts'
import { FleetChecker } from '../../sim/fleet-checker.ts'
import { JobChecker, type JobRow } from '../../sim/job-checker.ts'
import type { EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import type { JobStatus, Transition } from '../../src/core/job.ts'
import type { WorkerState } from '../../src/core/worker.ts'

const endpointId = 'endpoint' as EndpointId
const jobId = 'job-1' as JobId
const [w1, w2] = ['worker1', 'worker2'] as [WorkerId, WorkerId]

/** A job that was accepted, and what is said about it from then on. */
function jobs() {
  const problems: string[] = []
  const checker = new JobChecker(problem => problems.push(problem))
  checker.accepted({ endpointId, jobId })
  const move = (transition: Transition, from: JobStatus, to: JobStatus, workerId: WorkerId | null, attempt: number) =>
    checker.moved({ endpointId, jobId, transition, from, to, workerId, attempt })
  return { checker, problems, move }
}

function rowOf(status: JobStatus, worker: WorkerId | null, id: JobId = jobId): JobRow {
  return { id, endpoint_id: endpointId, status, worker_id: worker, attempt: 1 }
}

test('a lawful life has no problems', () => {
  const { checker, problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  move('requeue', 'IN_PROGRESS', 'IN_QUEUE', w1, 1)
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w2, 2)
  move('release', 'IN_PROGRESS', 'IN_QUEUE', null, 1)
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w2, 2)
  checker.posted(w2, jobId)
  move('finish', 'IN_PROGRESS', 'COMPLETED', w2, 2)
  checker.compare([rowOf('COMPLETED', w2)])
  assert.deepEqual(problems, [])
  assert.deepEqual(checker.unfinished(), [])
})

test('a late result of the last holder is lawful until somebody else claims the job', () => {
  const { checker, problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  move('requeue', 'IN_PROGRESS', 'IN_QUEUE', w1, 1)
  checker.posted(w1, jobId)
  move('finish', 'IN_QUEUE', 'COMPLETED', w1, 1)
  assert.deepEqual(problems, [])
})

test('a move that is not in the table is found', () => {
  const { problems, move } = jobs()
  move('timeOut', 'IN_QUEUE', 'TIMED_OUT', null, 0)
  assert.match(problems.join('\n'), /timeOut of job job-1 .* is not in the table/)
})

test('a move from another state than the last one is found', () => {
  const { problems, move } = jobs()
  move('cancel', 'IN_PROGRESS', 'CANCELLED', null, 0)
  assert.match(problems.join('\n'), /but the job was IN_QUEUE/)
})

test('two holders at once are found', () => {
  const { problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w2, 2)
  assert.match(problems.join('\n'), /gave the job to worker2 while worker1 held it/)
})

test('a result from a worker that does not hold the job is found', () => {
  const { checker, problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  checker.posted(w2, jobId)
  move('finish', 'IN_PROGRESS', 'COMPLETED', w2, 1)
  assert.match(problems.join('\n'), /came from worker2, but its holder was worker1/)
})

test('a result that is credited to a holder who sent none is found', () => {
  const { checker, problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  checker.posted(w2, jobId)
  move('finish', 'IN_PROGRESS', 'COMPLETED', w1, 1)
  assert.match(problems.join('\n'), /said to be from worker1, who sent no result/)
})

test('a job for a worker that was lost is found', () => {
  const { checker, problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  move('requeue', 'IN_PROGRESS', 'IN_QUEUE', w1, 1)
  checker.lost(w1)
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 2)
  assert.match(problems.join('\n'), /gave the job to worker1, who was lost/)
})

test('an attempt that is counted wrongly is found', () => {
  const { problems, move } = jobs()
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 2)
  assert.match(problems.join('\n'), /has attempt 2 after attempt 0/)
})

test('a second fate is found', () => {
  const { problems, move } = jobs()
  move('cancel', 'IN_QUEUE', 'CANCELLED', null, 0)
  move('claim', 'IN_QUEUE', 'IN_PROGRESS', w1, 1)
  assert.match(problems.join('\n'), /but the job was CANCELLED/)
})

test('a job that is lost from the store, or is there without an event, is found', () => {
  const { checker, problems } = jobs()
  checker.compare([])
  assert.match(problems.join('\n'), /job-1 has vanished from the store/)
  checker.compare([rowOf('IN_QUEUE', null), rowOf('IN_QUEUE', null, 'job-2' as JobId)])
  assert.match(problems.join('\n'), /job-2 is in the store, but no event has told of it/)
})

test('a state that the events do not tell is found, unless a crash has swallowed them', () => {
  const { checker, problems } = jobs()
  checker.compare([rowOf('COMPLETED', w1)])
  assert.match(problems.join('\n'), /is COMPLETED with worker1 in the store, and IN_QUEUE with null by the events/)
  problems.length = 0
  checker.resync([rowOf('COMPLETED', w1)])
  checker.compare([rowOf('COMPLETED', w1)])
  assert.deepEqual(problems, [])
})

test('a final state that does not outlive a crash is found', () => {
  const { checker, problems, move } = jobs()
  move('cancel', 'IN_QUEUE', 'CANCELLED', null, 0)
  checker.resync([rowOf('IN_QUEUE', null)])
  assert.match(problems.join('\n'), /was CANCELLED before the crash and is IN_QUEUE after it/)
})

/** A worker that is told about, on an endpoint with a max. */
function fleet() {
  const problems: string[] = []
  const checker = new FleetChecker(problem => problems.push(problem))
  const move = (from: WorkerState, to: WorkerState) =>
    checker.moved({ endpointId, workerId: w1, from, to, reason: null })
  const count = (alive: number, max: number) =>
    checker.compare([{ id: endpointId, workers_min: 0, workers_max: max, alive }])
  return { checker, problems, move, count }
}

test('a job for a draining worker is found', () => {
  const { checker, problems, move } = fleet()
  move('STARTING', 'READY')
  checker.claimed(w1, jobId)
  assert.deepEqual(problems, [])
  move('READY', 'DRAINING')
  checker.claimed(w1, jobId)
  assert.match(problems.join('\n'), /worker1 was handed job job-1 while it was DRAINING/)
})

test('a worker that goes backwards is found', () => {
  const { problems, move } = fleet()
  move('READY', 'DRAINING')
  move('STARTING', 'READY')
  assert.match(problems.join('\n'), /moved from STARTING to READY, but it was DRAINING/)
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
  const left = { ended: [{ id: w1, state: 'STARTING' }], stranded: [], orphans: [] } as const
  checker.lingering(1_000, left)
  checker.lingering(5_000, left)
  assert.deepEqual(problems, [])
  for (const atMs of [6_000, 7_000]) checker.lingering(atMs, left)
  assert.equal(problems.length, 1)
})

test('a job that stays with a worker which has ended, and a process that nobody knows, are found', () => {
  const { checker, problems } = fleet()
  const left = { ended: [], stranded: [{ id: jobId, worker_id: w1 }], orphans: [w2] }
  for (const atMs of [0, 5_000]) checker.lingering(atMs, left)
  assert.equal(problems.length, 2)
})

/** A client that was told about a job. */
function client(keptUntilMs: number) {
  const problems: string[] = []
  const checker = new ClientChecker(problem => problems.push(problem))
  checker.follow(jobId, keptUntilMs)
  const saw = (status: JobStatus, rest: Partial<SeenJob> = {}) => checker.saw({ id: jobId, status, ...rest })
  return { checker, problems, saw }
}

test('a status that leaves a final one is found', () => {
  const { problems, saw } = client(1_000)
  saw('IN_PROGRESS')
  saw('IN_QUEUE')
  saw('COMPLETED', { output: 1 })
  saw('COMPLETED', { output: 1 })
  assert.deepEqual(problems, [])
  saw('IN_PROGRESS')
  assert.equal(problems.length, 1)
})

test('a second output is found', () => {
  const { problems, saw } = client(1_000)
  saw('COMPLETED', { output: 1 })
  saw('COMPLETED', { output: 2 })
  assert.equal(problems.length, 1)
})

test('an output by another worker than the one that is named is found', () => {
  const { problems, saw } = client(1_000)
  saw('COMPLETED', { output: { job: jobId, worker: w1 }, workerId: w2 })
  assert.match(problems.join('\n'), /by worker worker2 has the output of worker worker1/)
})

test('an acknowledged job that vanishes before its time is found', () => {
  const { checker, problems } = client(1_000)
  checker.missed(jobId, 1_000)
  assert.deepEqual(problems, [])
  checker.missed(jobId, 999)
  assert.equal(problems.length, 1)
})
