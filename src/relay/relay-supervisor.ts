/**
 * The server's side of the relay: finds or starts it, connects the server to it, and
 * replaces it when it dies or hangs.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readdirSync } from 'node:fs'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { compileCacheEnvironment } from '../disk/compile-cache.ts'
import { ensureFolder } from '../disk/durable-file.ts'
import { isNoSpaceError } from '../disk/full-disk.ts'
import { programFile } from '../disk/package-files.ts'
import { isAlive, readEffort, signal } from '../drivers/base/process-table.ts'
import type { TokenUpdate } from './known-tokens.ts'
import { ANSWER_MS, EVERY_MS, Pulse } from './pulse.ts'
import {
  BODY_HEADER,
  END_PATH,
  LISTEN_HEADER,
  LISTEN_PATH,
  SERVER_HEADER,
  type ServerTerm,
  TERM_HEADER,
  TETHER_PATH,
  TOKENS_PATH,
  WELL_PATH,
} from './relay.ts'
import { RELAY_VERSION, type RelayInfo, readRelayInfo, relayFolder, removeRelayInfo } from './relay-file.ts'
import type { UpstreamAddress } from './upstream.ts'

/**
 * Maximum duration of a start, long enough for the boot of a busy machine; a program that cannot start ends earlier.
 */
const START_MS = 60_000
const END_MS = 2_000
/** Timeout of a command, long enough for a busy machine. */
const COMMAND_MS = 10_000
/** Interval between attempts to start another relay. */
const PAUSE_MS = 1_000

/** Events in the life of a relay. */
export type RelayNote =
  | 'relay.started'
  | 'relay.adopted'
  | 'relay.lost'
  | 'relay.silent'
  | 'relay.hung'
  | 'relay.failed'
  | 'relay.taken'

/** Parts and settings of {@link superviseRelay}. */
export interface SupervisorOptions {
  readonly dataDir: string
  /** Identifies this boot of the machine. */
  readonly bootId: string
  /** The term of this server; null where no other server can act on its database. */
  readonly term: ServerTerm | null
  /** Bytes of the largest body of a worker that the server reads. */
  readonly largestBody: number
  /** Called for each event of the relay. */
  readonly note: (event: RelayNote, fields: object) => void
}

/**
 * Adopts the relay of the data directory, or starts one.
 * @throws when none can be started
 */
export async function superviseRelay(options: SupervisorOptions): Promise<RelaySupervisor> {
  const supervisor = new RelaySupervisor(options)
  await supervisor.find()
  return supervisor
}

/** Error for a relay that has a server of a later term. */
class Superseded extends Error {}

/** A supervised relay. */
export class RelaySupervisor {
  readonly #options
  #info: RelayInfo | null = null
  #started = false
  #server: UpstreamAddress | null = null
  #replaced: (silentMs: number) => void = () => {}
  #tether: ClientRequest | null = null
  /** Its address besides the loopback one. */
  #outer: UpstreamAddress | null = null
  #closed = false
  #pulse = new Pulse()
  #isSilent = false
  /** Start of the last successful health check, by a monotonic clock. */
  #wellAtMs = performance.now()

  constructor(options: SupervisorOptions) {
    this.#options = options
  }

  /** The origin for workers. It stays the same unless another program takes its port. */
  get url(): string {
    return `http://127.0.0.1:${this.#info?.port ?? 0}`
  }

  /** Adopts a running relay, or starts one on the port that workers already use. */
  async find(): Promise<void> {
    const { dataDir, bootId, note } = this.#options
    const running = readRelayInfo(dataDir)
    if (running !== null && isAlive(running.identity, bootId)) {
      this.#info = running
      const { pid } = running.identity
      const isWell = await this.#isWell(running)
      if (isWell && (running.version === RELAY_VERSION || hasWorkers(dataDir))) {
        note('relay.adopted', { pid, port: running.port })
        return
      }
      if (!isWell) {
        note('relay.hung', { pid, port: running.port })
        signal(pid, 'SIGKILL')
      }
      await this.#endNow()
    }
    await start(dataDir, running?.port ?? 0)
    const info = readRelayInfo(dataDir)
    if (info === null) throw new Error('it left no file')
    this.#info = info
    this.#started = true
    note('relay.started', { pid: info.identity.pid, port: info.port })
  }

  /**
   * Connects the relay to the server for the life of this process.
   * @param replaced called each time that another relay has replaced one that died or hung, with the time in ms since
   * the last sign of life of that one: responses to workers since then may be lost
   * @throws when the relay does not respond
   */
  async connect(server: UpstreamAddress, replaced: (silentMs: number) => void = () => {}): Promise<void> {
    this.#server = server
    this.#replaced = replaced
    const info = this.#info!
    const { term, largestBody } = this.#options
    const tether = command(info, TETHER_PATH, {
      [SERVER_HEADER]: `${server.host}:${server.port}`,
      [BODY_HEADER]: String(largestBody),
      ...(term !== null && { [TERM_HEADER]: `${term.database} ${term.epoch}` }),
    })
    await new Promise<void>((resolve, reject) => {
      tether.once('error', reject)
      tether.setTimeout(COMMAND_MS, () => tether.destroy(new Error('it does not answer')))
      tether.once('response', response => {
        tether.setTimeout(0)
        response.resume()
        response.on('error', () => {})
        if (response.statusCode === 409) return reject(new Superseded('it has a server that became active later'))
        if (response.statusCode !== 200) return reject(new Error(`it answered ${response.statusCode}`))
        response.once('close', () => void this.#lost(tether))
        resolve()
      })
    })
    tether.on('error', () => {})
    this.#tether = tether
    if (this.#closed) tether.destroy()
    void this.#watch(info, tether)
  }

  /**
   * Lets the relay, and each that replaces it, listen on another address of this machine, too.
   * @param address with the preferred port
   * @returns its port
   * @throws when the address cannot be bound, or the relay's version cannot do this
   */
  async listenToo(address: UpstreamAddress): Promise<number> {
    const info = this.#info!
    const listenRequest = command(info, LISTEN_PATH, { [LISTEN_HEADER]: `${address.host}:${address.port}` })
    const { status, text } = await readAnswer(listenRequest)
    if (status !== 200) throw new Error(status === 409 ? text : `the relay of an earlier version answers ${status}`)
    const { port } = JSON.parse(text) as { port: number }
    this.#outer = { host: address.host, port }
    return port
  }

  /**
   * Sends tokens to the relay. A relay of an earlier version gets none.
   * @throws when it does not respond
   */
  async sendTokens(update: TokenUpdate): Promise<void> {
    const { status } = await readAnswer(command(this.#info!, TOKENS_PATH, {}, JSON.stringify(update)))
    if (status >= 500) throw new Error(`the relay answers ${status}`)
  }

  /** Its address besides the loopback one; null if unknown to this server. */
  get outer(): UpstreamAddress | null {
    return this.#outer
  }

  /** True if the relay has the socket of the worker surface; a relay of an earlier version does not. */
  get hasSocket(): boolean {
    return this.#info?.version === RELAY_VERSION
  }

  /** The port of the loopback address. */
  get port(): number {
    return this.#info?.port ?? 0
  }

  /** Ends the relay when no worker is left. */
  async end(): Promise<void> {
    this.#closed = true
    await this.#endNow()
    this.#tether?.destroy()
  }

  /** Leaves the relay to the next server, with the calls that it holds. */
  release(): void {
    this.#closed = true
    this.#tether?.destroy()
  }

  /** Releases the relay after a failed start of the server, and ends one that this server started. */
  async leave(): Promise<void> {
    if (this.#closed) return
    if (this.#started) return this.end()
    this.#closed = true
    this.#tether?.destroy()
  }

  /** Checks the health of the relay during this tether, and replaces it when it hangs. */
  async #watch(info: RelayInfo, tether: ClientRequest): Promise<void> {
    this.#wellAtMs = performance.now()
    while (this.#tether === tether && !this.#closed) {
      if ((await this.#checkHealth(info)) === 'hangs') return this.#replace(info)
      await pause(EVERY_MS)
    }
  }

  /** Repeats the check until its result is certain. */
  async #isWell(info: RelayInfo): Promise<boolean> {
    for (;;) {
      const answer = await this.#checkHealth(info)
      if (answer !== 'unknown') return answer === 'well'
    }
  }

  async #checkHealth(info: RelayInfo): Promise<'well' | 'hangs' | 'unknown'> {
    const { pid } = info.identity
    const previousEffort = readEffort(pid)
    const askedAtMs = performance.now()
    if (await answersInTime(info)) {
      this.#pulse.answered(performance.now())
      this.#wellAtMs = askedAtMs
      this.#isSilent = false
      return 'well'
    }
    if (!this.#isSilent) this.#options.note('relay.silent', { pid, forMs: ANSWER_MS })
    this.#isSilent = true
    // A relay that was only stopped continues without a loss: RunPod's SDK loses results of calls that are cut off.
    if (isAlive(info.identity, this.#options.bootId)) signal(pid, 'SIGCONT')
    return this.#pulse.missed(askedAtMs, performance.now(), previousEffort, readEffort(pid)) ? 'hangs' : 'unknown'
  }

  /**
   * Starts the next relay on the same port before this one ends, so that no call of a worker is refused. The end
   * of the tether does the rest.
   */
  async #replace(info: RelayInfo): Promise<void> {
    const { dataDir, bootId, note } = this.#options
    const { identity, port } = info
    note('relay.hung', { pid: identity.pid, port })
    this.#pulse.replaced(performance.now())
    try {
      await start(dataDir, port, true)
    } catch (error) {
      note('relay.failed', { problem: String(error) })
    }
    if (isAlive(identity, bootId)) signal(identity.pid, 'SIGKILL')
    if (!this.#closed) return
    this.#info = readRelayInfo(dataDir)
    await this.#endNow()
  }

  async #lost(tether: ClientRequest): Promise<void> {
    if (this.#closed || this.#tether !== tether) return
    const { note } = this.#options
    note('relay.lost', { pid: this.#info?.identity.pid })
    const wellAtMs = this.#wellAtMs
    while (!this.#closed) {
      try {
        await this.find()
        await this.connect(this.#server!, this.#replaced)
        const outer = this.#outer
        this.#outer = null
        // After a failure the next caller that needs the address gets the error.
        if (outer !== null) await this.listenToo(outer).catch(() => {})
        this.#replaced(performance.now() - wellAtMs)
        return
      } catch (error) {
        if (error instanceof Superseded) {
          note('relay.taken', { problem: error.message })
          return
        }
        note('relay.failed', { problem: String(error) })
        await pause(PAUSE_MS)
      }
    }
  }

  async #endNow(): Promise<void> {
    const info = this.#info
    if (info === null) return
    const ended = command(info, END_PATH, {})
    ended.on('error', () => {})
    ended.on('response', response => response.resume().on('error', () => {}))
    const deadline = performance.now() + END_MS
    while (isAlive(info.identity, this.#options.bootId)) {
      if (performance.now() > deadline) signal(info.identity.pid, 'SIGKILL')
      await pause(10)
    }
    // A relay that was killed could not remove it.
    if (readRelayInfo(this.#options.dataDir)?.secret === info.secret) removeRelayInfo(this.#options.dataDir)
  }
}

function command(info: RelayInfo, path: string, headers: Record<string, string>, body = ''): ClientRequest {
  const commandRequest = request({
    host: '127.0.0.1',
    port: info.port,
    path,
    method: 'POST',
    agent: false,
    headers: { authorization: info.secret, ...headers },
  })
  commandRequest.end(body)
  return commandRequest
}

async function readAnswer(sentRequest: ClientRequest): Promise<{ status: number; text: string }> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sentRequest.once('error', reject)
    sentRequest.once('response', resolve)
    sentRequest.setTimeout(COMMAND_MS, () => sentRequest.destroy(new Error('the relay does not answer')))
  })
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += piece
  return { status: response.statusCode ?? 0, text }
}

/** False when it does not respond in time. A refused or broken connection is no hang: the tether ends, too. */
function answersInTime(info: RelayInfo): Promise<boolean> {
  const healthRequest = command(info, WELL_PATH, {})
  return new Promise(resolve => {
    const timer = setTimeout(() => {
      resolve(false)
      healthRequest.destroy()
    }, ANSWER_MS)
    const settle = () => {
      clearTimeout(timer)
      resolve(true)
    }
    healthRequest.on('error', settle)
    healthRequest.once('response', response => {
      response.resume().on('error', () => {})
      settle()
    })
  })
}

/**
 * True if workers may exist: each process has a private folder until its release, and a file exists
 * while containers may call.
 */
function hasWorkers(dataDir: string): boolean {
  if (existsSync(join(dataDir, 'container-address.json'))) return true
  try {
    return readdirSync(join(dataDir, 'workers')).length > 0
  } catch {
    return false
  }
}

/**
 * Starts a relay that gets no signals of this terminal, and waits until it listens.
 * @param beside true if a hanging relay still has the port
 */
async function start(dataDir: string, port: number, beside = false): Promise<void> {
  ensureFolder(relayFolder(dataDir))
  const log = openLog(join(relayFolder(dataDir), 'relay.log'))
  let child: ChildProcess
  try {
    child = spawn(
      process.execPath,
      [programFile('relay/program'), dataDir, String(port), ...(beside ? ['beside'] : [])],
      {
        cwd: '/',
        detached: true,
        env: compileCacheEnvironment(),
        stdio: ['ignore', 'pipe', log],
      },
    )
  } finally {
    if (log !== 'ignore') closeSync(log)
  }
  child.unref()
  let late: NodeJS.Timeout | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      late = setTimeout(() => reject(new Error('it does not answer')), START_MS)
      child.once('error', reject)
      child.once('exit', code => reject(new Error(`it ended with ${code}; its log is relay/relay.log`)))
      child.stdout!.once('data', () => resolve())
    })
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  } finally {
    clearTimeout(late)
    child.stdout?.destroy()
  }
}

/** On a disk without room for another file the relay has no log. */
function openLog(file: string): number | 'ignore' {
  try {
    return openSync(file, 'w', 0o600)
  } catch (error) {
    if (isNoSpaceError(error)) return 'ignore'
    throw error
  }
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
