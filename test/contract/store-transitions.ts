import assert from 'node:assert/strict'
import {
  JOB_STATUSES,
  type Job,
  type JobStatus,
  MAX_LOST_ATTEMPTS,
  TRANSITIONS,
  type Transition,
} from '../../src/core/jobs/job.ts'
import type { JobMove } from '../../src/ports/store/store.ts'
import { BROKEN, type Cases, DONE, E1, jobId, makeJob, T0, W1, type World } from './store-world.ts'

const A = jobId('a')
const LATE = T0 + makeJob('x').executionTimeoutMs

/** Every way in which the port moves a job, with the one state that it may lead to. */
const moves: {
  name: string
  transition: Transition
  to: JobStatus
  lost?: number
  run: (world: World) => Promise<unknown>
}[] = [
  { name: 'claim', transition: 'claim', to: 'IN_PROGRESS', run: world => world.claim() },
  { name: 'finish with an output', transition: 'finish', to: 'COMPLETED', run: world => world.finish('a', W1, DONE) },
  { name: 'finish with an error', transition: 'finish', to: 'FAILED', run: world => world.finish('a', W1, BROKEN) },
  { name: 'cancel', transition: 'cancel', to: 'CANCELLED', run: world => world.store.jobOutcomes.cancel(E1, A, T0) },
  {
    name: 'time out',
    transition: 'timeOut',
    to: 'TIMED_OUT',
    run: world => world.store.jobOutcomes.timeOutOverdue(LATE, 9),
  },
  {
    name: 'requeue',
    transition: 'requeue',
    to: 'IN_QUEUE',
    run: world => world.store.jobOutcomes.requeueLost(W1, 'it vanished', T0),
  },
  {
    name: 'requeue past the limit',
    transition: 'requeue',
    to: 'FAILED',
    lost: MAX_LOST_ATTEMPTS - 1,
    run: world => world.store.jobOutcomes.requeueLost(W1, 'it vanished', T0),
  },
  {
    name: 'release all',
    transition: 'release',
    to: 'IN_QUEUE',
    run: world => world.store.jobOutcomes.release(W1, 'all'),
  },
  {
    name: 'release one',
    transition: 'release',
    to: 'IN_QUEUE',
    run: async world => {
      const { attempt } = await world.read('a')
      return world.store.jobOutcomes.release(W1, { jobId: A, attempt })
    },
  },
  {
    name: 'retry',
    transition: 'retry',
    to: 'IN_QUEUE',
    run: world => world.store.jobOutcomes.retry(E1, A, T0 + 9, T0),
  },
  { name: 'purge', transition: 'purge', to: 'CANCELLED', run: world => world.purge() },
]

const reach: Record<JobStatus, (world: World) => Promise<unknown>> = {
  IN_QUEUE: world => world.store.jobOutcomes.requeueLost(W1, 'it vanished', T0),
  IN_PROGRESS: async () => {},
  COMPLETED: world => world.finish('a', W1, DONE),
  FAILED: world => world.finish('a', W1, BROKEN),
  CANCELLED: world => world.store.jobOutcomes.cancel(E1, A, T0),
  TIMED_OUT: world => world.store.jobOutcomes.timeOutOverdue(LATE, 9),
}

/** A job in this state whose holder, or last one, is the worker W1, after so many lost attempts. */
async function jobIn(status: JobStatus, lost: number, world: World): Promise<Job> {
  await world.worker()
  await world.job('a')
  await world.claim()
  for (let n = 0; n < lost; n += 1) {
    await world.store.jobOutcomes.requeueLost(W1, 'it vanished', T0)
    await world.claim()
  }
  await reach[status](world)
  return world.read('a')
}

const isMove = (value: unknown): value is JobMove => typeof value === 'object' && value !== null && 'from' in value

function transitionCase(status: JobStatus, { name, transition, to, lost = 0, run }: (typeof moves)[number]): Cases {
  const from: readonly JobStatus[] = TRANSITIONS[transition].from
  const sentence = from.includes(status) ? `${name} leads from ${status} to ${to}` : `${name} leaves ${status} alone`
  return {
    [sentence]: async world => {
      // A job in the line cannot be one attempt short of its limit and be lost once more.
      const before = await jobIn(status, status === 'IN_QUEUE' ? 0 : lost, world)
      assert.equal(before.status, status)
      const answer = await run(world)
      const after = await world.read('a')
      if (!from.includes(status)) {
        assert.deepEqual(after, before)
        assert.ok(answer === null || (Array.isArray(answer) && answer.length === 0))
        return
      }
      assert.equal(after.status, to)
      const [move] = [answer].flat()
      if (transition === 'claim') assert.equal((move as { id: string }).id, 'a')
      else {
        assert.ok(isMove(move))
        assert.deepEqual({ job: move.job, from: move.from }, { job: after, from: status })
      }
    },
  }
}

/** Each way to move a job, tried on each state: what the table of transitions has happens, and nothing else. */
export const transitionCases: Cases = Object.assign(
  {},
  ...JOB_STATUSES.flatMap(status => moves.map(move => transitionCase(status, move))),
)
