/**
 * The lease of a database: one row with the active server, and a log of its epochs. All instants are those of
 * the database's clock.
 */
import { Client, DatabaseError } from 'pg'
import type { ServerAgreement } from '../../ports/leader.ts'
import { connectionConfig, LOCK_SCHEMA } from './postgres-connection.ts'
import { EPOCH_OVER, errorFromPostgres } from './postgres-errors.ts'

/** A server as others on its database see it. */
export interface LeaseServer {
  readonly pid: number
  readonly host: string
  /** Address of its management; null while it starts. */
  readonly url: string | null
  /** Address of job operations and load-balancing endpoints; undefined while it starts. */
  readonly openUrl?: string | undefined
  /** A port for the calls of workers alone; null without one, undefined while it starts. */
  readonly workersUrl?: string | null | undefined
  /** Its keys and settings; undefined while it starts. */
  readonly agreement?: ServerAgreement | null | undefined
  /** Id of its machine, which reveals nothing else about it. */
  readonly machine: string
  readonly boundToMachine: boolean
  /** Name of a resource of one process at a time, as the lock of a data directory; null without one. */
  readonly instance: string | null
}

/** The row of the lease. */
export interface LeaseRow {
  readonly epoch: number
  /**
   * Names the process that took it, so that an epoch which a failed-over database gives twice is not taken for one's
   * own.
   */
  readonly holder: string
  /** True where its server gave it back in order. */
  readonly released: boolean
  /** Null before the first server. */
  readonly server: LeaseServer | null
  readonly takenAtMs: number
  /** Negative once it has run out. */
  readonly leftMs: number
}

/** Holder of an epoch of the lease. */
export interface LeaseHolder {
  readonly epoch: number
  readonly holder: string
}

/** Timeout of a statement. */
const ANSWER_MS = 3_000
/** Limit of the time in which writes of older epochs end by themselves, and of a lock of the row by others. */
const LOCK_MS = 300
const KEPT_EPOCHS = 1_000

/**
 * Held in shared mode by every write transaction, and taken alone by a server that becomes active. The first half is
 * `Runy`.
 */
const WRITERS = `${0x52756e79}, 'server_lease'::regclass::oid::int4`

/**
 * The function that every write transaction calls first. Each statement of a volatile function sees what was
 * committed before it began, so a writer that waited for the lock sees a lease that was taken in the meantime.
 */
const CREATE = `${LOCK_SCHEMA};
CREATE TABLE IF NOT EXISTS server_lease (
  place INTEGER PRIMARY KEY DEFAULT 1 CHECK (place = 1),
  epoch BIGINT NOT NULL,
  holder TEXT NOT NULL,
  server JSONB,
  taken_at TIMESTAMPTZ NOT NULL,
  until TIMESTAMPTZ NOT NULL,
  released BOOLEAN NOT NULL
);
CREATE TABLE IF NOT EXISTS server_epochs (
  epoch BIGINT PRIMARY KEY,
  server JSONB NOT NULL,
  taken_at TIMESTAMPTZ NOT NULL,
  active_at TIMESTAMPTZ,
  ended_at TIMESTAMPTZ
);
CREATE TABLE IF NOT EXISTS database_identity (
  place INTEGER PRIMARY KEY DEFAULT 1 CHECK (place = 1),
  id TEXT NOT NULL
);
INSERT INTO database_identity (id) VALUES (gen_random_uuid()) ON CONFLICT DO NOTHING;
INSERT INTO server_lease (epoch, holder, taken_at, until, released)
  SELECT COALESCE(max(epoch), 0), '', clock_timestamp(), clock_timestamp(), TRUE FROM server_epochs ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION assert_server_epoch(given_epoch BIGINT, given_holder TEXT) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(${WRITERS});
  IF NOT EXISTS (SELECT FROM server_lease WHERE epoch = given_epoch AND holder = given_holder) THEN
    RAISE EXCEPTION 'epoch % of this server is over', given_epoch USING ERRCODE = '${EPOCH_OVER}';
  END IF;
END $$`

const IS_MADE = `SELECT to_regprocedure('assert_server_epoch(bigint, text)') IS NOT NULL
  AND EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('server_lease'))
  AND to_regclass('database_identity') IS NOT NULL AS made`
const HAS_ROW = 'SELECT EXISTS (SELECT FROM server_lease) AND EXISTS (SELECT FROM database_identity) AS made'

const READ = `SELECT epoch, holder, released, server, (extract(epoch FROM taken_at) * 1000)::float8 AS taken,
  (extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS left FROM server_lease`

/** $1 holder, $2 server, $3 milliseconds. The guards are checked again after a wait for another candidate. */
const TAKE = `WITH mine AS (SELECT $2::jsonb AS server), taken AS (
  UPDATE server_lease SET epoch = epoch + 1, holder = $1, server = mine.server, taken_at = clock_timestamp(),
    until = clock_timestamp() + $3 * interval '1 millisecond', released = FALSE
  FROM mine
  WHERE (released OR until < clock_timestamp() OR COALESCE(server_lease.server->>'instance' = mine.server->>'instance'
      AND server_lease.server->>'machine' = mine.server->>'machine', FALSE))
    AND (released OR server_lease.server IS NULL OR NOT (server_lease.server->>'boundToMachine')::boolean
      OR server_lease.server->>'machine' = mine.server->>'machine'
      OR COALESCE(server_lease.server->>'instance' = mine.server->>'instance', FALSE))
  RETURNING epoch, taken_at
), logged AS (
  INSERT INTO server_epochs (epoch, server, taken_at) SELECT epoch, $2::jsonb - 'url' - 'openUrl' - 'workersUrl' - 'instance' - 'agreement', taken_at FROM taken
  ON CONFLICT (epoch) DO UPDATE SET server = excluded.server, taken_at = excluded.taken_at, active_at = NULL, ended_at = NULL
), trimmed AS (
  DELETE FROM server_epochs WHERE epoch <= (SELECT epoch FROM taken) - ${KEPT_EPOCHS}
) SELECT epoch FROM taken`

/**
 * $1 epoch, $2 holder, $3 server, $4 milliseconds. A lease that ran out is renewed as well, unless another server took
 * it.
 */
const RENEW = `UPDATE server_lease SET until = clock_timestamp() + $4 * interval '1 millisecond', server = $3::jsonb
  WHERE epoch = $1 AND holder = $2 AND NOT released RETURNING epoch`

/** Alone for a moment: all writes of older epochs have ended, and those that come later see the new one. */
const PASS_WRITERS = `SELECT pg_advisory_xact_lock(${WRITERS})`
/** $1 epoch. A server that was stopped before it came here ends nothing of a later epoch. */
const END_WRITERS = `SELECT pg_terminate_backend(pid) FROM pg_locks
  WHERE (SELECT epoch FROM server_lease) = $1 AND locktype = 'advisory' AND classid = ${0x52756e79}::oid AND objid = 'server_lease'::regclass::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()`
const ACTIVE = `WITH ended AS (UPDATE server_epochs SET ended_at = clock_timestamp() WHERE epoch < $1 AND ended_at IS NULL)
  UPDATE server_epochs SET active_at = clock_timestamp() WHERE epoch = $1 AND ended_at IS NULL`

/** $1 epoch, $2 holder, $3 true if no worker is left that is bound to its machine. */
const RELEASE = `WITH released AS (
  UPDATE server_lease SET until = clock_timestamp(), released = $3 WHERE epoch = $1 AND holder = $2 RETURNING epoch
) UPDATE server_epochs SET ended_at = clock_timestamp() WHERE epoch IN (SELECT epoch FROM released) AND ended_at IS NULL`

const HAS_CANARY = `SELECT to_regclass('key_canaries') IS NOT NULL AS made`
const CANARY = 'SELECT sealed FROM key_canaries'

interface RowOfLease {
  readonly epoch: number
  readonly holder: string
  readonly released: boolean
  readonly server: LeaseServer | null
  readonly taken: number
  readonly left: number
}

/**
 * The lease of a database, on a connection of its own that is made again when it was lost. All methods throw
 * `unavailable` when PostgreSQL is away.
 */
export class DatabaseLease {
  readonly #url
  #client: Promise<Client> | null = null
  #closed = false

  constructor(url: string) {
    this.#url = url
  }

  /** Makes the tables if they are missing. */
  async prepare(): Promise<void> {
    if ((await this.#isMade(IS_MADE)) && (await this.#isMade(HAS_ROW))) return
    await this.#run(CREATE)
  }

  /** The server that has it, or had it last. */
  async read(): Promise<LeaseRow> {
    const [row] = await this.#run<RowOfLease>(READ)
    if (row === undefined) {
      await this.prepare()
      return this.read()
    }
    const { epoch, holder, released, server, taken, left } = row
    return { epoch, holder, released, server, takenAtMs: taken, leftMs: left }
  }

  /** Takes it if it is free for this server. @returns the new epoch; null when it is not free */
  async take(holder: string, server: LeaseServer, leaseMs: number): Promise<number | null> {
    const [row] = await this.#run<{ epoch: number }>(TAKE, [holder, JSON.stringify(server), leaseMs])
    return row?.epoch ?? null
  }

  /** @returns true if it was still held */
  async renew({ epoch, holder }: LeaseHolder, server: LeaseServer, leaseMs: number): Promise<boolean> {
    return (await this.#run(RENEW, [epoch, holder, JSON.stringify(server), leaseMs])).length > 0
  }

  /**
   * Waits for the end of writes of older epochs, and ends the sessions of those that take too long: their
   * server may have been stopped in the middle of a transaction. From then on nothing of an older epoch can be
   * committed.
   * @returns true when they ended; false to try again
   */
  async passWriters(epoch: number): Promise<boolean> {
    try {
      await this.#run(PASS_WRITERS)
    } catch (error) {
      if (!isLockTimeout(error)) throw error
      await this.#run(END_WRITERS, [epoch]).catch(dropRefusal)
      return false
    }
    await this.#run(ACTIVE, [epoch])
    return true
  }

  /** The sealed text that shows which encryption key the database has; null where there is none yet. */
  async canary(): Promise<string | null> {
    if (!(await this.#isMade(HAS_CANARY))) return null
    return (await this.#run<{ sealed: string }>(CANARY))[0]?.sealed ?? null
  }

  /** @param leavesWorkers true if workers of its machine may go on, which another machine could not see */
  async release({ epoch, holder }: LeaseHolder, leavesWorkers: boolean): Promise<void> {
    await this.#run(RELEASE, [epoch, holder, !leavesWorkers])
  }

  async close(): Promise<void> {
    this.#closed = true
    const client = await this.#client?.catch(() => null)
    this.#client = null
    await client?.end().catch(() => {})
  }

  async #isMade(question: string): Promise<boolean> {
    return (await this.#run<{ made: boolean }>(question))[0]?.made === true
  }

  async #run<R extends object>(sql: string, params?: readonly unknown[]): Promise<readonly R[]> {
    this.#client ??= this.#connect()
    const connecting = this.#client
    try {
      const client = await connecting
      const { rows } = await client.query<R>(sql, params === undefined ? undefined : [...params])
      return rows ?? []
    } catch (error) {
      // The connection may be gone without having ended, and an answer that comes late would be taken for the next
      // one's.
      if (!(error instanceof DatabaseError)) this.#drop(connecting)
      throw errorFromPostgres(error)
    }
  }

  #connect(): Promise<Client> {
    if (this.#closed) return Promise.reject(new Error('the lease is closed'))
    const config = { ...connectionConfig(this.#url), application_name: 'runyard lease', lock_timeout: LOCK_MS }
    const waits = { query_timeout: ANSWER_MS, statement_timeout: ANSWER_MS, connectionTimeoutMillis: ANSWER_MS }
    const client = new Client({ ...config, ...waits })
    // An error after the answer to `connect` comes as an event, which would otherwise end the process.
    const lost = () => {
      if (this.#client === connected) this.#client = null
    }
    client.on('error', lost)
    client.on('end', lost)
    const connected = client.connect().then(() => client)
    return connected
  }

  #drop(connecting: Promise<Client>): void {
    if (this.#client === connecting) this.#client = null
    connecting.then(
      client => void client.connection?.stream?.destroy(),
      () => {},
    )
  }
}

function isLockTimeout(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : null
  return cause instanceof DatabaseError && cause.code === '55P03'
}

/** A role that may not end the session of another one waits for its end. */
function dropRefusal(error: unknown): void {
  const cause = error instanceof Error ? error.cause : null
  if (!(cause instanceof DatabaseError)) throw error
}
