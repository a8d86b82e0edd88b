import { AppError } from '../../core/errors.ts'
import { type Clock, pause } from '../../ports/clock.ts'
import type { ActiveServer, LeaseCandidate, ServerAgreement } from '../../ports/leader.ts'
import { joinSignals } from '../../ports/signals.ts'
import type { LeaseRow, LeaseServer } from '../../store/engines/postgres-lease.ts'
import { bothClocks, type FencedTerm, LeasedTerm, type LeaseTable, serverText } from './lease-term.ts'

/** Comparison of the keys and settings of a server with those of the active one. */
export interface AgreementOfServer {
  /** The published part while it is active; null before a key exists. */
  published(): ServerAgreement | null
  /**
   * Reason why it must not take over from a server with these, as the rest of a sentence about that server; null when
   * it may.
   */
  problemWith(theirs: ServerAgreement): string | null
}

/** Interval at which a standby server checks the lease. */
const LOOK_MS = 500
const PAUSE_MS = 50

/** Waits for the lease, and takes it once it is free. */
export class LeasedCandidate implements LeaseCandidate {
  readonly #parts
  readonly #end = new AbortController()

  constructor(parts: {
    readonly lease: LeaseTable
    readonly server: LeaseServer
    readonly clock: Clock
    readonly leaseMs: number
    /** The database, for people. */
    readonly database: string
    /** Its keys and settings; without them servers are not compared. */
    readonly agreement?: AgreementOfServer
    /** Names that are unique among all servers. */
    readonly unique: () => string
  }) {
    this.#parts = parts
  }

  async active(): Promise<ActiveServer | null> {
    const row = await this.#parts.lease.read().catch(() => null)
    if (row === null || row.released || row.server === null) return null
    const { pid, host, url, openUrl, workersUrl, machine, boundToMachine, agreement = null } = row.server
    const { epoch, takenAtMs: sinceMs, leftMs: leaseLeftMs } = row
    const server = { epoch, pid, host, url, workersUrl, agreement, machine, boundToMachine, sinceMs, leaseLeftMs }
    return openUrl === undefined ? server : { ...server, openUrl }
  }

  async lead(callerSignal: AbortSignal): Promise<FencedTerm> {
    using both = joinSignals(callerSignal, this.#end.signal)
    const { signal } = both
    for (;;) {
      signal.throwIfAborted()
      let waitMs = LOOK_MS
      try {
        const row = await this.#parts.lease.read()
        this.#refuseOtherMachine(row)
        waitMs = this.#waitFor(row)
        if (waitMs > 0) this.#refuseOtherKeys(row)
        const term = waitMs > 0 ? null : await this.#take(signal)
        if (term !== null) return term
      } catch (error) {
        if (!isUnavailable(error)) throw error
      }
      await pause(this.#parts.clock, Math.max(PAUSE_MS, Math.min(LOOK_MS, waitMs)), signal)
    }
  }

  async close(): Promise<void> {
    this.#end.abort(new AppError('unavailable', 'this server ends'))
  }

  /** Time until the lease may be free for this server. */
  #waitFor({ released, server, leftMs }: LeaseRow): number {
    const { instance, machine } = this.#parts.server
    const isOwn = instance !== null && server?.instance === instance && server.machine === machine
    return released || isOwn ? 0 : leftMs
  }

  /**
   * Takes the lease and makes sure that no server of an older epoch can write.
   * @returns null when another server was faster
   */
  async #take(signal: AbortSignal): Promise<FencedTerm | null> {
    const { lease, server, leaseMs, clock, agreement } = this.#parts
    const takenAt = bothClocks(clock)
    const holder = this.#parts.unique()
    const epoch = await lease.take(holder, server, leaseMs)
    if (epoch === null) return null
    const term = new LeasedTerm({ lease, server, leaseMs, clock, agreement, held: { epoch, holder }, takenAt })
    let deposed = false
    const unwatch = term.watch(state => {
      deposed = state === 'deposed'
    })
    try {
      while (!deposed && !signal.aborted) {
        if (await this.#passWriters(epoch)) return term
      }
      await term.close(true)
      return null
    } catch (error) {
      await term.close(true)
      throw error
    } finally {
      unwatch()
    }
  }

  async #passWriters(epoch: number): Promise<boolean> {
    try {
      return await this.#parts.lease.passWriters(epoch)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      await pause(this.#parts.clock, PAUSE_MS)
      return false
    }
  }

  /** Workers that are bound to another machine would continue to run there, and this server could not see them. */
  #refuseOtherMachine({ released, server }: LeaseRow): void {
    const mine = this.#parts.server
    if (released || server === null || !server.boundToMachine) return
    if (server.machine === mine.machine) return
    if (server.instance !== null && server.instance === mine.instance) return
    throw new AppError('invalid', bound(this.#parts.database, server))
  }

  /** Keys of the active server would no longer be valid after a takeover by this one. */
  #refuseOtherKeys({ server }: LeaseRow): void {
    const { agreement, database } = this.#parts
    if (server?.agreement == null) return
    const problem = agreement?.problemWith(server.agreement) ?? null
    if (problem === null) return
    throw new AppError(
      'invalid',
      `${serverText(server)} acts on the database ${database} ${problem}; nothing was changed`,
    )
  }
}

function bound(database: string, server: LeaseServer): string {
  return (
    `processes and containers are bound to their machine, and those of the database ${database} are on that of ${serverText(server)}, ` +
    'so this server cannot stand by for it: start both with --docker off --processes off, or both on one machine with the same --data-dir; if that machine is gone for good, run ' +
    '"UPDATE server_lease SET released = true" in the database'
  )
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
