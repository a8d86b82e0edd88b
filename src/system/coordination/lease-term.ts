import { type Clock, pause } from '../../ports/clock.ts'
import type { Leadership, ServerAgreement, Term } from '../../ports/leader.ts'
import type { EpochFence } from '../../store/engines/postgres.ts'
import type { DatabaseLease, LeaseHolder, LeaseRow, LeaseServer } from '../../store/engines/postgres-lease.ts'

export type { LeaseHolder, LeaseRow, LeaseServer } from '../../store/engines/postgres-lease.ts'

/** The row of a lease. All methods throw `unavailable` when the store is away. */
export type LeaseTable = Pick<DatabaseLease, 'read' | 'take' | 'renew' | 'passWriters' | 'release'>

/** A term whose changes of the store assert its epoch. */
export interface FencedTerm extends Term {
  /** Fence that the store of this term asserts with each write. */
  readonly fence: EpochFence
  /** @param leavesWorkers true if workers that are bound to its machine may go on; false by default */
  close(leavesWorkers?: boolean): Promise<void>
}

/** Both clocks of a process: the monotonic one may stand still while the machine sleeps, the other one continues. */
export interface Clocks {
  readonly monotonicMs: number
  /** Epoch milliseconds of a clock that no step of the machine's clock moves, such as that of `ServerClock`. */
  readonly wallMs: number
}

/** The present times of both clocks. */
export function bothClocks(clock: Pick<Clock, 'now' | 'monotonic'>): Clocks {
  return { monotonicMs: clock.monotonic(), wallMs: clock.now() }
}

/** Maximum age of a confirmation that a call of the driver may rely on. */
const FRESH_MS = 1_000
/** Longest wait of a call of the driver for a lease that cannot be confirmed. */
const DOUBT_MS = 3_000
/** Longest wait of an end for PostgreSQL. */
const RELEASE_MS = 2_000
const PAUSE_MS = 200

/**
 * Holds the lease: renews it, computes the time for which it is certain, and detects that
 * another server took it.
 */
export class LeasedTerm implements FencedTerm {
  readonly fence: EpochFence
  readonly #parts
  readonly #watchers = new Set<(now: Leadership, why: string | null) => void>()
  #server: LeaseServer
  #state: Leadership = 'active'
  /** Beginning of the last renewal that PostgreSQL confirmed. */
  #sureAt: Clocks
  #renewing: Promise<void> | null = null
  #cancelBeat = () => {}
  #cancelDoubt = () => {}
  #closed = false

  constructor(parts: {
    readonly lease: LeaseTable
    readonly held: LeaseHolder
    readonly server: LeaseServer
    readonly leaseMs: number
    readonly clock: Clock
    /** The keys and settings of the server, published once it is reached. */
    readonly agreement?: { published(): ServerAgreement | null } | undefined
    /** Beginning of the call that took the lease. */
    readonly takenAt: Clocks
  }) {
    this.#parts = parts
    this.#server = parts.server
    this.#sureAt = parts.takenAt
    this.fence = { ...parts.held, lost: () => this.#refused() }
    this.#cancelBeat = parts.clock.after(this.#beatMs, () => void this.#beats())
    this.#watchDoubt()
  }

  get epoch(): number {
    return this.#parts.held.epoch
  }

  isLeader(): boolean {
    return this.#state === 'active' && !this.#closed && this.#ageMs() < this.#sureMs
  }

  async confirm(): Promise<boolean> {
    if (this.#closed || this.#state === 'deposed') return false
    if (!this.isLeader() || this.#ageMs() >= FRESH_MS) {
      const previousMs = this.#sureAt
      const end = new AbortController()
      await Promise.race([this.#renewNow(), pause(this.#parts.clock, DOUBT_MS, end.signal)])
      end.abort()
      return this.isLeader() && this.#sureAt !== previousMs
    }
    if (this.#ageMs() >= FRESH_MS / 2) void this.#renew()
    return true
  }

  watch(changed: (now: Leadership, why: string | null) => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }

  reachedAt(url: string, openUrl?: string, workersUrl: string | null = null): void {
    const agreement = this.#parts.agreement?.published() ?? null
    this.#server = { ...this.#server, url, openUrl, workersUrl, agreement }
    void this.#renewNow()
  }

  async close(leavesWorkers = false): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#cancelBeat()
    this.#cancelDoubt()
    this.#watchers.clear()
    if (this.#state === 'deposed') return
    const end = new AbortController()
    const { lease, held, clock } = this.#parts
    const released = (this.#renewing ?? Promise.resolve()).then(() => lease.release(held, leavesWorkers))
    // Optional: the lease expires by itself.
    await Promise.race([released, pause(clock, RELEASE_MS, end.signal)]).catch(() => {})
    end.abort()
  }

  /** Interval of renewals, three of which may fail. */
  get #beatMs(): number {
    return this.#parts.leaseMs / 3
  }

  /** Age of the last confirmation at which a server stops acting, well before its lease runs out. */
  get #sureMs(): number {
    return (this.#parts.leaseMs * 5) / 6
  }

  async #beats(): Promise<void> {
    this.#cancelBeat()
    await this.#renewNow()
    if (this.#closed || this.#state === 'deposed') return
    const age = this.#ageMs()
    const nextMs = age < this.#beatMs && this.#state === 'active' ? this.#beatMs - age : PAUSE_MS
    this.#cancelBeat()
    this.#cancelBeat = this.#parts.clock.after(nextMs, () => void this.#beats())
  }

  /** A renewal that begins now, also during another one. */
  async #renewNow(): Promise<void> {
    await this.#renewing
    await this.#renew()
  }

  /** Never throws: without confirmation of PostgreSQL the lease counts as not renewed. */
  #renew(): Promise<void> {
    this.#renewing ??= this.#renewOrNotice().finally(() => {
      this.#renewing = null
    })
    return this.#renewing
  }

  /** Tries twice, since the first use of a lost connection reveals the loss. */
  async #renewOrNotice(): Promise<void> {
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      if (this.#closed || this.#state === 'deposed') return
      const { lease, held, leaseMs, clock } = this.#parts
      const begun = bothClocks(clock)
      try {
        if (await lease.renew(held, this.#server, leaseMs)) this.#confirmed(begun)
        else this.#depose(await lease.read())
        return
      } catch {
        // The next beat tries again.
      }
    }
  }

  #confirmed(begun: Clocks): void {
    this.#sureAt = begun
    if (this.#closed || this.#ageMs() >= this.#sureMs) return
    this.#watchDoubt()
    this.#become('active', null)
  }

  #depose(row: LeaseRow): void {
    if (this.#closed) return
    this.#cancelBeat()
    this.#cancelDoubt()
    this.#become('deposed', deposition(row, this.epoch))
  }

  /** Handles a write of this epoch that PostgreSQL refused; the row has the reason. */
  #refused(): void {
    if (this.#closed || this.#state !== 'active') return
    this.#become('unsure', 'PostgreSQL refused a change, because the lease of this server is over')
    void this.#beats()
  }

  #watchDoubt(): void {
    this.#cancelDoubt()
    this.#cancelDoubt = this.#parts.clock.after(Math.max(1, this.#sureMs - this.#ageMs()), () => {
      if (this.#closed || this.#state !== 'active') return
      if (this.#ageMs() < this.#sureMs) return this.#watchDoubt()
      this.#become('unsure', 'PostgreSQL has not confirmed the lease of this server in time')
    })
  }

  #ageMs(): number {
    const { monotonicMs, wallMs } = bothClocks(this.#parts.clock)
    return Math.max(monotonicMs - this.#sureAt.monotonicMs, wallMs - this.#sureAt.wallMs)
  }

  #become(state: Leadership, reason: string | null): void {
    if (this.#state === state) return
    this.#state = state
    for (const changed of [...this.#watchers]) changed(state, reason)
  }
}

function deposition({ epoch, server }: LeaseRow, ownEpoch: number): string {
  if (server === null || epoch === ownEpoch) return 'the lease of this server was ended in the database'
  return `${serverText(server)} has taken over the database while this one could not renew its lease; its workers go on`
}

/** Text that names a server, for people. */
export function serverText({ pid, host, url }: Pick<LeaseServer, 'pid' | 'host' | 'url'>): string {
  return `the server with pid ${pid} on ${host}${url === null ? '' : ` at ${url}`}`
}
