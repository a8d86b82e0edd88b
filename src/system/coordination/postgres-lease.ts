import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { AppError } from '../../core/errors.ts'
import type { ActiveServer, LeaseCandidate } from '../../ports/leader.ts'
import { addressOf } from '../../store/engines/postgres-connection.ts'
import { DatabaseLease, type LeaseRow, type LeaseServer } from '../../store/engines/postgres-lease.ts'
import { type Clocks, LeasedTerm, type PostgresTerm, serverText } from './postgres-term.ts'

/** What {@link openPostgresLease} is given. */
export interface PostgresLeaseOptions {
  /** The database. */
  readonly url: string
  /** Which machine this server runs on (`machineIdentity`). */
  readonly machine: string
  /** Whether its workers live and die with that machine. */
  readonly boundToMachine: boolean
  /**
   * Names what only one process can have at a time and this one has, such as the data directory that it has locked: a server before it with the same has ended,
   * and its lease need not run out. Null for nothing like that.
   */
  readonly instance: string | null
  /** How long the lease lasts unless it is renewed. */
  readonly leaseMs?: number
  /** The clocks of this process. */
  readonly clocks?: () => Clocks
}

/** A candidate on PostgreSQL. */
export interface PostgresLease extends LeaseCandidate {
  lead(signal: AbortSignal): Promise<PostgresTerm>
  /** The sealed text that shows which encryption key the database has; null where there is none yet. */
  canary(): Promise<string | null>
}

const LEASE_MS = 6_000
/** How often a server that stands by looks whether the lease is free. */
const LOOK_MS = 500
const PAUSE_MS = 50

/**
 * Makes a server a candidate for the lease of a database, before anything else is read of the database or written to it.
 * @throws AppError `unavailable` when PostgreSQL cannot be reached
 */
export async function openPostgresLease(options: PostgresLeaseOptions): Promise<PostgresLease> {
  const lease = new DatabaseLease(options.url)
  try {
    await lease.prepare()
  } catch (error) {
    await lease.close()
    if (!(error instanceof AppError)) throw error
    throw new AppError(error.code, `${error.message} (${addressOf(options.url)})`, { cause: error.cause })
  }
  return new Candidate(lease, options)
}

class Candidate implements PostgresLease {
  readonly #lease: DatabaseLease
  readonly #options: PostgresLeaseOptions
  readonly #server: LeaseServer
  readonly #leaseMs: number
  readonly #clocks: () => Clocks
  readonly #end = new AbortController()

  constructor(lease: DatabaseLease, options: PostgresLeaseOptions) {
    const { machine, boundToMachine, instance } = options
    this.#lease = lease
    this.#options = options
    this.#server = { pid: process.pid, host: hostname(), url: null, machine, boundToMachine, instance }
    this.#leaseMs = options.leaseMs ?? LEASE_MS
    this.#clocks = options.clocks ?? bothClocks
  }

  async active(): Promise<ActiveServer | null> {
    const row = await this.#lease.read().catch(() => null)
    if (row === null || row.released || row.server === null) return null
    const { pid, host, url, openUrl, machine, boundToMachine } = row.server
    const { epoch, takenAtMs: sinceMs, leftMs: leaseLeftMs } = row
    const known = { epoch, pid, host, url, machine, boundToMachine, sinceMs, leaseLeftMs }
    return openUrl === undefined ? known : { ...known, openUrl }
  }

  canary(): Promise<string | null> {
    return this.#lease.canary()
  }

  async lead(given: AbortSignal): Promise<PostgresTerm> {
    const signal = AbortSignal.any([given, this.#end.signal])
    for (;;) {
      signal.throwIfAborted()
      let waitMs = LOOK_MS
      try {
        const row = await this.#lease.read()
        this.#refuse(row)
        waitMs = this.#waitFor(row)
        const term = waitMs > 0 ? null : await this.#take(signal)
        if (term !== null) return term
      } catch (error) {
        if (!isUnavailable(error)) throw error
      }
      await pause(Math.max(PAUSE_MS, Math.min(LOOK_MS, waitMs)), null, { signal }).catch(() => {})
    }
  }

  async close(): Promise<void> {
    this.#end.abort(new AppError('unavailable', 'this server ends'))
    await this.#lease.close()
  }

  /** Time until the lease may be free for this server. */
  #waitFor({ released, server, leftMs }: LeaseRow): number {
    const { instance, machine } = this.#server
    const isOwn = instance !== null && server?.instance === instance && server.machine === machine
    return released || isOwn ? 0 : leftMs
  }

  /** Takes the lease and makes sure that nothing of an older epoch is written any more. @returns null when another server was faster */
  async #take(signal: AbortSignal): Promise<PostgresTerm | null> {
    const takenAt = this.#clocks()
    const holder = randomUUID()
    const epoch = await this.#lease.take(holder, this.#server, this.#leaseMs)
    if (epoch === null) return null
    const [lease, server, leaseMs, clocks] = [this.#lease, this.#server, this.#leaseMs, this.#clocks]
    const term = new LeasedTerm({ lease, server, leaseMs, clocks, held: { epoch, holder }, takenAt })
    let deposed = false
    const unwatch = term.watch(now => {
      deposed = now === 'deposed'
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
      return await this.#lease.passWriters(epoch)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      await pause(PAUSE_MS)
      return false
    }
  }

  /** Workers that are bound to another machine would run there on, and this server could not see them. */
  #refuse({ released, server }: LeaseRow): void {
    const mine = this.#server
    if (released || server === null || !server.boundToMachine) return
    if (server.machine === mine.machine) return
    if (server.instance !== null && server.instance === mine.instance) return
    throw new AppError('invalid', bound(addressOf(this.#options.url), server))
  }
}

function bound(database: string, server: LeaseServer): string {
  return (
    `processes and containers are bound to their machine, and those of the database ${database} are on that of ${serverText(server)}, ` +
    'so this server cannot stand by for it: start both with --docker off --processes off, or both on one machine with the same --data-dir; if that machine is gone for good, run ' +
    '"UPDATE server_lease SET released = true" in the database'
  )
}

function bothClocks(): Clocks {
  return { monotonicMs: performance.now(), wallMs: Date.now() }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof AppError && error.code === 'unavailable'
}
