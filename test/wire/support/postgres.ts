/** A real PostgreSQL of a test's own: `RUNYARD_TEST_POSTGRES_BIN` says where its programs are. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, chownSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { type MadeCertificate, writePair } from '../../support/certificates.ts'
import { freePort } from '../../support/free-ports.ts'
import { atEnd, atExit, temporaryFolder } from './cleanup.ts'
import { until } from './until.ts'

const programs = process.env.RUNYARD_TEST_POSTGRES_BIN ?? ''

/** Reason why tests cannot start a PostgreSQL; false if they can. */
export const noPostgresPrograms: string | false =
  programs === '' ? 'set RUNYARD_TEST_POSTGRES_BIN to the folder with initdb and postgres to run it' : false

/** A PostgreSQL that runs or is stopped. */
export interface Postgres {
  readonly url: string
  /** Kills all of its processes at once. */
  kill9(): Promise<void>
  /** Stops it in order at once: connections receive the reason and are closed. */
  stopFast(): Promise<void>
  /** Starts it again on the same data and port, and waits until it answers. */
  start(): Promise<void>
  /** Suspends all of its processes, which looks like a lost network. */
  stall(): void
  /** Lets them go on. */
  resume(): void
  /** A connection of the test's own. */
  client(): Promise<Client>
}

/**
 * Starts a PostgreSQL with an empty database, and these settings such as `max_connections=9`.
 * It ends with the test file.
 * @param tls its certificate; without one it speaks no TLS
 */
export async function startPostgres(extraSettings: readonly string[] = [], tls?: MadeCertificate): Promise<Postgres> {
  const folder = temporaryFolder()
  const data = join(folder, 'data')
  const user = unprivileged()
  if (user !== null) chownSync(folder, user.uid, user.gid)
  execFileSync('cp', ['-a', emptyDatabase(user), data])
  const port = await freePort()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const ownSettings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=']
  if (tls !== undefined) {
    const { certFile, keyFile } = writePair(folder, tls)
    chmodSync(keyFile, 0o600)
    if (user !== null) for (const file of [certFile, keyFile]) chownSync(file, user.uid, user.gid)
    ownSettings.push('ssl=on', `ssl_cert_file=${certFile}`, `ssl_key_file=${keyFile}`)
  }
  const settings = [...ownSettings, ...extraSettings].flatMap(setting => ['-c', setting])
  let child: ChildProcess | null = null
  const kill = () => {
    if (child?.pid !== undefined) killTree(child.pid)
  }
  const whenEnded = async (end: () => void) => {
    const ended = new Promise(resolve => child?.once('exit', resolve))
    end()
    await ended
    child = null
  }
  const kill9 = () => whenEnded(kill)
  const start = async () => {
    child = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
      cwd: folder,
      stdio: 'ignore',
      ...user,
    })
    await until('PostgreSQL to answer', () => answers(url))
  }
  atExit(kill)
  atEnd(() => (child === null ? undefined : kill9()))
  await start()
  return {
    url,
    kill9,
    start,
    stopFast: () => whenEnded(() => void child?.kill('SIGINT')),
    stall: () => signalTree(child?.pid ?? 0, 'SIGSTOP'),
    resume: () => signalTree(child?.pid ?? 0, 'SIGCONT'),
    async client() {
      const client = new Client({ connectionString: url })
      client.on('error', () => {})
      await client.connect()
      atEnd(() => client.end().catch(() => {}))
      return client
    },
  }
}

let empty: string | undefined

/** A folder with an empty database: a copy costs an eighth of what `initdb` does. */
function emptyDatabase(user: ReturnType<typeof unprivileged>): string {
  if (empty !== undefined) return empty
  const folder = temporaryFolder()
  if (user !== null) chownSync(folder, user.uid, user.gid)
  empty = join(folder, 'data')
  const options = ['-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync']
  execFileSync(join(programs, 'initdb'), ['-D', empty, ...options], { cwd: folder, stdio: 'ignore', ...user })
  return empty
}

/** PostgreSQL refuses to run as root, so root runs it as its own user. */
function unprivileged(): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null
  const id = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

/** The first process is stopped before its children are looked for, so that it makes no more. */
function killTree(pid: number): void {
  process.kill(pid, 'SIGSTOP')
  signalTree(pid, 'SIGKILL')
}

function signalTree(pid: number, signal: NodeJS.Signals): void {
  const children = readdirSync('/proc').filter(name => /^\d+$/.test(name) && parentPid(name) === pid)
  for (const target of [...children.map(Number), pid]) {
    try {
      process.kill(target, signal)
    } catch {
      // It has ended by itself.
    }
  }
}

function parentPid(pid: string): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return 0
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('SELECT 1')
    return true
  } catch {
    return false
  } finally {
    void client.end().catch(() => {})
  }
}
