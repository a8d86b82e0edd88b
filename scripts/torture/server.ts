/** The server of the torture run, which is killed and started again on the same data and port. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { ready } from '../../bench/harness/ready.ts'
import { patient } from '../../test/support/patience.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The command of a server: the program that `npm test` has built, which starts faster, else the sources. */
const { RUNYARD_TEST_PROGRAM: built } = process.env
const command =
  built === undefined
    ? [join(root, 'bin', 'runyard')]
    : [process.execPath, '--max-semi-space-size=32', '--no-allocation-site-pretenuring', built]
/** Longest start, in milliseconds: a busy machine is slow, and a server first looks for lost jobs. */
const START_MS = 120_000

/** A server that can be killed and restarted. */
export class RestartableServer {
  readonly #options
  #child: ChildProcess | null = null
  #ended: Promise<number | null> = Promise.resolve(null)
  #port = 0
  #key = ''
  #startedAtMs: number | null = null

  constructor(options: {
    readonly dataDir: string
    /** Address of a PostgreSQL database; null for the embedded database. */
    readonly database: string | null
    /** More arguments of `runyard serve`. */
    readonly args: readonly string[]
    /** More variables of its environment. */
    readonly env?: Readonly<Record<string, string>>
  }) {
    this.#options = options
  }

  /** Its address, even while it is down. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Its API key. */
  get key(): string {
    return this.#key
  }

  /** Time of its start, by the monotonic clock; null while it is down. */
  get startedAtMs(): number | null {
    return this.#startedAtMs
  }

  /** Its process; null before the first start. */
  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  /** True once its process has ended, by itself or by a kill. */
  get hasEnded(): boolean {
    return this.#child === null || this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** End of its process: exit code or signal. */
  get end(): string {
    return String(this.#child?.exitCode ?? this.#child?.signalCode ?? 'no process')
  }

  /** Its log. */
  get logFile(): string {
    return join(this.#options.dataDir, 'torture-server.log')
  }

  /** Starts it and waits until it responds. */
  async start(): Promise<void> {
    const log = openSync(this.logFile, 'a')
    const [program = '', ...words] = command
    const args = [
      ...words,
      'serve',
      '--json',
      '--port',
      String(this.#port),
      '--data-dir',
      this.#options.dataDir,
      ...['--worker-sandbox', 'off'],
      '--process-root',
      root,
      ...this.#options.args,
    ]
    const env = {
      ...process.env,
      ...this.#options.env,
      ...(this.#options.database === null ? {} : { RUNYARD_DATABASE: this.#options.database }),
    }
    const child = spawn(program, args, { cwd: root, env, stdio: ['ignore', 'pipe', log] })
    closeSync(log)
    this.#child = child
    this.#ended = new Promise(resolve => child.once('exit', code => resolve(code)))
    const late = sleep(patient(START_MS), null, { ref: false }).then(() => {
      throw new Error(`the server did not start within ${START_MS / 1000} s; its log is ${this.logFile}`)
    })
    const { url, key } = await Promise.race([ready(child), late]).catch((error: Error) => {
      throw new Error(`${error.message}\n${readFileSync(this.logFile, 'utf8').slice(-2_000)}`)
    })
    this.#port = Number(new URL(url).port)
    this.#key = key
    this.#startedAtMs = performance.now()
  }

  /** Kills it with SIGKILL and waits until it has ended. */
  async kill(): Promise<void> {
    this.#startedAtMs = null
    this.#child?.kill('SIGKILL')
    await this.#ended
  }

  /** Stops it gracefully. @returns its exit code; null if it had to be killed */
  async stop(): Promise<number | null> {
    this.#startedAtMs = null
    this.#child?.kill('SIGTERM')
    const patience = setTimeout(() => this.#child?.kill('SIGKILL'), 45_000)
    const code = await this.#ended
    clearTimeout(patience)
    return code
  }

  /** Kills it when this process ends, without waiting. */
  killNow(): void {
    this.#child?.kill('SIGKILL')
  }
}
