/**
 * Problems of a PostgreSQL that a server cannot use, in the same words for `runyard doctor` and for a failed start.
 */
import { DatabaseError, defaults } from 'pg'
import { shellWord } from '../../core/shell-word.ts'
import { textBefore } from '../../core/text-parts.ts'

/** A problem and its remedy, both as clauses. They may name a user, a host and a database, and never a password. */
export interface PostgresTrouble {
  readonly problem: string
  readonly remedy: string
}

/** The oldest version that has all that the statements use. */
const OLDEST_POSTGRES = 13

/** Parts of an address for people and commands. */
interface Place {
  readonly host: string
  readonly port: string
  readonly user: string
  readonly database: string
  readonly hasPassword: boolean
  readonly mode: string | null
  readonly namesAuthority: boolean
}

/** Facts of a PostgreSQL and of the user of the connection. */
export interface PostgresFacts {
  /** As `150018`. */
  readonly versionNumber: number
  readonly version: string
  /** True for a read-only copy of another PostgreSQL. */
  readonly isStandby: boolean
  /** The first schema of the search path; null where that is empty. */
  readonly schema: string | null
  readonly mayCreate: boolean
  readonly hasTables: boolean
}

/** The statement that reads {@link PostgresFacts}. */
export const READ_FACTS = `SELECT current_setting('server_version_num')::int AS "versionNumber", current_setting('server_version') AS version,
  pg_is_in_recovery() AS "isStandby", current_schema() AS schema, to_regclass('migrations') IS NOT NULL AS "hasTables",
  COALESCE(has_schema_privilege(current_schema(), 'CREATE'), FALSE) AS "mayCreate"`

/** The problem of a PostgreSQL after a connection; null without a problem. @param url of the database */
export function unfitness(facts: PostgresFacts, url: string): PostgresTrouble | null {
  const { versionNumber, version, isStandby, schema, mayCreate, hasTables } = facts
  if (versionNumber < OLDEST_POSTGRES * 10_000)
    return {
      problem: `its version ${version} is too old`,
      remedy: `use PostgreSQL ${OLDEST_POSTGRES} or newer`,
    }
  if (isStandby) return { problem: READ_ONLY, remedy: 'give the address of its primary' }
  if (schema === null) return withoutSchema(placeFromUrl(url))
  return mayCreate || hasTables ? null : withoutRight(placeFromUrl(url), schema)
}

const READ_ONLY = 'it is the read-only copy of another one'

/**
 * The problem of a PostgreSQL after an error.
 * @param error of the connection or of PostgreSQL
 * @param url of the database
 */
export function postgresTrouble(error: unknown, url: string): PostgresTrouble {
  const place = placeFromUrl(url)
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error
  const message = (first instanceof Error ? first.message : String(first)).split('\n')[0] ?? ''
  const { code = '' } = (first ?? {}) as { readonly code?: string }
  return (
    (first instanceof DatabaseError ? refused(code, message, place) : unconnected(code, message, place)) ?? {
      problem: `it does not answer: ${message}`,
      remedy: 'check its log, and the address in RUNYARD_DATABASE',
    }
  )
}

function unconnected(code: string, message: string, place: Place): PostgresTrouble | null {
  const { host, port, user, mode, namesAuthority } = place
  const address = 'correct the host and the port in RUNYARD_DATABASE'
  switch (code) {
    case 'ECONNREFUSED':
      return {
        problem: `nothing listens at ${host}:${port} (${code})`,
        remedy: `start PostgreSQL there, or ${address}`,
      }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return { problem: `the host ${host} has no address (${code})`, remedy: 'correct the host in RUNYARD_DATABASE' }
    case 'CERT_HAS_EXPIRED':
      return { problem: `its certificate has expired (${message})`, remedy: 'give PostgreSQL a new one' }
    case 'CERT_NOT_YET_VALID':
      return { problem: `its certificate is not valid yet (${message})`, remedy: 'set the clocks of both machines' }
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        problem: `its certificate is for another host (${message})`,
        remedy: 'give the host that the certificate names',
      }
  }
  if (UNTRUSTED.test(code))
    return {
      // Node adds advice of its own, behind a semicolon.
      problem: `the authority of its certificate is not trusted (${textBefore(message, ';')})`,
      remedy: namesAuthority
        ? 'give the file of that authority as sslrootcert, which names another one'
        : 'name the file of that authority after the address: ?sslmode=verify-full&sslrootcert=<file>',
    }
  if (/^E(?:TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN)$/.test(code) || /timeout/i.test(message))
    return {
      problem: `${host}:${port} does not respond (${code === '' ? 'no answer in time' : code})`,
      remedy: `open the firewall between, or ${address}`,
    }
  if (message === 'The server does not support SSL connections')
    return {
      problem: `it does not speak TLS, which sslmode=${mode ?? 'require'} asks for`,
      remedy: 'set ssl = on in postgresql.conf, or give ?sslmode=disable if no other program can read the network',
    }
  if (message.includes('client password must be a'))
    return {
      problem: `it asks for the password of ${user}, and no password is given`,
      remedy: `set RUNYARD_DATABASE to the whole address, as postgres://${user}:<password>@${host}:${port}/<database>`,
    }
  if (code === 'ECONNRESET' || message.includes('Connection terminated'))
    return {
      problem: `${host}:${port} ended the connection (${message})`,
      remedy: 'check that PostgreSQL listens there, and read its log',
    }
  return null
}

const UNTRUSTED = /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_)/

function refused(code: string, message: string, place: Place): PostgresTrouble | null {
  const { host, port, user, database, hasPassword } = place
  const at = `--host=${shellWord(host)} --port=${port} --username=postgres`
  switch (code) {
    case '3D000':
      return {
        problem: `it has no database ${database}`,
        remedy: `make it: createdb ${at} --owner=${shellWord(user)} ${shellWord(database)}`,
      }
    case '28P01':
      return {
        problem: hasPassword
          ? `it refuses the password of ${user}, or has no such role`
          : `it asks for the password of ${user}, and no password is given`,
        remedy: `${CORRECT_PASSWORD}, or make the role: createuser ${at} --pwprompt ${shellWord(user)}`,
      }
    case '28000':
      if (message.includes(`role "${user}" does not exist`))
        return { problem: `it has no role ${user}`, remedy: `make it: createuser ${at} --pwprompt ${shellWord(user)}` }
      return {
        problem: `its pg_hba.conf does not let this server in (${message})`,
        remedy: /no encryption|SSL off/.test(message)
          ? 'give ?sslmode=verify-full, or add a line for this host, user and database to pg_hba.conf'
          : 'add a line for this host, user and database to pg_hba.conf',
      }
    case '42501':
      return withoutRight(place, /schema "?([^"]{1,63})"?$/.exec(message)?.[1] ?? 'public')
    case '3F000':
      return withoutSchema(place)
    case '53300':
      return {
        problem: `it has as many connections as it may (${message})`,
        remedy: 'raise max_connections, or end others',
      }
    case '57P03':
      return { problem: `it is not ready (${message})`, remedy: 'wait until it is, and start again' }
    case '25006':
      return { problem: READ_ONLY, remedy: 'give the address of its primary' }
  }
  return null
}

const CORRECT_PASSWORD = 'correct the password in RUNYARD_DATABASE, where @ is written %40, : as %3A and / as %2F'

function withoutRight({ host, port, user, database }: Place, schema: string): PostgresTrouble {
  const grant = `GRANT USAGE, CREATE ON SCHEMA ${named(schema)} TO ${named(user)}`
  const at = `--host=${shellWord(host)} --port=${port} --username=postgres --dbname=${shellWord(database)}`
  return {
    problem: `the role ${user} may not create tables in the schema ${schema}`,
    remedy: `permit it: psql ${at} --command=${shellWord(grant)}`,
  }
}

function withoutSchema({ user }: Place): PostgresTrouble {
  return {
    problem: `no schema of the search path exists, or the role ${user} may use none`,
    remedy: 'make it with CREATE SCHEMA, or correct search_path in RUNYARD_DATABASE',
  }
}

/** The place of a database, without user, password and options. */
export function printableAddress(url: string): string {
  if (!URL.canParse(url)) return 'the given address'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

function placeFromUrl(url: string): Place {
  const parsed = URL.parse(url)
  const { hostname = '', port = '', username = '', password = '', pathname = '', searchParams } = parsed ?? {}
  return {
    host: searchParams?.get('host') ?? hostname,
    port: port === '' ? String(defaults.port ?? 5432) : port,
    user: username === '' ? (defaults.user ?? 'postgres') : decodeURIComponent(username),
    database: decodeURIComponent(pathname.slice(1)),
    hasPassword: password !== '' || searchParams?.has('password') === true,
    mode: searchParams?.get('sslmode') ?? null,
    namesAuthority: searchParams?.has('sslrootcert') === true,
  }
}

/** A name in SQL. */
function named(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}
