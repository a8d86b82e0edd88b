/** Tells the cluster which pods are to end, again and again until it has taken it. */
import type { PodCalls } from './pod-calls.ts'
import type { PodEnding, WorkerPod } from './worker-pod.ts'

/** Killed pods get a moment, in which their node confirms their end. Without it the cluster would forget them while they may run. */
export const KILL_S = 1

interface Ending {
  /** What the cluster has taken. */
  sent: PodEnding | null
  isSending: boolean
}

/** The pods that were asked to end. */
export class PodEndings {
  readonly #calls: PodCalls
  readonly #graceS: number
  readonly #endings = new Map<WorkerPod, Ending>()

  /** @param graceS how long a pod may take that is not killed */
  constructor(calls: PodCalls, graceS: number) {
    this.#calls = calls
    this.#graceS = graceS
  }

  /** Tells the cluster what a pod was asked. Resolves when it has taken that, or does not answer. */
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
        if (!isThere) pod.gone(null)
      }
    } catch {
      // The API is away or busy.
    } finally {
      ending.isSending = false
    }
  }

  /** Tells the cluster again what it has not taken. */
  sendAgain(): void {
    for (const [pod, { sent }] of this.#endings) {
      if (pod.exit !== null) this.#endings.delete(pod)
      else if (sent !== pod.asked) void this.send(pod)
    }
  }

  /** Forgets a pod. */
  forget(pod: WorkerPod): void {
    this.#endings.delete(pod)
  }
}
