/** Real servers, each in a process of its own as a person starts it. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { patient } from '../../support/patience.ts'
import { atEnd, atExit, temporaryFolder, temporaryRoot } from './cleanup.ts'
import { killAll } from './processes.ts'
import { sleep, until } from './until.ts'
import { cleanEngine, serverArgs } from './workers.ts'

/** The repository, from which all servers are started. */
export const root = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '')

/** The same as an address, for imports and for options that end at a space. */
export const rootUrl = pathToFileURL(root).href

/** The command of a server: what the test command has built, else the sources. */
const { RUNYARD_TEST_PROGRAM: built } = process.env
const [runyard, ...runyardArgs] =
  built === undefined
    ? [`${root}/bin/runyard`]
    : [`${root}/bin/node`, '--max-semi-space-size=32', '--no-allocation-site-pretenuring', built]

/** A file that runs the program as people call it: with the sources, or as the test command has built it. */
export function programFile(): string {
  if (built === undefined) return `${root}/bin/runyard`
  const file = join(temporaryFolder(), 'runyard')
  writeFileSync(file, `#!/bin/sh\nexec '${[runyard, ...runyardArgs].join("' '")}' "$@"\n`, { mode: 0o755 })
  return file
}

/** Environment that makes a server one of a later release, with these steps of the schema after the present ones. */
export function nextRelease(version: string, steps: readonly object[]): Record<string, string> {
  const hook = new URL('next-release.ts', import.meta.url).href
  // Threads do not load it.
  const inLoop = { RUNYARD_STORE_HOST: 'inline' }
  return { NODE_OPTIONS: `--import=${hook}`, RUNYARD_TEST_NEXT_RELEASE: JSON.stringify({ version, steps }), ...inLoop }
}

/** The folder of a fixture worker. */
export function fixture(name: string): string {
  return `${root}/test/wire/fixtures/${name}`
}

/** End of a process. */
export interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

/** Options of a server; all have a default. */
export interface ServerOptions {
  readonly args?: readonly string[]
  readonly dataDir?: string
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
  /** True to return also for a server that stands by for another one. */
  readonly mayStandBy?: boolean
  /** True to run folders of the repository and let accounts share the machine, as most tests need; true by default. */
  readonly trusting?: boolean
}

/** One line of the server's log. */
export interface LogRecord {
  readonly msg: string
  readonly level: string
  readonly [field: string]: unknown
}

/** A server that answers. */
export interface Server {
  readonly url: string
  /** Of management; the same unless `--admin-port` is given. */
  readonly managementUrl: string
  /** Address whose requests are redirected from plain HTTP to HTTPS; null without one. */
  readonly redirectUrl: string | null
  readonly port: number
  readonly apiKey: string
  readonly dataDir: string
  readonly pid: number
  /** Its standard error, line by line. */
  readonly lines: readonly string[]
  /** The log records with this message so far. */
  events(message: string): LogRecord[]
  signal(name: NodeJS.Signals): void
  readonly ended: Promise<Exit>
  /** Asks it to stop and waits until it has. */
  stop(): Promise<Exit>
  /** Ends it in the middle of whatever it does. */
  kill9(): Promise<void>
}

/** Output of `serve --json`. */
interface Ready {
  readonly url: string
  readonly managementUrl: string
  readonly redirectUrl: string | null
  readonly apiKeyFile: string
  readonly pid: number
}

/** Starts a server on a free port and waits until it answers. It is ended with the test file. */
export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const dataDir = options.dataDir ?? temporaryFolder()
  const ownArgs = ['--port', String(options.port ?? 0), '--data-dir', dataDir, '--json', '--log-level', 'debug']
  const args = options.trusting === false ? (options.args ?? []) : withTrust(options.args ?? [])
  const words = serverArgs(args)
  const { child, lines, printed, ended } = run(['serve', ...ownArgs, ...words], options.env ?? {})
  const records = recordReader(lines)
  const engine = words.includes('--docker') ? words[words.indexOf('--docker') + 1]! : 'off'
  if (engine !== 'off') cleanEngine(engine, dataDir)
  atEnd(async () => {
    child.kill('SIGKILL')
    await ended
    killAll(dataDir)
  })
  atExit(() => killAll(dataDir))
  const ready = await until(
    'the server to start',
    () => {
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}: ${lines.join('\n')}`)
      return readyLine(printed(), options.mayStandBy === true)
    },
    60_000,
    10,
  )
  const { url, managementUrl, redirectUrl, apiKeyFile, pid } = JSON.parse(ready) as Ready
  return {
    url,
    managementUrl,
    redirectUrl,
    dataDir,
    pid,
    lines,
    ended,
    port: Number(new URL(url).port),
    apiKey: readFileSync(apiKeyFile, 'utf8').trim(),
    events: message => records().filter(({ msg }) => msg === message),
    signal: name => void child.kill(name),
    async stop() {
      child.kill('SIGTERM')
      return Promise.race([
        ended,
        sleep(patient(45_000), null, { ref: false }).then(() => assert.fail('it does not stop')),
      ])
    },
    async kill9() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** The line that says that a server is ready, or what may do instead. */
function readyLine(printed: string, mayStandBy: boolean): string | undefined {
  const lines = printed.split('\n').slice(0, -1)
  return lines.find(line => mayStandBy || line.includes('"event":"ready"'))
}

/** The options with which a server trusts whoever has its key, as on a machine of one person. */
function withTrust(args: readonly string[]): string[] {
  const roots = args.includes('--process-root') || args.includes('--host') ? [] : ['--process-root', root]
  return [...roots, '--accept-shared-host', ...args]
}

/** A command of the command line that the test kills before its end. */
export function startCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): { kill9(): Promise<Exit> } {
  const { child, ended } = run(args, env)
  return {
    kill9() {
      child.kill('SIGKILL')
      return ended
    },
  }
}

/** The user that a command runs as; that of the test unless given. */
export type ProcessUser = { readonly uid?: number; readonly gid?: number }

/** A command of the command line, run to its end. */
export async function runCommand(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  user: ProcessUser = {},
): Promise<Exit & { stdout: string; stderr: string }> {
  const { child, lines, printed, ended } = run(args, env, user)
  const patience = setTimeout(() => child.kill('SIGKILL'), patient(60_000))
  const exit = await ended
  clearTimeout(patience)
  return { ...exit, stdout: printed(), stderr: lines.join('\n') }
}

/**
 * Workers without cages, which start faster; or with them, as `RUNYARD_TEST_WORKER_SANDBOX` wants them,
 * where many handlers of tests leave notes in folders of the test. An empty `RUNYARD_WORKER_SANDBOX` leaves
 * the setting to the server.
 */
function sandboxed(sandbox: string | undefined): Readonly<Record<string, string>> {
  if (sandbox === undefined) return { RUNYARD_WORKER_SANDBOX: 'off' }
  const { RUNYARD_TEST_SDKS: sdks, RUNYARD_TEST_PYTHON: python, RUNYARD_TEST_SDK2: sdk2 } = process.env
  const pythons = [python, sdk2].map(path => (path === undefined ? undefined : dirname(dirname(path))))
  const readable = [`${root}/packages`, sdks, ...pythons]
  return {
    RUNYARD_WORKER_SANDBOX: sandbox,
    RUNYARD_WORKER_WRITABLE: temporaryRoot,
    RUNYARD_WORKER_READABLE: readable.filter(folder => folder !== undefined).join(':'),
  }
}

/** Servers with this number of threads that read HTTP, where `RUNYARD_TEST_HTTP_THREADS` wants them. */
function threaded(threads: string | undefined): Record<string, string> {
  return threads === undefined ? {} : { RUNYARD_HTTP_THREADS: threads }
}

function run(args: readonly string[], env: Readonly<Record<string, string>>, user: ProcessUser = {}) {
  const { PATH = '', HOME = '', LANG = 'C.UTF-8', RUNYARD_TEST_WORKER_SANDBOX: sandbox } = process.env
  const { RUNYARD_TEST_HTTP_THREADS: threads } = process.env
  const child: ChildProcess = spawn(runyard!, [...runyardArgs, ...args], {
    cwd: root,
    env: { PATH, HOME, LANG, ...sandboxed(sandbox), ...threaded(threads), ...env },
    ...user,
  })
  const takeBack = atExit(() => child.kill('SIGKILL'))
  const lines: string[] = []
  let rest = ''
  let stdout = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n')
    rest = parts.pop() ?? ''
    lines.push(...parts)
  })
  const ended = new Promise<Exit>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      takeBack()
      if (rest !== '') lines.push(rest)
      resolve({ code, signal })
    })
  })
  return { child, lines, printed: () => stdout, ended }
}

/** Reads the records of a log that grows; each line is parsed once, since tests ask again and again. */
function recordReader(lines: readonly string[]): () => readonly LogRecord[] {
  const records: LogRecord[] = []
  let read = 0
  return () => {
    for (; read < lines.length; read += 1) records.push(...readRecord(lines[read]!))
    return records
  }
}

function readRecord(line: string): LogRecord[] {
  try {
    return [JSON.parse(line) as LogRecord]
  } catch {
    return []
  }
}
