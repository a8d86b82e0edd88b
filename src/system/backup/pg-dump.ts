/** Copies of a PostgreSQL by its own `pg_dump`. */
import { spawn } from 'node:child_process'
import { AppError } from '../../core/errors.ts'
import { removeDurably, settleDurably, touchDurably } from '../../disk/durable-file.ts'

/** Options of {@link dumpPostgres}. */
export interface DumpOptions {
  /** The program, by its path or by its name on the PATH. */
  readonly program: string
  /** The address of the database; its password is in no argument. */
  readonly url: string
  /** The environment of this process, of which the program gets a part. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The file of the copy once it is whole. */
  readonly file: string
  /** The file before it has its name, in the same folder. */
  readonly draft: string
  readonly signal?: AbortSignal | undefined
}

/** The table whose rows no copy has: the present active server means nothing to a server on the copy. */
export const LEASE_TABLE = '*.server_lease'

const MAX_QUOTED = 2_000
/** Variables of the environment that `pg_dump` gets, besides those of PostgreSQL. */
const PASSED = new Set(['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ'])

/**
 * Copies a database into a file for its owner alone.
 * @throws AppError `unavailable` without a copy; its parts are removed
 */
export async function dumpPostgres(options: DumpOptions): Promise<void> {
  const { file, draft } = options
  removeDurably(draft)
  // Its mode stays when it is opened again.
  touchDurably(draft)
  try {
    await run(options)
    settleDurably(draft, file)
  } catch (error) {
    removeDurably(draft)
    throw error
  }
}

async function run({ program, url, env: whole, draft, signal }: DumpOptions): Promise<void> {
  const address = new URL(url)
  const password = decodeURIComponent(address.password) || address.searchParams.get('password')
  const environment = Object.entries(whole).filter(([name]) => PASSED.has(name) || /^PG[A-Z]+$/.test(name))
  const env = { ...Object.fromEntries(environment), ...(password === null ? {} : { PGPASSWORD: password }) }
  const content = ['--format=custom', `--exclude-table-data=${LEASE_TABLE}`]
  const args = [...content, '--no-password', `--file=${draft}`, `--dbname=${withoutPassword(url)}`]
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'], signal, killSignal: 'SIGKILL' })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-MAX_QUOTED)))
  child.once('error', error => reject(failed(program, error.message, error)))
  child.once('close', (code, killed) => {
    if (code === 0) resolve()
    else reject(failed(program, errors.trim().split('\n').at(-1) || `it ended with ${code ?? killed}`))
  })
  await promise
}

function failed(program: string, problem: string, cause?: unknown): AppError {
  return new AppError('unavailable', `${program} made no copy of the database: ${problem}`, { cause })
}

/** The address of a PostgreSQL for arguments of commands, which others on the machine can read. */
export function withoutPassword(url: string): string {
  const address = new URL(url)
  address.password = ''
  address.searchParams.delete('password')
  return address.href.replaceAll('+', '%20')
}
