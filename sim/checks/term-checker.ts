import type { LeaseState } from '../pair/lease-row.ts'

/** State of two servers at an instant. */
export interface PairState {
  /** True if the active server runs, reaches the store and has started. */
  readonly isServed: boolean
  /** True if a server runs and reaches the store. */
  readonly mayBeServed: boolean
}

/** Maximum time from the end of the active server until another one has started. */
const TAKEOVER_MS = 10_000
/**
 * Longest time for which a deposed server that runs may continue requests and steps that it began: as long as a poll
 * and a call that hangs.
 */
const LETTING_GO_MS = 30_000

/**
 * Reports leases that are taken too early, changes by servers that have lost theirs, and
 * takeovers that take too long.
 */
export class TermChecker {
  readonly #report: (problem: string) => void
  /** Maximum age of what a server may rely on when it acts outside of the store, in milliseconds. */
  readonly #confirmMs: number
  readonly #reported = new Set<string>()
  #unservedSinceMs: number | null = null
  /** Times from the end of one active server to the start of the next, in milliseconds. */
  readonly takeoversMs: number[] = []

  /** @param report receives one sentence per problem */
  constructor(report: (problem: string) => void, confirmMs: number) {
    this.#report = report
    this.#confirmMs = confirmMs
  }

  /** A server took the lease. @param nowMs on the clock of the store */
  taken(previous: LeaseState, now: LeaseState, nowMs: number): void {
    const [from, to] = [previous.server?.instance, now.server?.instance]
    // A server that starts again has the lock of its data directory, so that its last process has ended.
    if (!previous.released && nowMs < previous.untilMs && from !== to)
      this.#report(
        `server ${to} took epoch ${now.epoch} while epoch ${previous.epoch} of server ${from} had ${previous.untilMs - nowMs} ms left`,
      )
    if (now.epoch <= previous.epoch) this.#report(`epoch ${now.epoch} came after epoch ${previous.epoch}`)
  }

  /** A change of a server was made in the store. */
  wrote(server: string, epoch: number, { epoch: current, server: active }: LeaseState): void {
    if (epoch !== current || server !== active?.instance)
      this.#once(
        `a change of server ${server} in epoch ${epoch} was made in epoch ${current} of server ${active?.instance}`,
      )
  }

  /**
   * A server did something to a worker.
   * @param ranMs run time of its process since another server took the lease; null before that
   * @param isDeposed true if it noticed that it is deposed
   */
  acted(server: string, act: string, ranMs: number | null, isDeposed: boolean): void {
    if (isDeposed) this.#once(`server ${server} ${act} although it knows that it is deposed`)
    else if (ranMs !== null && ranMs > this.#confirmMs)
      this.#once(`server ${server} ${act} ${ranMs} ms after another one had become active`)
  }

  /**
   * Records an action of a server that only an active server may take.
   * @param ranMs run time of its process since it noticed that it is deposed
   */
  asked(server: string, act: string, ranMs: number): void {
    if (ranMs > LETTING_GO_MS) this.#once(`server ${server} ${act} ${ranMs} ms after it was deposed`)
  }

  /** Reports a time without an active server that is too long. */
  inspect(nowMs: number, { isServed, mayBeServed }: PairState): void {
    if (isServed || !mayBeServed) {
      if (isServed && this.#unservedSinceMs !== null) this.takeoversMs.push(nowMs - this.#unservedSinceMs)
      this.#unservedSinceMs = null
      return
    }
    this.#unservedSinceMs ??= nowMs
    const passedMs = nowMs - this.#unservedSinceMs
    if (passedMs > TAKEOVER_MS)
      this.#once(`no server has become active although one could for more than ${TAKEOVER_MS} ms`)
  }

  /** A start of the active server failed because of an injected fault. */
  startFailed(): void {
    this.#unservedSinceMs = null
  }

  #once(problem: string): void {
    const kind = problem.replace(/\d+ ms/, '')
    if (!this.#reported.has(kind)) this.#report(problem)
    this.#reported.add(kind)
  }
}
