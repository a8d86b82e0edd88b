/** The server's side of the pump: creates the pipes of workers, and starts a pump unless one reads them. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, constants, existsSync, openSync, readdirSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { WorkerId } from '../core/ids.ts'
import { compileCacheEnvironment } from '../disk/compile-cache.ts'
import { ensureFolder } from '../disk/durable-file.ts'
import { programFile } from '../disk/package-files.ts'
import { OutputWriter } from '../disk/worker-output.ts'
import { isAlive, readProcess, signal } from '../drivers/base/process-table.ts'
import { type Clock, pause } from '../ports/clock.ts'
import type { OutputPipes } from '../ports/output-pipes.ts'
import { pipesFolder, readPump, removePump } from './pump-file.ts'

/** Events in the life of a pump. */
export type PumpNote = 'pump.started' | 'pump.adopted' | 'pump.lost' | 'pump.stopped' | 'pump.failed'

/** Options of {@link createWorkerPipes}. */
export interface WorkerPipesOptions {
  /** The folder of the pump. */
  readonly folder: string
  /** The folder of the outputs, each in a folder of its own named after its worker. */
  readonly logs: string
  readonly clock: Clock
  /** Identifies this boot of the machine. */
  readonly bootId: string
  /** Called for each event of the pump. */
  readonly note: (event: PumpNote, fields: object) => void
}

/** Number of pipes that are made at once. */
const DRAFTS = 16
/** Interval between checks of the pump. */
const CHECK_MS = 500
/** Maximum wait for the last output of a worker. */
const DRAIN_MS = 5_000
const DRAIN_PAUSE_MS = { first: 2, most: 50 }
/** Pauses between starts of pumps that end at once. */
const RETRY_MS = { first: 1_000, most: 30_000 }

/** Pipes that a pump on this machine reads, which is started with the first of them. */
export function createWorkerPipes(options: WorkerPipesOptions): OutputPipes {
  return new WorkerPipes(options)
}

/** Node cannot make named pipes by itself. */
async function makePipes(paths: readonly string[]): Promise<void> {
  try {
    await promisify(execFile)('mkfifo', ['-m', '600', ...paths], { env: { ...process.env, LC_ALL: 'C' } })
  } catch (thrown) {
    const { code, stderr = '' } = thrown as NodeJS.ErrnoException & { readonly stderr?: string }
    const reason =
      code === 'ENOENT' ? 'the program mkfifo is missing' : stderr.slice(stderr.lastIndexOf(':') + 1).trim()
    throw Object.assign(new Error(`no pipe for the output: ${reason}`), { code: reason })
  }
}

class WorkerPipes implements OutputPipes {
  readonly #options
  readonly #pipes: string
  /**
   * One end of each pipe, open for reading, though nobody here reads: the content of a pipe is lost once nobody has
   * it open.
   */
  readonly #held = new Map<WorkerId, number>()
  /** The pump that this server started. */
  #child: ChildProcess | null = null
  /** The pid of the pump at the last check; null for none. */
  #pid: number | null = null
  #pauseMs = 0
  #startAtMs = Number.NEGATIVE_INFINITY
  #cancelCheck: (() => void) | null = null
  #isClosed = false
  readonly #drafts: string[] = []
  #making: Promise<void> | null = null

  constructor(options: WorkerPipesOptions) {
    this.#options = options
    this.#pipes = pipesFolder(options.folder)
  }

  async open(worker: WorkerId): Promise<number> {
    // A pipe gets its name once it is open for writing: the pump removes pipes that nobody has open.
    const draft = await this.#draft()
    // Open in both directions, so that a worker without a pump waits instead of getting SIGPIPE.
    const fd = openSync(draft, constants.O_RDWR)
    try {
      renameSync(draft, this.#pipePath(worker))
      this.hold(worker)
    } catch (thrown) {
      closeSync(fd)
      throw thrown
    }
    return fd
  }

  hold(worker: WorkerId): void {
    if (this.#held.has(worker) || !existsSync(this.#pipePath(worker))) return
    this.#held.set(worker, openSync(this.#pipePath(worker), constants.O_RDONLY | constants.O_NONBLOCK))
    if (this.#cancelCheck === null) this.#check()
  }

  async say(worker: WorkerId, line: string): Promise<void> {
    const text = `runyard: ${line}\n`
    try {
      const fd = openSync(this.#pipePath(worker), constants.O_WRONLY | constants.O_NONBLOCK)
      try {
        writeSync(fd, text)
      } finally {
        closeSync(fd)
      }
    } catch (thrown) {
      // Without a pipe nobody else writes to the output.
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') await this.#append(worker, text).catch(() => {})
    }
  }

  async drained(worker: WorkerId): Promise<void> {
    const { clock } = this.#options
    const endMs = clock.monotonic() + DRAIN_MS
    for (let pauseMs = DRAIN_PAUSE_MS.first; this.#held.has(worker) && !this.#isClosed; pauseMs *= 2) {
      if (!existsSync(this.#pipePath(worker)) || clock.monotonic() > endMs) return this.#release(worker)
      const ms = Math.min(pauseMs, DRAIN_PAUSE_MS.most)
      await pause(clock, ms)
    }
  }

  forget(worker: WorkerId): void {
    this.#release(worker)
    rmSync(this.#pipePath(worker), { force: true })
  }

  close(): void {
    this.#isClosed = true
    this.#cancelCheck?.()
    for (const worker of [...this.#held.keys()]) this.#release(worker)
    this.#child?.unref()
    for (const draft of this.#drafts) rmSync(draft, { force: true })
    if (!this.#hasPipes()) this.#end()
  }

  async #append(worker: WorkerId, text: string): Promise<void> {
    const output = await OutputWriter.open(join(this.#options.logs, worker))
    try {
      await output.write(Buffer.from(text))
    } finally {
      await output.close()
    }
  }

  /** A pipe without a worker. Several are created at once, since that takes the start of a program. */
  async #draft(): Promise<string> {
    for (;;) {
      const draft = this.#drafts.pop()
      if (draft !== undefined) return draft
      this.#making ??= this.#makeDrafts().finally(() => (this.#making = null))
      await this.#making
    }
  }

  async #makeDrafts(): Promise<void> {
    ensureFolder(this.#pipes)
    const ownPrefix = `.${process.pid}-`
    // Drafts of servers that were killed.
    for (const name of readdirSync(this.#pipes)) {
      if (name.startsWith('.') && !name.startsWith(ownPrefix)) rmSync(join(this.#pipes, name), { force: true })
    }
    const drafts = Array.from({ length: DRAFTS }, () => join(this.#pipes, `${ownPrefix}${randomUUID()}`))
    await makePipes(drafts)
    this.#drafts.push(...drafts)
  }

  #pipePath(worker: WorkerId): string {
    return join(this.#pipes, worker)
  }

  #release(worker: WorkerId): void {
    const fd = this.#held.get(worker)
    this.#held.delete(worker)
    if (fd !== undefined) closeSync(fd)
  }

  /** Keeps a pump running as long as pipes are held. */
  #check(): void {
    this.#cancelCheck = null
    if (this.#isClosed || this.#held.size === 0) return
    const { folder, bootId, clock, note } = this.#options
    this.#cancelCheck = clock.after(CHECK_MS, () => this.#check())
    const pump = readPump(folder)
    if (pump !== null && isAlive(pump, bootId)) {
      if (this.#pid !== pump.pid) note(this.#child?.pid === pump.pid ? 'pump.started' : 'pump.adopted', pump)
      this.#pid = pump.pid
      this.#pauseMs = 0
      if (readProcess(pump.pid)?.stopped !== true) return
      note('pump.stopped', pump)
      signal(pump.pid, 'SIGCONT')
    } else if (this.#child === null) {
      if (this.#pid !== null) note('pump.lost', { pid: this.#pid })
      this.#pid = null
      if (clock.monotonic() >= this.#startAtMs) this.#start()
    }
  }

  #start(): void {
    const { folder, logs, clock, note } = this.#options
    this.#startAtMs = clock.monotonic() + this.#pauseMs
    this.#pauseMs = Math.min(RETRY_MS.most, Math.max(RETRY_MS.first, 2 * this.#pauseMs))
    try {
      const log = openSync(join(folder, 'pump.log'), 'w', 0o600)
      try {
        const child = spawn(process.execPath, [programFile('pump/program'), folder, logs], {
          cwd: '/',
          detached: true,
          env: compileCacheEnvironment(),
          stdio: ['ignore', 'ignore', log],
        })
        this.#child = child
        const failed = (problem: string) => {
          this.#child = null
          if (!this.#isClosed && this.#pid !== child.pid) note('pump.failed', { problem })
        }
        child.on('error', error => failed(String(error)))
        child.on('exit', code => failed(`it ended with ${code}; its log is pump/pump.log`))
        child.unref()
      } finally {
        closeSync(log)
      }
    } catch (error) {
      note('pump.failed', { problem: String(error) })
    }
  }

  #hasPipes(): boolean {
    try {
      return readdirSync(this.#pipes).some(name => !name.startsWith('.'))
    } catch {
      return false
    }
  }

  #end(): void {
    const { folder, bootId } = this.#options
    const pump = readPump(folder)
    removePump(folder)
    if (pump !== null && isAlive(pump, bootId)) signal(pump.pid, 'SIGTERM')
    this.#child?.kill('SIGTERM')
  }
}
