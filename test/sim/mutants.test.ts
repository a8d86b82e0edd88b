/** Stores with a mistake in them: a simulator that does not find it would not find it in ours either. */
import { test } from 'node:test'
import type { Database } from '../../sim/store.ts'
import { NOTHING_HELD } from '../../src/core/accounts/quotas.ts'
import { NO_JOB_USAGE } from '../../src/core/billing/usage.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../src/core/ids.ts'
import type { EndpointSnapshot } from '../../src/core/scaling/scale.ts'
import { UNPLACED } from '../../src/core/workers/placement.ts'
import type { QuotaStore } from '../../src/ports/store/quota-store.ts'
import type { FinishRequest, JobOutcomeStore, JobStore, Store, StreamStore } from '../../src/ports/store/store.ts'
import { assertReported, everyNth, type MutantReport } from './mutant.ts'

/** A mistake of a store, the code that makes it, and the problem that the checkers report. */
interface Mutant extends MutantReport {
  readonly name: string
  readonly break: (database: Database) => Store
}

const withJobs = (store: Store, changes: Partial<JobStore>): Store => ({
  ...store,
  jobs: { ...store.jobs, ...changes },
})
const withOutcomes = (store: Store, changes: Partial<JobOutcomeStore>): Store => ({
  ...store,
  jobOutcomes: { ...store.jobOutcomes, ...changes },
})
const withStreams = (store: Store, changes: Partial<StreamStore>): Store => ({
  ...store,
  streams: { ...store.streams, ...changes },
})

async function withoutHead(store: Store, id: EndpointId): Promise<EndpointSnapshot | null> {
  const snapshot = await store.endpoints.snapshot(id)
  return snapshot === null ? null : { ...snapshot, queue: { ...snapshot.queue, headQueuedAtMs: null } }
}

const MUTANTS: readonly Mutant[] = [
  {
    name: 'takes results from anyone',
    seed: 39,
    break: withoutFence,
    expected: /which sent no result|that no run of it has sent/,
  },
  {
    name: 'forgets jobs',
    break: ({ store }) => {
      const isLost = everyNth(10)
      return withJobs(store, { insert: async job => (isLost() ? true : store.jobs.insert(job)) })
    },
    expected: /has an event that it was accepted, and was not stored/,
  },
  {
    name: 'says that a result is kept, and loses it',
    seed: 2,
    break: lossy,
    expected: /finish of job .* has an event and was never stored/,
  },
  {
    name: 'never notes the end of a worker',
    break: ({ store }) => ({ ...store, workers: { ...store.workers, exited: async () => null } }),
    expected: /although its process has ended/,
  },
  {
    name: 'does not know since when the first job waits',
    seed: 9,
    break: ({ store }) => ({ ...store, endpoints: { ...store.endpoints, snapshot: id => withoutHead(store, id) } }),
    expected: /the first job waits \d+ ms beyond its delay|waits for one of \d+ workers, all busy/,
  },
  {
    name: 'hands out the last job first',
    seed: 3,
    break: ({ store }) => withJobs(store, { insert: job => store.jobs.insert({ ...job, position: -job.position }) }),
    expected: /was claimed .* before job .*, which was first in the queue/,
  },
  {
    name: 'gives jobs that were lost twice company',
    seed: 16,
    break: sociable,
    expected: /beside job .*lost twice|which was lost twice, was dispatched/,
  },
  {
    name: 'takes a job from a worker that lives',
    seed: 4,
    break: thief,
    expected: /was dispatched to worker .* while worker .* runs it/,
  },
  {
    name: 'makes a job of each try with the same key',
    seed: 4,
    break: ({ store }) =>
      withJobs(store, { insertOnce: async job => ((await store.jobs.insert(job)) ? job.id : null) }),
    expected: /was sent \d+ times and has 2 jobs/,
  },
  {
    name: 'drops chunks',
    seed: 2,
    break: ({ store }) => {
      const isLost = everyNth(4)
      const append: StreamStore['append'] = async (...args) => (isLost() ? true : store.streams.append(...args))
      return withStreams(store, { append })
    },
    expected: /chunk \d+ of job .* never arrived/,
  },
  {
    name: 'does not always note that chunks were handed out',
    break: ({ store }) => {
      const isLost = everyNth(4)
      const streamed: StreamStore['streamed'] = async (...args) =>
        isLost() ? undefined : store.streams.streamed(...args)
      return withStreams(store, { streamed })
    },
    expected: /chunk \d+ of job .* came after chunk/,
  },
  {
    name: 'loses deliveries of webhooks',
    seed: 8,
    break: forgetfulCourier,
    expected: /had \d ends, and has \d deliveries/,
  },
  {
    name: 'never finds some deliveries',
    break: ({ store }) => {
      const due: Store['webhooks']['due'] = async (...args) =>
        (await store.webhooks.due(...args)).filter(({ id }) => !/[13579]$/.test(id))
      return { ...store, webhooks: { ...store.webhooks, due } }
    },
    expected: /work is left long after the last fault: delivery .* waits after 0 tries/,
  },
  {
    name: 'keeps the result of a job that is retried',
    seed: 13,
    break: sticky,
    expected: /is IN_QUEUE and shows the result/,
  },
  {
    name: 'purges one job of many',
    seed: 4,
    break: ({ store }) =>
      withOutcomes(store, {
        purge: async (endpoint, nowMs, _limit, parts) => ({
          ...(await store.jobOutcomes.purge(endpoint, nowMs, 1, parts)),
          left: [],
        }),
      }),
    expected: /is still queued after a purge/,
  },
  {
    name: 'counts completions twice',
    break: miscounting,
    expected: /has \d+ completed in the store, and \d+ by the changes/,
  },
  {
    name: 'does not see workers',
    seed: 4,
    break: ({ store }) => {
      const snapshot: Store['endpoints']['snapshot'] = async id => {
        const found = await store.endpoints.snapshot(id)
        return found === null ? null : { ...found, workers: [] }
      }
      return { ...store, endpoints: { ...store.endpoints, snapshot } }
    },
    expected: /is explained as about_to_start .*, but workers are there/,
  },
  {
    name: 'forgets what workers were given of the machine',
    seed: 2,
    break: ({ store }) => {
      const loads: Store['workers']['loads'] = async () =>
        (await store.workers.loads()).map(worker => ({ ...worker, placement: UNPLACED }))
      return { ...store, workers: { ...store.workers, loads } }
    },
    expected: /was placed on GPU \d+, which worker .* has/,
  },
  {
    name: 'keeps none of the workers that wait for a place',
    seed: 2,
    break: ({ store }) => ({ ...store, queuedWorkers: { ...store.queuedWorkers, replace: async () => {} } }),
    expected: /has an event about workers without a placement, and the store has no such workers/,
  },
  {
    name: 'never lets go of workers that wait for a place',
    break: ({ store }) => {
      const replace: Store['queuedWorkers']['replace'] = async (endpoint, workers) => {
        if (workers.length > 0) await store.queuedWorkers.replace(endpoint, workers)
      }
      return { ...store, queuedWorkers: { ...store.queuedWorkers, replace } }
    },
    expected: /waits for a placement, and is not needed/,
  },
  {
    name: 'does not see the jobs that count for limits',
    seed: 3,
    break: ({ store }) => {
      const jobs: QuotaStore['jobs'] = async () => ({ held: NOTHING_HELD, next: null })
      return { ...store, quotas: { ...store.quotas, jobs } }
    },
    expected: /the account has \d+ queued jobs, and its limit is \d+/,
  },
  {
    name: 'counts the workers of the account as those of others',
    break: ({ store }) => {
      const loads: Store['workers']['loads'] = async () =>
        (await store.workers.loads()).map(worker => ({ ...worker, owner: 'another' as OwnerId }))
      return { ...store, workers: { ...store.workers, loads } }
    },
    expected: /the account has \d+ (workers|GPUs), and its limit is \d+/,
  },
  {
    name: 'keeps ended workers for ever',
    break: ({ store }) => ({ ...store, workers: { ...store.workers, removeExited: async () => [] } }),
    expected: /after the retention period \d+ rows are left in ended workers/,
  },
]

for (const mutant of MUTANTS) {
  test(`a store that ${mutant.name} is found out`, async () => {
    await assertReported(mutant, { mutateStore: mutant.break })
  })
}

test('a server that goes by the clock of the machine is found', async () => {
  const found = /early|timed out after|runs \d+ ms after its execution timeout|ms before it was/
  await assertReported({ expected: found }, { goesByMachine: true })
})

/** Takes each result as if it were the holder's. */
function withoutFence({ store, query }: Database): Store {
  const finish = (request: FinishRequest) => {
    const [row] = query<{ worker_id: WorkerId | null }>('SELECT worker_id FROM jobs WHERE id = ?', request.jobId)
    return store.jobOutcomes.finish({ ...request, workerId: row?.worker_id ?? request.workerId })
  }
  return withOutcomes(store, { finish })
}

function lossy({ store, query }: Database): Store {
  const isLost = everyNth(10)
  const finish: JobOutcomeStore['finish'] = async request => {
    if (!isLost()) return store.jobOutcomes.finish(request)
    const [row] = query<{ endpoint_id: string }>('SELECT endpoint_id FROM jobs WHERE id = ?', request.jobId)
    const job = await store.jobs.find((row?.endpoint_id ?? '') as never, request.jobId, request.nowMs)
    if (job?.status !== 'IN_PROGRESS') return null
    return { job: { ...job, status: 'COMPLETED' }, from: job.status, usage: NO_JOB_USAGE, begun: null }
  }
  return withOutcomes(store, { finish })
}

/** At some claims, another worker's jobs go back to the line first. */
function thief({ store, query }: Database): Store {
  const isHungry = everyNth(8)
  const claim: JobStore['claim'] = async request => {
    const [row] = query<{ worker_id: WorkerId }>(
      `SELECT worker_id FROM jobs WHERE status = 'IN_PROGRESS' AND endpoint_id = ? AND worker_id <> ? ORDER BY id`,
      ...[request.endpointId, request.workerId],
    )
    if (row !== undefined && isHungry()) await store.jobOutcomes.requeueLost(row.worker_id, 'hunger', request.nowMs)
    return store.jobs.claim(request)
  }
  return withJobs(store, { claim })
}

function sociable({ store, query }: Database): Store {
  const requeueLost: JobOutcomeStore['requeueLost'] = async (...args) => {
    const moves = await store.jobOutcomes.requeueLost(...args)
    query(`UPDATE jobs SET queue = COALESCE(batch_id, '') WHERE queue = 'alone'`)
    return moves
  }
  return withOutcomes(store, { requeueLost })
}

function forgetfulCourier({ store, query }: Database): Store {
  const finish: JobOutcomeStore['finish'] = async request => {
    const move = await store.jobOutcomes.finish(request)
    if (/[0-3]-u1$/.test(request.jobId)) query('DELETE FROM webhook_deliveries WHERE job_id = ?', request.jobId)
    return move
  }
  return withOutcomes(store, { finish })
}

function sticky({ store }: Database): Store {
  const retried = new Map<string, string>()
  const find: JobStore['find'] = async (...args) => {
    const job = await store.jobs.find(...args)
    if (job?.error != null) retried.set(job.id, job.error)
    return job?.status === 'IN_QUEUE' ? { ...job, error: retried.get(job.id) ?? null } : job
  }
  return withJobs(store, { find })
}

function miscounting({ store, query }: Database): Store {
  const finish: JobOutcomeStore['finish'] = async request => {
    const move = await store.jobOutcomes.finish(request)
    if (move !== null)
      query(
        'UPDATE endpoint_counters SET completed = completed + 1 WHERE endpoint_id = ? AND shard = -1',
        move.job.endpointId,
      )
    return move
  }
  return withOutcomes(store, { finish })
}
