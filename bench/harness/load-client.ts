/**
 * The process that sends the load. With a rate, requests are due at fixed times, and a latency counts from the time
 * at which its request was due: a server that stalls is charged for all requests of that time. Without one, each
 * connection sends its next request after a response.
 */
import { connect, type Socket } from 'node:net'
import type { Pause, ResponseTime } from './pauses.ts'

/** A load to send. */
export interface LoadTask {
  readonly port: number
  /** The whole request, head and body. */
  readonly request: string
  readonly connections: number
  /** Requests a second on all connections; null for as many as are answered. */
  readonly perSecond: number | null
  /** Durations of the warm-up and of the measurement, in milliseconds. */
  readonly warmMs: number
  readonly ms: number
  /** Responses that took longer than this many times the median are returned with their times; none by default. */
  readonly slowTimes?: number
}

/** The measurements of a load. Latencies are in microseconds. */
export interface LoadResult {
  /** Successful responses in the measured time. */
  readonly count: number
  /** Responses 429 and 503 with a Retry-After header. */
  readonly refused: number
  readonly failed: number
  readonly p50: number
  readonly p99: number
  readonly longest: number
}

/** The measurements of a load whose slow responses are explained. */
export interface ExplainedLoadResult extends LoadResult {
  /** The measured time, by the machine's monotonic clock as all times here. */
  readonly measured: ResponseTime
  readonly slow: readonly ResponseTime[]
  /** Pauses of the process that sent the load. */
  readonly pauses: readonly Pause[]
}

/** Maximum number of requests that are due and not sent; further ones count as failed. */
const MAX_DUE = 100_000

/** Shortest recorded pause of this process, in milliseconds. */
const PAUSE_MS = 2
/** Offset of the machine's monotonic clock from the clock of this process, in milliseconds. */
const CLOCK_OFFSET_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now()

process.once('message', (task: LoadTask) => {
  new Load(task).run().then(
    result => process.send?.(result, () => process.exit()),
    (error: Error) => process.send?.({ error: error.message }, () => process.exit(1)),
  )
})
process.send?.('ready')

class Load {
  readonly #task
  readonly #bytes: Buffer
  readonly #begin = performance.now()
  /** Due times of the requests that wait for a connection. */
  readonly #due: number[] = []
  readonly #idle: Connection[] = []
  readonly #took: number[] = []
  /** The end of each response in `#took`, in the same order. */
  readonly #endedMs: number[] = []
  readonly #pauses: Pause[] = []
  #refused = 0
  #failed = 0
  #fatal: (error: Error) => void = () => {}

  constructor(task: LoadTask) {
    this.#task = task
    this.#bytes = Buffer.from(task.request)
  }

  async run(): Promise<ExplainedLoadResult> {
    const { connections, port, warmMs, ms, perSecond } = this.#task
    const failed = new Promise<never>((_, reject) => {
      this.#fatal = reject
    })
    const opened = Array.from({ length: connections }, () => Connection.open(port, error => this.#fatal(error)))
    const all = await Promise.race([Promise.all(opened), failed])
    if (perSecond === null) for (const connection of all) this.#send(connection, performance.now())
    else this.#idle.push(...all)
    const ticks = perSecond === null ? null : setInterval(() => this.#makeDue(perSecond), 1)
    const watch = this.#task.slowTimes === undefined ? null : this.#watchPauses()
    await Promise.race([new Promise(resolve => setTimeout(resolve, warmMs + ms)), failed])
    if (ticks !== null) clearInterval(ticks)
    if (watch !== null) clearInterval(watch)
    const took = this.#took.toSorted((a, b) => a - b)
    const at = (share: number) => Math.round((took[Math.floor((took.length - 1) * share)] ?? 0) * 1_000)
    const counts = { count: took.length, refused: this.#refused, failed: this.#failed }
    const slow = this.#slow((at(0.5) / 1_000) * (this.#task.slowTimes ?? Number.POSITIVE_INFINITY))
    const fromMs = this.#begin + warmMs + CLOCK_OFFSET_MS
    const measured = { fromMs, toMs: fromMs + ms }
    return { ...counts, p50: at(0.5), p99: at(0.99), longest: at(1), measured, slow, pauses: this.#pauses }
  }

  #slow(aboveMs: number): ResponseTime[] {
    return this.#took.flatMap((tookMs, at) => {
      const toMs = this.#endedMs[at]! + CLOCK_OFFSET_MS
      return tookMs > aboveMs ? [{ fromMs: toMs - tookMs, toMs }] : []
    })
  }

  #watchPauses(): NodeJS.Timeout {
    let latestMs = performance.now()
    return setInterval(() => {
      const now = performance.now()
      if (now - latestMs > PAUSE_MS + 1)
        this.#pauses.push({ cause: 'the load itself', fromMs: latestMs + CLOCK_OFFSET_MS, toMs: now + CLOCK_OFFSET_MS })
      latestMs = now
    }, 1)
  }

  #made = 0

  /**
   * Sends the requests that are due. The latency of one that gets a connection at once counts from
   * now, since the timer of this process may be a millisecond late. That of one that waits for a
   * connection counts from its due time.
   */
  #makeDue(perSecond: number): void {
    const now = performance.now()
    for (;;) {
      const due = this.#begin + (this.#made / perSecond) * 1_000
      if (due > now) return
      this.#made += 1
      const connection = this.#idle.pop()
      if (connection !== undefined) this.#send(connection, performance.now())
      else if (this.#due.length < MAX_DUE) this.#due.push(due)
      else this.#failed += 1
    }
  }

  #send(connection: Connection, due: number): void {
    connection.send(this.#bytes, outcome => {
      const now = performance.now()
      const begin = this.#begin + this.#task.warmMs
      if (now >= begin && now < begin + this.#task.ms) {
        if (outcome === 'done') {
          this.#took.push(now - due)
          this.#endedMs.push(now)
        } else if (outcome === 'refused') this.#refused += 1
        else this.#failed += 1
      }
      if (this.#task.perSecond === null) this.#send(connection, now)
      else if (this.#due.length > 0) this.#send(connection, this.#due.shift()!)
      else this.#idle.push(connection)
    })
  }
}

/** One connection, with one request at a time. */
class Connection {
  readonly #socket
  #received = ''
  #done: ((outcome: Outcome) => void) | null = null

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', bytes => this.#read(bytes.toString('latin1')))
  }

  static open(port: number, fail: (error: Error) => void): Promise<Connection> {
    return new Promise(resolve => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => resolve(new Connection(socket)))
      socket.on('error', fail)
      socket.on('close', () => fail(new Error('the server closed a connection')))
    })
  }

  send(bytes: Buffer, done: (outcome: Outcome) => void): void {
    this.#done = done
    this.#socket.write(bytes)
  }

  #read(text: string): void {
    this.#received += text
    const head = this.#received.indexOf('\r\n\r\n')
    if (head < 0) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#received.slice(0, head))?.[1]
    const isWhole =
      length === undefined ? this.#received.endsWith('0\r\n\r\n') : this.#received.length >= head + 4 + Number(length)
    if (!isWhole) return
    const outcome = readOutcome(this.#received)
    this.#received = ''
    const done = this.#done
    this.#done = null
    done?.(outcome)
  }
}

type Outcome = 'done' | 'refused' | 'failed'

function readOutcome(response: string): Outcome {
  if (/^HTTP\/1\.1 2/.test(response)) return 'done'
  return /^HTTP\/1\.1 (?:429|503) /.test(response) && /\r\nretry-after: *\d/i.test(response) ? 'refused' : 'failed'
}
