import { desiredWorkers, type EndpointSnapshot, waitingCount } from '../scaling/scale.ts'
import { isFrozen, type WorkerLoad } from '../workers/worker.ts'
import { suspensionOf } from '../workers/worker-suspension.ts'
import { counted, currentWorkers, noPercent, type PullPercent, workerFacts } from './explain-facts.ts'
import { endpointWords, placeAdvice } from './explain-words.ts'
import { type Explanation, plain } from './explanation.ts'
import { type ActionFacts, placeActions } from './fix-actions.ts'

/** Facts for the sentences besides the snapshot. */
interface SleeperFacts extends ActionFacts {
  readonly nowMs: number
  readonly pullPercent?: PullPercent
}

/** A sleeping worker is wanted, and the GPUs that it gave back are not free, or a paused worker goes first. */
export function waking(snapshot: EndpointSnapshot, context: SleeperFacts): Explanation | null {
  const { nowMs, pullPercent = noPercent } = context
  const { endpoint, queue, workers } = snapshot
  const sleepers = workers.filter(
    worker =>
      isFrozen(worker) && worker.pause === null && worker.version === endpoint.version && worker.asleepAtMs !== null,
  )
  const first = workers.find(worker => worker.pause !== null && worker.wakeWaitsFor !== null)
  const sleeper = sleepers.find(worker => worker.wakeWaitsFor !== null) ?? (first && sleepers[0])
  const current = currentWorkers(snapshot).length
  if (sleeper === undefined || queue.queued === 0 || desiredWorkers(snapshot, nowMs).desired <= current) return null
  const why = sleeper.wakeWaitsFor ?? `paused worker ${first?.id} goes on before it: ${first?.wakeWaitsFor}`
  const summary = `worker ${sleeper.id} sleeps and wakes once it has its GPU memory again: ${why}`
  return {
    ...plain(current === 0 ? 'no_capacity' : 'throttled', summary),
    advice: placeAdvice('gpu'),
    actions: placeActions('gpu', snapshot, context),
    sinceMs: queue.headQueuedAtMs,
    facts: workerFacts(snapshot, nowMs, pullPercent),
  }
}

/** No worker can take a job, and a frozen or suspended one is about to run again. */
export function thawing(
  snapshot: EndpointSnapshot,
  { nowMs, pullPercent = noPercent }: SleeperFacts,
): Explanation | null {
  const { endpoint, queue, workers } = snapshot
  const current = currentWorkers(snapshot)
  const isResuming = (worker: WorkerLoad) => worker.pause === null && suspensionOf(worker)?.phase === 'resuming'
  const frozen = workers.find(
    worker => isFrozen(worker) && worker.pause === null && worker.version === endpoint.version,
  )
  const worker = current.find(isResuming) ?? frozen
  if (worker === undefined || queue.queued === 0 || !current.every(isResuming)) return null
  const doing = isResuming(worker)
    ? `worker ${worker.id} gets its memory on its GPU again`
    : suspensionOf(worker)?.phase === 'suspending'
      ? `worker ${worker.id} is being suspended, and resumed after that`
      : `frozen worker ${worker.id} is about to be thawed`
  return {
    ...plain('about_to_start', `${counted(waitingCount(queue), endpointWords(snapshot).thing)} waiting; ${doing}`),
    advice: 'wait a moment',
    sinceMs: queue.headQueuedAtMs,
    facts: workerFacts(snapshot, nowMs, pullPercent),
  }
}
