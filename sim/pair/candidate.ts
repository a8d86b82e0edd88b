import { AppError } from '../../src/core/errors.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { ActiveServer, LeaseCandidate, Leadership, Term } from '../../src/ports/leader.ts'
import type { Life } from '../life.ts'
import type { LeaseRow } from './lease-row.ts'
import type { StoreLink } from './store-link.ts'

/** What a candidate uses. */
export interface CandidateParts {
  readonly server: string
  readonly life: Life
  readonly clock: Clock
  readonly row: LeaseRow
  readonly link: StoreLink
}

/** How often a candidate tries to take the lease, and a term renews it. */
const LOOK_MS = 500
const RENEW_MS = 2_000
/** Time without a renewal after which a term is not sure any more: less than the lease lasts. */
const SURE_MS = 5_000
/** Maximum age of a renewal that a change outside of the store may rely on. */
export const FRESH_MS = 1_000
/** Limit of one call about the lease. */
const CALL_MS = 2_000

/** A server of the simulation that may become active: the model of the one on PostgreSQL. */
export class SimCandidate implements LeaseCandidate {
  readonly #parts: CandidateParts

  constructor(parts: CandidateParts) {
    this.#parts = parts
  }

  async active(): Promise<ActiveServer | null> {
    return null
  }

  async lead(signal: AbortSignal): Promise<SimTerm> {
    const { life, row, server } = this.#parts
    for (;;) {
      if (signal.aborted) throw new AppError('unavailable', 'this server ends')
      const sinceMs = bothClocks(this.#parts.clock)
      const epoch = await within(this.#parts, async () => row.take(server)).catch(() => null)
      if (epoch !== null) return new SimTerm(this.#parts, epoch, sinceMs)
      await life.sleep(LOOK_MS)
    }
  }

  async close(): Promise<void> {}
}

/** The time in which a simulated server has the lease. */
export class SimTerm implements Term {
  readonly epoch: number
  readonly #parts: CandidateParts
  readonly #watchers = new Set<(now: Leadership, why: string | null) => void>()
  #state: Leadership = 'active'
  /** When the last renewal began, by both clocks: one of them may stand still. */
  #sureAt: BothClocks
  #checking: Promise<void> | null = null
  #closed = false

  constructor(parts: CandidateParts, epoch: number, sureAt: BothClocks) {
    this.#parts = parts
    this.epoch = epoch
    this.#sureAt = sureAt
    parts.life.after(RENEW_MS, () => void this.#beat())
  }

  isLeader(): boolean {
    return this.#state === 'active' && this.#ageMs() < SURE_MS
  }

  async confirm(): Promise<boolean> {
    if (this.#state === 'deposed') return false
    if (this.#ageMs() >= FRESH_MS) await this.#check()
    return this.isLeader()
  }

  watch(changed: (now: Leadership, why: string | null) => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }

  reachedAt(): void {}

  async close(): Promise<void> {
    this.#closed = true
    const { row } = this.#parts
    await within(this.#parts, async () => row.release(this.epoch))
  }

  /** The store has refused a change of this epoch. */
  lost(): void {
    this.#become('deposed')
  }

  async #beat(): Promise<void> {
    if (this.#closed || this.#state === 'deposed') return
    await this.#check()
    this.#parts.life.after(RENEW_MS, () => void this.#beat())
  }

  #check(): Promise<void> {
    const asked = bothClocks(this.#parts.clock)
    const { row } = this.#parts
    this.#checking ??= within(this.#parts, async () => row.renew(this.epoch))
      .then(
        isOurs => {
          if (isOurs) this.#sureAt = asked
          this.#become(isOurs ? 'active' : 'deposed')
        },
        () => {
          if (this.#ageMs() >= SURE_MS) this.#become('unsure')
        },
      )
      .finally(() => {
        this.#checking = null
      })
    return this.#checking
  }

  #ageMs(): number {
    const now = bothClocks(this.#parts.clock)
    return Math.max(now.wallMs - this.#sureAt.wallMs, now.monotonicMs - this.#sureAt.monotonicMs)
  }

  #become(state: Leadership): void {
    if (this.#state === state || this.#state === 'deposed' || this.#closed) return
    this.#state = state
    const why = state === 'active' ? null : 'the simulated lease was lost'
    for (const changed of [...this.#watchers]) changed(state, why)
  }
}

interface BothClocks {
  readonly wallMs: number
  readonly monotonicMs: number
}

function bothClocks(clock: Clock): BothClocks {
  return { wallMs: clock.now(), monotonicMs: clock.monotonic() }
}

/** One call about the lease; fails when it takes too long. */
async function within<Value>({ link, life }: CandidateParts, run: () => Promise<Value>): Promise<Value> {
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = life.after(CALL_MS, () => reject(new AppError('unavailable', 'the store does not answer')))
  })
  return Promise.race([link.ask(life, run), late]).finally(cancel)
}
