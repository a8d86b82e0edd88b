/** The lock of a server on its database: a session of PostgreSQL that holds it, and says who it is. */
import { Client } from 'pg'
import { connectionConfig } from './postgres-connection.ts'
import { fromPostgres } from './postgres-errors.ts'

/** A server, as others on its database see it. */
export interface ServerName {
  readonly pid: number
  readonly host: string
  /** Host and port where it listens; null while it starts. */
  readonly address: string | null
  /** When it was started, in Unix milliseconds. */
  readonly sinceMs: number
}

/** Names a session of PostgreSQL for as long as that runs. */
export interface SessionName {
  readonly pid: number
  /** When it began, in Unix milliseconds; null where it may not be seen. */
  readonly startMs: number | null
}

/** The lock, held by this process. */
export interface ServerLock {
  readonly session: SessionName
  /** Asks PostgreSQL whether the session is still there. @throws when it is not, or does not answer in time */
  check(): Promise<void>
  /** Says anew who holds it. */
  tell(name: ServerName): Promise<void>
  /** Lets go of it. */
  release(): Promise<void>
}

/** The session that has the lock instead; its server is null where it does not say who it is, or may not be seen. */
export interface LockHolder {
  readonly session: SessionName
  readonly server: ServerName | null
}

/** How long PostgreSQL has to answer. */
const ANSWER_MS = 5_000
/** After about so long PostgreSQL ends the session of a machine that is gone, and with it the lock. */
export const GONE_AFTER_MS = 20_000
const KEEP_ALIVE = {
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 5,
  tcp_keepalives_count: 3,
  tcp_user_timeout: GONE_AFTER_MS,
}
/** Most bytes of an application name. */
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
 * Takes the lock that one server of a database (and schema) has, on a connection of its own.
 * @param lost called once when the session ends without `release`
 * @returns the lock; who has it instead; or null where whoever had it was letting go of it
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
    await tell(client, name)
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
    // PostgreSQL may not notice an orderly end while it does not answer.
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
    tell: known => tell(client, known),
    async release() {
      over = true
      await end()
    },
  }
}

async function tell(client: Client, name: ServerName): Promise<void> {
  await client.query(`SELECT set_config('application_name', $1, false)`, [nameOf(name)])
}

async function holderOf(client: Client): Promise<LockHolder | null> {
  const [row] = (await client.query<SessionRow & { name: string | null }>(HOLDER)).rows
  return row === undefined ? null : { session: sessionOf(row), server: readName(row.name ?? '') }
}

function sessionOf({ pid, start }: SessionRow): SessionName {
  return { pid, startMs: start }
}

/** What the session is called in `pg_stat_activity`. What does not fit is cut off the name of the host. */
export function nameOf({ pid, host, address, sinceMs }: ServerName): string {
  const since = Math.floor(sinceMs / 1_000).toString(36)
  return `runyard ${pid} ${since} ${address ?? '-'} ${host.replaceAll(/[^\x21-\x7e]/g, '?')}`.slice(0, NAME_BYTES)
}

/** The server that a session's name tells of; null for another name. */
export function readName(text: string): ServerName | null {
  const [, pid, since, address, host] = /^runyard (\d+) ([0-9a-z]+) (\S+) (\S+)$/.exec(text) ?? []
  if (pid === undefined || since === undefined || address === undefined || host === undefined) return null
  const sinceMs = Number.parseInt(since, 36) * 1_000
  return { pid: Number(pid), host, address: address === '-' ? null : address, sinceMs }
}
