/** Makes the pod of a worker and its secrets, and repeats calls that the cluster does not take. */
import type { WaitForPlace } from '../../core/workers/platform-report.ts'
import { type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import type { StartWatch, WorkerSpec } from '../../ports/driver.ts'
import { clean, findRefusal } from '../base/refusals.ts'
import { type KubernetesError, kubernetesError, type PodObject } from './api.ts'
import type { OwnObject, PodCalls } from './pod-calls.ts'
import { type PodContext, podManifest, secretManifests } from './pod-spec.ts'
import type { WorkerPod } from './worker-pod.ts'

/** Parts of a start. */
export interface PodStart {
  readonly spec: WorkerSpec
  readonly context: PodContext
  readonly pod: WorkerPod
  readonly calls: PodCalls
  readonly clock: Clock
  readonly turns: StartTurns
  /** Gives up. */
  readonly signal: AbortSignal
}

const RETRY_MS = { first: 1_000, most: 15_000 }
const MAX_OWNING = 5
/** Calls for starts at once: the others wait here, so that calls that end pods do not wait behind them. */
const MAX_AT_ONCE = 16

/**
 * Makes the pod of a worker and its secrets. While the API does not respond or a quota is used up it tries again, and
 * the pod reports the reason. Called again after it was broken off, it goes on with the objects that exist.
 * @throws WorkerStartError when the cluster refuses it, or when it was given up
 */
export async function makePod(start: PodStart): Promise<PodObject> {
  const { spec, context, pod, calls } = start
  const manifest = podManifest(spec, context)
  const secrets: OwnObject[] = []
  try {
    // First of all, so that no node finds none; `tidy` removes those that no pod followed.
    for (const secret of secretManifests(spec, context)) {
      secrets.push(await insistently(start, () => calls.save(spec.workerId, secret)))
    }
    const object = await insistently(start, () => calls.create(spec.workerId, manifest))
    pod.noteWait(null)
    void ownSecrets(start, secrets, object)
    return object
  } catch (thrown) {
    for (const secret of secrets) void calls.remove('secrets', secret).catch(() => {})
    throw thrown
  }
}

/** A pod that is deleted in the meantime still takes them with it. */
async function ownSecrets(
  { calls, clock }: PodStart,
  secrets: readonly OwnObject[],
  { metadata }: PodObject,
): Promise<void> {
  const owner = { name: metadata.name, uid: metadata.uid ?? '' }
  for (let attempt = 0; attempt < MAX_OWNING; attempt += 1) {
    try {
      for (const secret of secrets) await calls.own(secret, owner)
      return
    } catch {
      // `tidy` removes them after the worker where no attempt succeeds.
      await pause(clock, RETRY_MS.most)
    }
  }
}

/** Calls until the cluster has accepted or refused. */
async function insistently<Result>(start: PodStart, call: () => Promise<Result>): Promise<Result> {
  const { pod, clock, signal, turns } = start
  let waitMs: number = RETRY_MS.first
  for (;;) {
    if (signal.aborted) throw stoppedStart()
    try {
      return await turns.take(call)
    } catch (thrown) {
      if (thrown instanceof WorkerStartError) throw thrown
      const error = kubernetesError(thrown)
      const wait = passingWait(error)
      if (wait === null) throw new WorkerStartError(refusalFromError(error), { cause: thrown })
      if (pod.uid === null) pod.noteWait(wait)
      await pause(clock, Math.max(waitMs, error.retryAfterMs), signal)
      waitMs = Math.min(waitMs * 2, RETRY_MS.most)
    }
  }
}

/** The wait after a failed call that may succeed later; null for one that never will. */
function passingWait(error: KubernetesError): WaitForPlace | null {
  const message = clean(error.message)
  if (error.isPassing) return { kind: 'platform_away', said: message }
  return error.status === 403 && /exceeded quota/i.test(message) ? { kind: 'platform_quota', said: message } : null
}

function refusalFromError(error: KubernetesError): StartFailure {
  const message = clean(error.message)
  return findRefusal(message, null) ?? { kind: 'cluster_refused', said: message }
}

/** The calls of all starts of one driver, some at a time. */
export class StartTurns {
  readonly #waiting: (() => void)[] = []
  #running = 0

  /** Calls in its turn. */
  async take<Result>(call: () => Promise<Result>): Promise<Result> {
    if (this.#running >= MAX_AT_ONCE) await new Promise<void>(resolve => this.#waiting.push(resolve))
    else this.#running += 1
    try {
      return await call()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running -= 1
      else next()
    }
  }
}

/** A start that was given up. */
export function stoppedStart(): WorkerStartError {
  return new WorkerStartError({ kind: 'stopped', during: 'start' })
}

/** Resolves when a start is given up. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Reports downloads of images to those who watch starts, each by the name of its pod. */
export class StartProgress {
  readonly #watches = new Map<string, { readonly watch: StartWatch; isPulling: boolean }>()

  /** Begins the reports of a pod. */
  begin(pod: string, watch: StartWatch | undefined): void {
    if (watch !== undefined) this.#watches.set(pod, { watch, isPulling: false })
  }

  /** Ends the reports of a pod. */
  end(pod: string): void {
    this.#watches.delete(pod)
  }

  /** Its node downloads its image. */
  notePull(pod: string): void {
    const started = this.#watches.get(pod)
    if (started === undefined || started.isPulling) return
    started.isPulling = true
    started.watch.pulling(null)
  }

  /** Its node has its image, or its program runs. */
  noteImage(pod: string): void {
    const started = this.#watches.get(pod)
    if (started?.isPulling !== true) return
    started.isPulling = false
    started.watch.pulled()
  }
}
