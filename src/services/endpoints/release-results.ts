import type { KeptRelease } from '../../core/endpoints/release.ts'
import { savedEnv } from '../../core/endpoints/saved-env.ts'
import type { EndpointId, JobId, WorkerId } from '../../core/ids.ts'
import { failuresText } from '../../core/scaling/rollout.ts'
import { judgeRelease } from '../../core/scaling/rollout-judge.ts'
import type { Emit, EventName, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'
import type { JudgedRelease, WorkerResults } from '../../ports/store/management-store.ts'

/** Limit of workers whose results one call of the store adds. */
const MAX_ADDED = 500
/** Limit of workers with results in memory while the store fails; results of further workers are not counted. */
const MAX_HELD = 20_000
/**
 * Limits of remembered jobs that were queued again, and of workers that lost jobs; past them the oldest are
 * forgotten.
 */
const MAX_REMEMBERED = 10_000

/** Variable of an endpoint's environment; `off` keeps its releases from being stopped. */
const JUDGE_VARIABLE = 'RUNYARD_ROLLOUT_JUDGE'

type Counted = { -readonly [Field in keyof Omit<WorkerResults, 'workerId'>]: WorkerResults[Field] }
type Readers = { readonly [Name in EventName]?: (fields: Events[Name]) => void }

/**
 * Counts results of the jobs and requests of each release from the stream of events, adds them to the store in
 * groups, and stops a new release that fails clearly more often than the last good one. Results that were not stored
 * are lost when the server is killed. A result is a job that its worker ended or that ran out of its execution
 * timeout, and a whole response; a failure is a job that is FAILED or TIMED_OUT, a response of 500 and above, and a
 * crash of a worker with jobs, once. A job that a client queued again counts once, by its first result; cancelled,
 * expired and undelivered jobs do not count.
 */
export class ReleaseResults {
  readonly #ports
  readonly #judges
  /** Results that are not stored. */
  readonly #results = new Map<WorkerId, Counted>()
  readonly #retried = new Set<JobId>()
  /** Workers whose jobs were taken back, until they end. */
  readonly #losing = new Set<WorkerId>()
  #flushing: Promise<void> = Promise.resolve()

  /** @param judges true to stop releases; their results are counted in any case */
  constructor(ports: Ports, judges: boolean) {
    this.#ports = ports
    this.#judges = judges
  }

  readonly #readers: Readers = {
    'job.moved': ({ jobId, transition, to, workerId }) => {
      if (transition === 'retry') remember(this.#retried, jobId)
      if (workerId === null) return
      if (transition === 'requeue') remember(this.#losing, workerId)
      const isResult = transition === 'finish' || transition === 'timeOut'
      if (isResult && !this.#retried.delete(jobId)) this.#count(workerId, to !== 'COMPLETED')
    },
    'worker.exited': ({ workerId }) => {
      if (!this.#losing.delete(workerId)) return
      const counted = this.#of(workerId)
      if (counted !== null) counted.lostJobs = true
    },
    'gateway.request_finished': ({ workerId, status, complete }) => {
      // An answer that was cut may have been cut by its client.
      if (workerId !== null && (status >= 500 || complete)) this.#count(workerId, status >= 500)
    },
  }

  /** A reader of the event stream. */
  readonly emit: Emit = (name, fields) => this.#readers[name]?.(fields)

  /** Stores the results, and judges the new releases among their releases. */
  flush(): Promise<void> {
    const flushed = this.#flushing.then(() => this.#flush())
    this.#flushing = flushed.catch(() => {})
    return flushed
  }

  async #flush(): Promise<void> {
    for (let newResults = this.#taken(); newResults.length > 0; newResults = this.#taken()) {
      const judged = await this.#ports.store.releases.addResults(newResults).catch((error: unknown) => {
        for (const { workerId, ...counted } of newResults) this.#giveBack(workerId, counted)
        throw error
      })
      if (this.#judges) for (const release of judged) await this.#judge(release)
    }
  }

  async #judge({ endpointId, version, readyAtMs, results, good }: JudgedRelease): Promise<void> {
    const { releases } = this.#ports.store
    const nowMs = this.#ports.clock.now()
    const verdict = judgeRelease({ results, readyAtMs, good: good?.results ?? null }, nowMs)
    if (verdict === 'open') return
    if (verdict === 'over' || good === null) return releases.endTrial(endpointId, version)
    await this.#stop({ endpointId, version, results, good }, nowMs)
  }

  async #stop(
    { endpointId, version, results, good }: Pick<JudgedRelease, 'endpointId' | 'version' | 'results'> & JudgedAgainst,
    nowMs: number,
  ): Promise<void> {
    const { store, emit, notifier } = this.#ports
    const endpoint = await store.endpoints.find(endpointId)
    const release = await store.releases.find(endpointId, version)
    const working = await store.releases.find(endpointId, good.version)
    // Workers of a queue serve no requests.
    if (endpoint === null || working?.configuration?.endpoint.type !== endpoint.type || declines(release)) {
      return store.releases.endTrial(endpointId, version)
    }
    const stop = { atMs: nowMs, release: results, working: good.results }
    if (!(await store.releases.stop(endpointId, version, good.version, stop))) return
    emit('rollout.stopped', {
      endpointId,
      version,
      crashes: 0,
      working: good.version,
      cause: failuresText({ type: endpoint.type, version }, { stop, working: good.version }),
      failures: {
        ended: results.ended,
        failed: results.failed,
        workingEnded: good.results.ended,
        workingFailed: good.results.failed,
      },
    })
    notifier.publish(`load:${endpointId}`)
    notifier.publish(`queue:${endpointId}`)
  }

  #count(workerId: WorkerId, hasFailed: boolean): void {
    const counted = this.#of(workerId)
    if (counted === null) return
    counted.ended += 1
    if (hasFailed) counted.failed += 1
  }

  /** Null when too many workers are counted. */
  #of(workerId: WorkerId): Counted | null {
    const existing = this.#results.get(workerId)
    if (existing !== undefined) return existing
    if (this.#results.size >= MAX_HELD) return null
    const counted = { ended: 0, failed: 0, lostJobs: false }
    this.#results.set(workerId, counted)
    return counted
  }

  #taken(): WorkerResults[] {
    const newResults: WorkerResults[] = []
    for (const [workerId, counted] of this.#results) {
      if (newResults.length === MAX_ADDED) break
      this.#results.delete(workerId)
      newResults.push({ workerId, ...counted })
    }
    return newResults
  }

  #giveBack(workerId: WorkerId, { ended, failed, lostJobs }: Counted): void {
    const counted = this.#of(workerId)
    if (counted === null) return
    counted.ended += ended
    counted.failed += failed
    counted.lostJobs ||= lostJobs
  }
}

/** True when the variables of a release turn its judgment off. */
function declines(release: KeptRelease | null): boolean {
  const configuration = release?.configuration
  return configuration != null && savedEnv(configuration.endpoint, configuration.template)[JUDGE_VARIABLE] === 'off'
}

interface JudgedAgainst {
  readonly good: NonNullable<JudgedRelease['good']>
}

function remember<Id extends EndpointId | JobId | WorkerId>(ids: Set<Id>, id: Id): void {
  ids.add(id)
  if (ids.size > MAX_REMEMBERED) ids.delete(ids.values().next().value!)
}
