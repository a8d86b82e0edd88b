import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../../ports/clock.ts'
import type { LeaseCandidate } from '../../ports/leader.ts'
import { withPlace } from '../../store/engines/postgres-errors.ts'
import { DatabaseLease, type LeaseServer } from '../../store/engines/postgres-lease.ts'
import { printableAddress } from '../../store/engines/postgres-trouble.ts'
import { separateClock } from '../clock.ts'
import { type AgreementOfServer, LeasedCandidate } from './lease-candidate.ts'
import type { Clocks, FencedTerm } from './lease-term.ts'

/** Options of {@link openPostgresLease}. */
export interface PostgresLeaseOptions {
  /** The database. */
  readonly url: string
  /** Machine of this server (`machineIdentity`). */
  readonly machine: string
  /** True if its workers live and die with that machine. */
  readonly boundToMachine: boolean
  /**
   * Name of a resource that only one process can have at a time and this one has, such as its locked data directory: a
   * previous server with the same name ended, and its lease need not run out. Null without such a resource.
   */
  readonly instance: string | null
  /** Its keys and settings; without them servers are not compared. */
  readonly agreement?: AgreementOfServer
  /** Duration of the lease unless it is renewed. */
  readonly leaseMs?: number
  /** The clocks of this process. */
  readonly clocks?: () => Clocks
}

/** A candidate on PostgreSQL. */
export interface PostgresLease extends LeaseCandidate {
  lead(signal: AbortSignal): Promise<FencedTerm>
  /** The sealed text that shows the encryption key of the database; null before it exists. */
  canary(): Promise<string | null>
}

const LEASE_MS = 6_000

/**
 * Makes a server a candidate for the lease of a database, before any other read or write of the database.
 * @throws AppError `unavailable` when PostgreSQL cannot be reached
 */
export async function openPostgresLease(options: PostgresLeaseOptions): Promise<PostgresLease> {
  const lease = new DatabaseLease(options.url)
  try {
    await lease.prepare()
  } catch (error) {
    await lease.close()
    throw withPlace(error, options.url)
  }
  const { url, machine, boundToMachine, instance, agreement, leaseMs = LEASE_MS, clocks } = options
  const server: LeaseServer = { pid: process.pid, host: hostname(), url: null, machine, boundToMachine, instance }
  // A takeover sets the time of the process in the middle of the lease.
  const separate = separateClock()
  const clock = clocks === undefined ? separate : withClocks(separate, clocks)
  const agreementPart = agreement === undefined ? {} : { agreement }
  const parts = { lease, server, clock, leaseMs, ...agreementPart, database: printableAddress(url), unique: randomUUID }
  const candidate = new LeasedCandidate(parts)
  return {
    active: () => candidate.active(),
    lead: signal => candidate.lead(signal),
    canary: () => lease.canary(),
    close: async () => {
      await candidate.close()
      await lease.close()
    },
  }
}

/** The timers of a clock, with the given times. */
function withClocks({ after }: Clock, clocks: () => Clocks): Clock {
  return { after, now: () => clocks().wallMs, monotonic: () => clocks().monotonicMs }
}
