/** The settings of the database: its place, its sealed parts, the servers that share it, and its backups. */
import { passphraseProblem } from '../core/secrets/passphrase.ts'
import {
  checkedText,
  flag,
  HOST_NAME,
  optional,
  PATH,
  type Setting,
  type SettingValues,
  setting,
  TEXT,
  wholeNumber,
} from './setting.ts'

/** The settings of the data directory and its database. */
export const DATABASE_SETTINGS = {
  dataDir: setting('--data-dir', '<folder>', './.runyard', PATH, 'folder for the database, keys and logs'),
  /** The address of the database, which may have a password; null for the embedded database. */
  databaseUrl: {
    ...optional(
      '--database',
      '<url>',
      checkedText(postgresProblem),
      'PostgreSQL to keep everything in, as postgres://user@host/name; with a password in RUNYARD_DATABASE only (default: a file in the data directory)',
    ),
    secret: true,
    exposes: passwordProblem,
  } satisfies Setting<string | null>,
  /** Lets a data directory change to another database. */
  newDatabase: flag(
    '--new-database',
    'start although the data directory belongs to another database, or its own is lost; for one start',
  ),
}

function postgresProblem(text: string): string | null {
  if (/%(?![0-9a-f]{2})/i.test(text)) return `has a % that begins no code; ${ENCODE}`
  if (!/^postgres(?:ql)?:\/\/[^\s/?#]+\/[^\s/?#]+(?:\?\S*)?$/.test(text) || !URL.canParse(text))
    return `must be like postgres://user@host:5432/database; ${ENCODE}`
  return tlsProblem(new URL(text).searchParams)
}

/**
 * The client of PostgreSQL passes over options that it does not know, so that a check of certificates would be
 * missing.
 */
function tlsProblem(options: URLSearchParams): string | null {
  const mode = options.get('sslmode')
  if (mode !== null && !SSL_MODES.includes(mode)) return `has an unknown sslmode; give ${SSL_MODES.join(', ')}`
  const ssl = options.get('ssl')
  if (ssl !== null && !SSL_VALUES.includes(ssl))
    return 'has an unknown value of ssl; give sslmode=verify-full, or sslmode=disable'
  const unknown = [...options.keys()].find(name => /^ssl/i.test(name) && name !== 'ssl' && !TLS_OPTIONS.includes(name))
  return unknown === undefined
    ? null
    : `has the unknown option ${unknown.slice(0, 40)}; those of TLS are ${TLS_OPTIONS.join(', ')}`
}

const SSL_MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify']
const SSL_VALUES = ['true', '1', '0']
const TLS_OPTIONS = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation']
const ENCODE =
  'in a user name or password write % as %25, / as %2F, # as %23, ? as %3F, @ as %40, : as %3A and a space as %20'

function passwordProblem(text: string): string | null {
  if (!URL.canParse(text)) return null
  const { password, searchParams } = new URL(text)
  return password === '' && !searchParams.has('password') ? null : PASSWORD_IN_ARGUMENTS
}

const PASSWORD_IN_ARGUMENTS =
  'must have no password, which everybody on the machine reads in the list of processes; give the whole address in RUNYARD_DATABASE'

/** The settings of the sealed parts of the database besides secrets. */
export const SEALING_SETTINGS = {
  sealPayloads: flag(
    '--seal-payloads',
    'seal inputs of jobs, URLs of webhooks and variables of templates and endpoints in the database',
  ),
}

/** The settings of servers of which one is active and the others stand by. */
export const STANDBY_SETTINGS = {
  forwardToActive: flag(
    '--forward-to-active',
    'while this server stands by, pass requests on to the active one instead of answering 503',
  ),
  /** Null for the address that the server listens on. */
  advertiseHost: optional(
    '--advertise-host',
    '<address>',
    HOST_NAME,
    'address or name under which other servers on the same database reach this one (default: --host)',
  ),
}

/**
 * Options in which servers of one database may differ: those of one process, of its machine, or of one start.
 */
export const MAY_DIFFER: ReadonlySet<string> = new Set([
  ...['--port', '--host', '--admin-port', '--admin-host', '--advertise-host', '--http-redirect-port'],
  ...['--tls-cert', '--tls-key', '--tls-self-signed'],
  ...['--data-dir', '--database', '--new-database', '--migrate-to', '--store-host', '--setup', '--watch'],
  ...['--json', '--log-level', '--drain-timeout', '--max-connections'],
  ...['--docker', '--docker-network', '--docker-worker-address'],
  ...['--kubernetes', '--kubernetes-context', '--kubernetes-worker-host', '--kubernetes-worker-port'],
  ...['--model-cache', '--model-cache-size', '--worker-disk', '--worker-cache'],
  ...['--backup-folder', '--backup-every', '--backup-keep', '--backup-passphrase-file', '--backup-without-keys'],
  ...['--backup-with-logs', '--backup-pg-dump'],
  // Compared by the content of the file.
  '--prices',
])

const HOUR_MS = 3_600_000

/** The settings of backups that the server makes by itself, and of changes of its database. */
export const BACKUP_SETTINGS = {
  backups: {
    /** Null for none. */
    folder: optional(
      '--backup-folder',
      '<folder>',
      PATH,
      'make a backup here again and again, in a folder that is for the backups of this server alone (default: none is made)',
    ),
    everyMs: setting(
      '--backup-every',
      '<hours>',
      '24',
      wholeNumber(1, 24 * 366, HOUR_MS),
      'hours from one backup to the next',
    ),
    keep: setting('--backup-keep', '<number>', '14', wholeNumber(1, 10_000), 'how many backups stay; older ones go'),
    passphraseFile: optional(
      '--backup-passphrase-file',
      '<file>',
      PATH,
      'has the passphrase of the keys in these backups (default: RUNYARD_BACKUP_PASSPHRASE)',
    ),
    withoutKeys: flag('--backup-without-keys', 'leave the encryption key and the API key out of these backups'),
    withLogs: flag('--backup-with-logs', 'also the output of workers in these backups'),
    /** Null where the server makes no copy of a PostgreSQL. */
    pgDump: optional(
      '--backup-pg-dump',
      '<program>',
      TEXT,
      'pg_dump that makes the copy of the PostgreSQL beside each of these backups, and before its schema is changed',
    ),
  },
  /** Null for none. */
  migrateTo: optional(
    '--migrate-to',
    '<schema>',
    wholeNumber(1, 100_000),
    'schema to which a database of an older version may be changed without a backup that the server makes itself',
  ),
}

type Given = SettingValues<typeof BACKUP_SETTINGS>['backups']

/** The sources of the passphrase of scheduled backups. */
interface PassphraseSources {
  /** RUNYARD_BACKUP_PASSPHRASE. */
  readonly variable: string | undefined
  /** Reads a file; throws when it cannot. Left out where no backup is made. */
  readonly read?: ((path: string) => string) | undefined
}

/**
 * The passphrase of scheduled backups; null where there are none, or none with keys.
 * @param mistakes receives the problems of these settings
 */
export function scheduledPassphrase(
  given: Given,
  { variable, read }: PassphraseSources,
  mistakes: string[],
): string | null {
  const { folder, passphraseFile, withoutKeys } = given
  if (read === undefined || folder === null) return null
  if (withoutKeys) {
    if (passphraseFile !== null) mistakes.push('--backup-without-keys leaves out the keys of --backup-passphrase-file')
    return null
  }
  const text = passphraseFile === null ? variable : textIn(passphraseFile, read, mistakes)
  if (text === null) return null
  if (text === undefined || text === '') {
    mistakes.push(
      '--backup-folder needs a passphrase for the keys: set RUNYARD_BACKUP_PASSPHRASE or give --backup-passphrase-file; ' +
        '--backup-without-keys leaves the keys out',
    )
    return null
  }
  const problem = passphraseProblem(text)
  const source = passphraseFile === null ? 'RUNYARD_BACKUP_PASSPHRASE' : `the passphrase in ${passphraseFile}`
  if (problem !== null) mistakes.push(`${source} ${problem}`)
  return text
}

function textIn(file: string, read: (path: string) => string, mistakes: string[]): string | null {
  try {
    return read(file).trimEnd()
  } catch (error) {
    mistakes.push(`--backup-passphrase-file ${file} cannot be read: ${(error as Error).message}`)
    return null
  }
}
