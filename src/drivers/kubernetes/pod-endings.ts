/** Asks the cluster to end pods, again and again until it has taken each call. */
import { type Clock, pause } from '../../ports/clock.ts'
import type { PodCalls } from './pod-calls.ts'
import type { PodEnding, WorkerPod } from './worker-pod.ts'

/**
 * Killed pods get a moment, in which their node confirms their end. Without it the cluster would forget them while
 * they may run.
 */
export const KILL_S = 1

const MAX_REMOVALS = 5
const RETRY_MS = 1_000

interface Ending {
  /** The last call that the cluster has taken. */
  sent: PodEnding | null
  isSending: boolean
}

/** The pods that were asked to end. */
export class PodEndings {
  readonly #calls
  readonly #clock
  readonly #graceS
  readonly #endings = new Map<WorkerPod, Ending>()
  #closed = false

  /** @param graceS seconds that a pod may take to end unless it is killed */
  constructor(calls: PodCalls, clock: Clock, graceS: number) {
    this.#calls = calls
    this.#clock = clock
    this.#graceS = graceS
  }

  /** Sends the cluster the last request to a pod. Resolves when the cluster took it, or does not answer. */
  async send(pod: WorkerPod): Promise<void> {
    const ending = this.#endings.get(pod) ?? { sent: null, isSending: false }
    this.#endings.set(pod, ending)
    if (ending.isSending) return
    ending.isSending = true
    try {
      while (pod.asked !== null && ending.sent !== pod.asked && pod.exit === null) {
        const { asked, name } = pod
        const uid = pod.uid ?? (await this.#calls.find(pod.worker))?.metadata.uid
        const graceS = asked === 'kill' ? KILL_S : this.#graceS
        const isThere = uid !== undefined && (await this.#calls.remove('pods', { name, uid }, graceS))
        ending.sent = asked
        if (!isThere) pod.noteGone(null)
      }
    } catch {
      // The API is away or busy.
    } finally {
      ending.isSending = false
    }
  }

  /** Sends requests again that the cluster has not taken. */
  sendAgain(): void {
    if (this.#closed) return
    for (const [pod, { sent }] of this.#endings) {
      if (pod.exit !== null) this.#endings.delete(pod)
      else if (sent !== pod.asked) void this.send(pod)
    }
  }

  /**
   * Forgets a pod that has ended and removes it from the cluster. One that was asked to end goes by itself, unless
   * nobody would confirm that, since its node is lost. `tidy` removes what this cannot.
   */
  async forget(pod: WorkerPod): Promise<void> {
    this.#endings.delete(pod)
    const { uid, name, isLost, isLeft } = pod
    if (uid === null || !isLeft) return
    for (let attempt = 0; attempt < MAX_REMOVALS && !this.#closed; attempt += 1) {
      try {
        await this.#calls.remove('pods', { name, uid }, isLost ? 0 : undefined)
        return
      } catch {
        await pause(this.#clock, RETRY_MS * 2 ** attempt)
      }
    }
  }

  /** Sends no more. */
  close(): void {
    this.#closed = true
  }
}
