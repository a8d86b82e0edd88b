/**
 * The threads that read HTTP beside the deciding one: each has an event loop, a listener at the address for clients,
 * and its own connections to workers (docs/adr/0111-http-threads.md).
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { Config } from '../../config/config.ts'
import { compileCacheEnvironment } from '../../disk/compile-cache.ts'
import { programFile } from '../../disk/package-files.ts'
import type { AdmissionRules } from '../../gateway/entrance/admission.ts'
import type { DecidingMessage, MessagesOfTerm, ThreadChannel, ThreadMessage } from '../../gateway/threads/messages.ts'
import type { Packet } from '../../server/call-messages.ts'
import { type ConnectionTotals, sharedTotals, type TotalsMemory, totalsMemory } from '../../server/connection-totals.ts'
import type { ConnectionLimits } from '../../server/connections.ts'
import type { Mount } from '../../server/mount.ts'
import { CallReceiver, type TakeCall } from '../../server/received-calls.ts'
import { systemClock } from '../../system/clock.ts'
import type { Log } from '../../system/observing/log.ts'

/** Limit of the threads that a server chooses itself. */
const MOST_BY_ITSELF = 8
/** Processors that are left to the deciding thread and to what it starts. */
const LEFT = 2
/** Memory of the youngest objects of a thread, in megabytes: as the server has it (bin/runyard). */
const YOUNG_MB = 96

/** Everything that a thread gets at its start. */
export interface HttpThreadData {
  readonly port: MessagePort
  /** One word: the number of messages that were sent to the thread. */
  readonly sent: SharedArrayBuffer
  readonly listen: { readonly host: string; readonly port: number }
  /** The socket of the deciding thread in the file system, and the secret that it wants with each request. */
  readonly passing: { readonly file: string; readonly secret: string }
  readonly limits: Omit<Partial<ConnectionLimits>, 'isShared'>
  readonly maxConnections: number
  readonly totals: TotalsMemory
  readonly thread: number
  readonly hosts: { readonly names: readonly string[]; readonly domains: readonly string[] }
  readonly consoleHost: string | null
  readonly mount: Pick<Mount, 'domain' | 'ownHosts' | 'closedHosts'>
  readonly rules: AdmissionRules
  readonly bodyBytes: number
}

/** A message to a thread. */
export type ToHttpThread =
  | { readonly kind: 'batch'; readonly batch: MessagesOfTerm<DecidingMessage> }
  | { readonly kind: 'answer' }
  | { readonly kind: 'answers'; readonly packet: Packet }
  | { readonly kind: 'containers'; readonly subnets: readonly string[] }
  | { readonly kind: 'close'; readonly graceMs: number }

/** A message of a thread. */
export type FromHttpThread =
  | { readonly kind: 'batch'; readonly batch: MessagesOfTerm<ThreadMessage> }
  | { readonly kind: 'calls'; readonly packet: Packet }
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'failed'; readonly message: string; readonly code: string | undefined }
  | { readonly kind: 'full' | 'crowded' }
  | { readonly kind: 'closed' }

/** Events of all threads. */
export interface HttpThreadWatch {
  /** A connection was refused by a limit. */
  readonly full: () => void
  /** A thread needs room for a connection, and has none to end. */
  readonly crowded: () => void
  /** A thread has sent a request as a message. */
  readonly call: TakeCall
}

/** Number of threads that read HTTP; 1 if the deciding thread reads it. */
export function httpThreadsFor(config: Config, isInherited: boolean, log: Log): number {
  const { httpThreads } = config
  const wanted = httpThreads ?? Math.min(MOST_BY_ITSELF, availableParallelism() - LEFT)
  if (wanted < 2) return 1
  const obstacle = findObstacle(config, isInherited)
  if (obstacle === null) return wanted
  // Whoever gave no number has nothing to change.
  log[httpThreads === null ? 'info' : 'warn']({ reason: obstacle }, 'http_threads.one')
  return 1
}

/** Reason why a second socket at the same port is not possible or not safe; null for none. */
function findObstacle(config: Config, isInherited: boolean): string | null {
  const { tls, tracing, workerSandbox, workerNetwork } = config
  if (process.platform !== 'linux') return 'only Linux spreads connections over several sockets at one port'
  if (isInherited) return 'systemd passed a socket on, and there is one of it'
  if (tls.certFile !== null || tls.selfSigned) return 'the server speaks HTTPS'
  if (tracing !== null) return 'traces of requests are recorded'
  if (workerSandbox !== 'off' && workerNetwork === 'shared')
    return 'workers in cages share the network of the machine, and could listen at the same port'
  return null
}

/** The threads of a server. */
export class HttpThreads {
  /** Their sums, for the deciding thread. */
  readonly totals: ConnectionTotals
  readonly #threads: readonly HttpThread[]

  private constructor(threads: readonly HttpThread[], totals: ConnectionTotals) {
    this.#threads = threads
    this.totals = totals
  }

  /**
   * Starts threads that listen at one address. New connections wait for {@link answer}.
   * @throws the system's error if the address cannot be bound
   */
  static async start(
    count: number,
    data: Omit<HttpThreadData, 'port' | 'sent' | 'totals' | 'thread'>,
    on: HttpThreadWatch,
  ): Promise<HttpThreads> {
    const holders = data.maxConnections + (data.limits.reserved ?? 0)
    const totals = totalsMemory(count + 1, holders, randomBytes(16).toString('hex'))
    const threads: HttpThread[] = []
    let { port } = data.listen
    try {
      for (let thread = 0; thread < count; thread += 1) {
        const listen = { ...data.listen, port }
        const started = new HttpThread({ ...data, listen, totals, thread }, on)
        threads.push(started)
        // The first one finds the port, if any is wanted.
        port = await started.listening
      }
    } catch (error) {
      await Promise.all(threads.map(thread => thread.close(0)))
      throw error
    }
    return new HttpThreads(threads, sharedTotals(totals, count))
  }

  get port(): number {
    return this.#threads[0]!.port
  }

  /** The ways of the gateway to the threads. */
  get channels(): readonly ThreadChannel[] {
    return this.#threads
  }

  /** Begins to answer. */
  answer(): void {
    for (const thread of this.#threads) thread.post({ kind: 'answer' })
  }

  /** Requests of these networks are refused from now on: containers have an address of their own to call. */
  refuse(subnets: readonly string[]): void {
    for (const thread of this.#threads) thread.post({ kind: 'containers', subnets })
  }

  /** Takes no new connections, all threads at once. Resolves when all are gone, after `graceMs` at the latest. */
  async close(graceMs: number): Promise<void> {
    await Promise.all(this.#threads.map(thread => thread.close(graceMs)))
  }
}

/** The path of the socket at which the deciding thread gets the requests of its threads, and their secret. */
export function passingIn(dataDir: string): HttpThreadData['passing'] {
  return { file: join(dataDir, 'http-threads.sock'), secret: randomBytes(32).toString('hex') }
}

class HttpThread implements ThreadChannel {
  /** Resolves with the port. */
  readonly listening: Promise<number>
  readonly #worker
  readonly #port: MessagePort
  readonly #sent = new Int32Array(new SharedArrayBuffer(4))
  readonly #listening = Promise.withResolvers<number>()
  readonly #closed = Promise.withResolvers<void>()
  readonly #exit: Promise<unknown>
  readonly #calls
  #handle: (batch: MessagesOfTerm<ThreadMessage>) => void = () => {}
  #boundPort = 0
  #isEnding = false

  constructor(data: Omit<HttpThreadData, 'port' | 'sent'>, on: HttpThreadWatch) {
    const { port1, port2 } = new MessageChannel()
    this.listening = this.#listening.promise
    this.#port = port1
    const workerData: HttpThreadData = { ...data, port: port2, sent: this.#sent.buffer }
    this.#worker = new Worker(pathToFileURL(programFile('main/listening/http-thread')), {
      workerData,
      transferList: [port2],
      name: `http ${data.thread}`,
      env: { ...process.env, ...compileCacheEnvironment() },
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    })
    this.#calls = new CallReceiver(systemClock, packet => this.post({ kind: 'answers', packet }), on.call)
    this.#exit = once(this.#worker, 'exit')
    this.#worker.on('error', error => this.#died(error))
    this.#worker.on('exit', () => this.#died(new Error('it ended')))
    port1.on('message', (message: FromHttpThread) => this.#receive(message, on))
  }

  get port(): number {
    return this.#boundPort
  }

  send(batch: MessagesOfTerm<DecidingMessage>): void {
    this.post({ kind: 'batch', batch })
  }

  receive(handle: (batch: MessagesOfTerm<ThreadMessage>) => void): void {
    this.#handle = handle
  }

  /** Sends a message, which the thread finds at its next request at the latest. */
  post(message: ToHttpThread): void {
    this.#port.postMessage(message)
    Atomics.add(this.#sent, 0, 1)
  }

  async close(graceMs: number): Promise<void> {
    this.#isEnding = true
    this.post({ kind: 'close', graceMs })
    await Promise.race([this.#closed.promise, this.#exit])
    this.#port.close()
    await this.#worker.terminate()
  }

  #receive(message: FromHttpThread, on: HttpThreadWatch): void {
    switch (message.kind) {
      case 'batch':
        this.#handle(message.batch)
        break
      case 'calls':
        this.#calls.receive(message.packet)
        break
      case 'listening':
        this.#boundPort = message.port
        this.#listening.resolve(message.port)
        break
      case 'failed':
        this.#isEnding = true
        this.#listening.reject(Object.assign(new Error(message.message), { code: message.code }))
        this.#closed.resolve()
        break
      case 'full':
        on.full()
        break
      case 'crowded':
        on.crowded()
        break
      case 'closed':
        this.#closed.resolve()
        break
    }
  }

  /** Its counts and its part of the connections are lost, so the server ends, as after its own failure. */
  #died(cause: unknown): void {
    if (this.#isEnding) return
    this.#isEnding = true
    const error = new Error('a thread that reads HTTP has failed', { cause })
    this.#listening.reject(error)
    if (this.#boundPort === 0) return
    setImmediate(() => {
      throw error
    })
  }
}
