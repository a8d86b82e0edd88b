import { flag, optional, type Setting, textOf } from './setting.ts'

/** The address of the database, which may have a password. */
export const DATABASE_SETTING: Setting<string | null> = {
  ...optional(
    '--database',
    '<url>',
    textOf(postgresProblem),
    'PostgreSQL to keep everything in, as postgres://user@host/name; with a password in RUNYARD_DATABASE only (default: a file in the data directory)',
  ),
  secret: true,
  exposes: passwordProblem,
}

/** Option that lets a data directory change to another database. */
export const NEW_DATABASE_SETTING: Setting<boolean> = flag(
  '--new-database',
  'start although the data directory belongs to another database, or its own is lost; for one start',
)

function postgresProblem(text: string): string | null {
  if (/%(?![0-9a-f]{2})/i.test(text)) return `has a % that begins no code; ${ENCODE}`
  if (!/^postgres(?:ql)?:\/\/[^\s/?#]+\/[^\s/?#]+(?:\?\S*)?$/.test(text) || !URL.canParse(text))
    return `must be like postgres://user@host:5432/database; ${ENCODE}`
  return tlsProblem(new URL(text).searchParams)
}

/** The client of PostgreSQL passes over options that it does not know, so that a check of certificates would be missing. */
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
