/** The lock of a server on its database: a session of PostgreSQL that holds it and names the server. */
import { Client } from 'pg'
import { connectionConfig } from './postgres-connection.ts'
import { fromPostgres } from './postgres-errors.ts'

/** A server as other servers of its database see it. */
export interface ServerName {
  readonly pid: number
  readonly host: string
  /** Host and port where it listens; null while it starts. */
  readonly address: string | null
  /** When it was started, in Unix milliseconds. */
  readonly sinceMs: number
}

/** Identifies a session of PostgreSQL. */
export interface SessionName {
  readonly pid: number
  /** When it began, in Unix milliseconds; null without the right to read it. */
  readonly startMs: number | null
}

/** The lock, held by this process. */
export interface ServerLock {
  readonly session: SessionName
  /** Checks that the session still exists. @throws when it does not, or PostgreSQL does not respond in time */
  check(): Promise<void>
  /** Updates the name of the server in the session. */
  tell(name: ServerName): Promise<void>
  /** Releases the lock. */
  release(): Promise<void>
}

/** The session that holds the lock; its server is null where it has no name, or without the right to read it. */
export interface LockHolder {
  readonly session: SessionName
  readonly server: ServerName | null
}

/** Timeout of a statement. */
const ANSWER_MS = 5_000
/** About the time after which PostgreSQL ends the session of a machine that is gone, and its lock. */
export const GONE_AFTER_MS = 20_000
const KEEP_ALIVE = {
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  tcp_user_timeout: GONE_AFTER_MS,
}
/** Limit of bytes of an application name. */
const NAME_BYTES = 63
/** The first half of the lock's key, `Runy`; the second one is the schema. */
const KEY = 0x52756e79
const SCHEMA = `hashtext(coalesce(current_schema(), ''))`
const SESSION = `pid, (extract(epoch FROM backend_start) * 1000)::float8 AS start`

const TAKE = `SELECT ${SESSION}, pg_try_advisory_lock(${KEY}, ${SCHEMA}) AS held FROM pg_stat_activity WHERE pid = pg_backend_pid()`
const HOLDER = `SELECT ${SESSION}, application_name AS name FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND classid = ${KEY}::oid AND objid = ${SCHEMA}::oid AND objsubid = 2 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

interface SessionRow {
  readonly pid: number
  readonly start: number | null
}

/**
 * Takes the lock of a database (and schema) on a connection of its own.
 * @param lost called once when the session ends without `release`
 * @returns the lock; its holder; or null where the holder was just releasing it
 * @throws AppError `unavailable` when PostgreSQL cannot be reached
 */
export async function takeServerLock(
  url: string,
  name: ServerName,
  lost: () => void,
): Promise<ServerLock | { readonly heldBy: LockHolder } | null> {
  const client = new Client({ ...connectionConfig(url), query_timeout: ANSWER_MS, connectionTimeoutMillis: ANSWER_MS })
  // An error after the answer to `connect` comes as an event, which would otherwise end the process.
  client.on('error', () => {})
  const end = () => client.end().catch(() => {})
  let session: SessionName
  try {
    await client.connect()
    await publishName(client, name)
    for (const [setting, value] of Object.entries(KEEP_ALIVE)) await client.query(`SET ${setting} = ${value}`)
    const [row] = (await client.query<SessionRow & { held: boolean }>(TAKE)).rows
    if (row?.held !== true) {
      const heldBy = await holderOf(client)
      void end()
      return heldBy === null ? null : { heldBy }
    }
    session = sessionOf(row)
  } catch (error) {
    void end()
    throw fromPostgres(error)
  }
  let over = false
  const lose = () => {
    if (over) return
    over = true
    // A PostgreSQL that does not respond may not notice an orderly end.
    client.connection?.stream?.destroy()
    lost()
  }
  client.on('end', lose)
  client.on('error', lose)
  return {
    session,
    async check() {
      try {
        const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
        if (rows[0]?.pid !== session.pid) throw new Error('a pooler between does not keep sessions')
      } catch (error) {
        lose()
        throw error
      }
    },
    tell: known => publishName(client, known),
    async release() {
      over = true
      await end()
    },
  }
}

async function publishName(client: Client, name: ServerName): Promise<void> {
  await client.query(`SELECT set_config('application_name', $1, false)`, [nameOf(name)])
}

async function holderOf(client: Client): Promise<LockHolder | null> {
  const [row] = (await client.query<SessionRow & { name: string | null }>(HOLDER)).rows
  return row === undefined ? null : { session: sessionOf(row), server: readName(row.name ?? '') }
}

function sessionOf({ pid, start }: SessionRow): SessionName {
  return { pid, startMs: start }
}

/** The name of the session in `pg_stat_activity`. A long name of the host is cut. */
export function nameOf({ pid, host, address, sinceMs }: ServerName): string {
  const since = Math.floor(sinceMs / 1_000).toString(36)
  return `runyard ${pid} ${since} ${address ?? '-'} ${host.replaceAll(/[^\x21-\x7e]/g, '?')}`.slice(0, NAME_BYTES)
}

/** The server in a session's name; null for other names. */
export function readName(text: string): ServerName | null {
  const [, pid, since, address, host] = /^runyard (\d+) ([0-9a-z]+) (\S+) (\S+)$/.exec(text) ?? []
  if (pid === undefined || since === undefined || address === undefined || host === undefined) return null
  const sinceMs = Number.parseInt(since, 36) * 1_000
  return { pid: Number(pid), host, address: address === '-' ? null : address, sinceMs }
}
