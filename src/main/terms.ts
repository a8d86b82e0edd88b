/**
 * The role of a server among those on its database: it stands by until it may act, acts until another one does, and
 * stands by again.
 */
import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { AppError, toAppError } from '../core/errors.ts'
import type { ServerStatus } from '../core/observing/server-status.ts'
import { DAMAGE_ACTION, damageText } from '../core/observing/store-trouble.ts'
import { packageVersion } from '../disk/package-files.ts'
import { addressList } from '../gateway/entrance/forwarded.ts'
import type { ActiveServer } from '../ports/leader.ts'
import { Standby } from '../server/standby.ts'
import { DATABASE_NAME } from '../store/data-dir-database.ts'
import type { FencedTerm } from '../system/coordination/lease-term.ts'
import type { PostgresLease } from '../system/coordination/postgres-lease.ts'
import { keepApiKey, readApiKey } from '../system/keys/api-key.ts'
import { OwnAgreement } from './database/server-agreement.ts'
import { isBoundToMachine, storeName } from './database/store.ts'
import { listenerAddresses } from './listening/listeners.ts'
import { type ActiveLabel, showRole } from './platform/active-label.ts'
import type { Shell } from './shell.ts'
import { StartError } from './start-error.ts'
import { type OpenTerm, openTerm, type ServerControl } from './term.ts'

/** Interval at which a server that stands by reads the active one. */
const LOOK_MS = 1_000
/** Time before a term that could not begin is tried again. */
const AGAIN_MS = 1_000
/** Maximum time in which open connections end when the server stops. */
const GRACE_MS = 1_000
/** Time for the response to whoever asked for another term of the same server. */
const ANSWER_MS = 200
/** Maximum time in which a deposed server releases its term before it stands by again. */
const RELEASE_MS = 5_000

/** Leads a server through its terms. */
export class Terms {
  readonly #shell
  /** Null on the embedded database, where there is one term without an end. */
  readonly #candidate
  /** Null outside of a cluster. */
  readonly #label
  readonly #stopping = new AbortController()
  readonly #failed = Promise.withResolvers<never>()
  readonly #watchers = new Set<(acting: OpenTerm | null) => void>()
  readonly #sinceMs = Date.now()
  #renewal = Promise.withResolvers<void>()
  /** The epoch in which another server acted when this one started; 0 without one. */
  #previousEpoch = 0
  readonly #role: ServerControl = { status: () => this.#status(), renewTerm: () => this.#renewal.resolve() }
  #acting: OpenTerm | null = null
  #lease: FencedTerm | null = null
  /** Another server that was active when this was last read. */
  #other: ActiveServer | null = null
  /** That of the active server whose settings were compared last. */
  #comparedEpoch: number | null = null
  #running: Promise<void> = Promise.resolve()

  constructor(shell: Shell, candidate: PostgresLease | null, label: ActiveLabel | null) {
    this.#shell = shell
    this.#candidate = candidate
    this.#label = label
    this.#failed.promise.catch(() => {})
  }

  /** The present term; null while this server stands by. */
  get acting(): OpenTerm | null {
    return this.#acting
  }

  /** Rejects when this server cannot act although it may. */
  get failed(): Promise<never> {
    return this.#failed.promise
  }

  /** Watches for changes of the role. */
  watch(changed: (acting: OpenTerm | null) => void): void {
    this.#watchers.add(changed)
  }

  /**
   * Resolves once this server acts, or stands by for another one.
   * @throws when it can do neither
   */
  async begin(): Promise<void> {
    if (this.#candidate === null) {
      this.#acting = await openTerm(this.#shell, null, this.#role)
      this.#running = this.#runAlone().catch(error => this.#failed.reject(error))
      return
    }
    this.#shell.front.standsBy(createStandby(this.#shell, this.#role, () => this.#other))
    this.#previousEpoch = (await this.#candidate.active().catch(() => null))?.epoch ?? 0
    const listeners = await this.#shell.listen()
    listeners.answer()
    // Commands find it by its data directory. Where that is shared, they are led to the active one.
    if (!this.#shell.lock.shared) await this.#shell.publishAddress()
    await showRole(this.#label, 'standby')
    const known = Promise.withResolvers<void>()
    const fail = (error: unknown) => {
      known.reject(error)
      this.#failed.reject(error)
    }
    this.#running = this.#run(this.#candidate, known.resolve).catch(fail)
    void this.#look(this.#candidate, known.resolve).catch(fail)
    await known.promise
  }

  /**
   * Stops in order: whoever stands by acts as soon as this has ended.
   * @param hurry ends the draining of workers at once
   */
  async stop(hurry: AbortSignal): Promise<void> {
    this.#stopping.abort(new AppError('unavailable', 'the server stops'))
    await this.#running
    const { config } = this.#shell
    if (this.#candidate === null || isBoundToMachine(config)) await this.#acting?.drain(hurry)
    else await this.#acting?.handOver(hurry)
    await this.#shell.endListeners(GRACE_MS)
    await this.#acting?.close()
    await this.#lease?.close()
    await this.#candidate?.close()
  }

  /** After a failed begin: lets go of the lease for the next server. */
  async abandon(): Promise<void> {
    this.#stopping.abort(new AppError('unavailable', 'the server could not start'))
    await this.#running
    await this.#lease?.close()
  }

  /** On the embedded database no other server can act: one term follows the other. */
  async #runAlone(): Promise<void> {
    const { signal } = this.#stopping
    for (;;) {
      await Promise.race([ended(signal), this.#renewal.promise])
      if (signal.aborted || this.#acting === null) return
      const term = this.#acting
      this.#shell.front.standsBy(createStandby(this.#shell, this.#role, () => null))
      await this.#leave(term)
      this.#acting = await openTerm(this.#shell, null, this.#role)
    }
  }

  /**
   * Ends a term in order, for another one of this server: workers go on, and calls in between are answered with 503
   * or wait in the relay.
   */
  async #leave(term: OpenTerm): Promise<void> {
    this.#renewal = Promise.withResolvers<void>()
    // Whoever asked for it gets an answer first.
    await pause(ANSWER_MS)
    await term.handOver(this.#stopping.signal)
    await term.close()
  }

  async #run(candidate: PostgresLease, known: () => void): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const lease = await candidate.lead(signal).catch(unless(signal))
      if (lease === null) return
      const deposed = this.#watchOver(lease)
      let term = await this.#beginTerm(lease, deposed.signal)
      if (term !== null) known()
      while (term !== null && !deposed.signal.aborted && !signal.aborted) {
        await Promise.race([ended(deposed.signal), ended(signal), this.#renewal.promise])
        if (deposed.signal.aborted || signal.aborted) break
        await this.#leave(term)
        term = await this.#beginTerm(lease, deposed.signal)
      }
      if (term === null) continue
      if (!deposed.signal.aborted) return
      await this.#findOther(candidate)
      await this.#endTerm(term, lease)
    }
  }

  /** @returns null when it could not begin now, and the lease is given back */
  async #beginTerm(lease: FencedTerm, deposed: AbortSignal): Promise<OpenTerm | null> {
    const { log, emit } = this.#shell
    try {
      const term = await openTerm(this.#shell, lease, this.#role)
      this.#lease = lease
      this.#other = null
      this.#become(term)
      emit('leader.changed', { now: 'active', problem: null, epoch: lease.epoch })
      await showRole(this.#label, 'active')
      return term
    } catch (error) {
      await lease.close(true)
      const { code, message } = toAppError(error)
      if (error instanceof StartError || (code !== 'unavailable' && !deposed.aborted)) throw error
      log.warn({ epoch: lease.epoch, problem: message }, 'term.not_begun')
      await pause(AGAIN_MS, null, { signal: this.#stopping.signal }).catch(() => {})
      return null
    }
  }

  /** Ends the work of this server, but no worker: they are another server's now. */
  async #endTerm(term: OpenTerm, lease: FencedTerm): Promise<void> {
    const { log, emit } = this.#shell
    this.#become(null)
    await term.abandon()
    await showRole(this.#label, 'standby')
    emit('leader.changed', { now: 'standby', problem: null, epoch: null })
    const released = term.close().catch((error: unknown) => log.error({ problem: String(error) }, 'term.not_released'))
    await Promise.race([released, pause(RELEASE_MS)])
    await lease.close()
    this.#lease = null
  }

  #become(acting: OpenTerm | null): void {
    this.#acting = acting
    for (const changed of this.#watchers) changed(acting)
  }

  /** Emits each change. @returns aborts when it is over for good */
  #watchOver(lease: FencedTerm): AbortController {
    const deposed = new AbortController()
    lease.watch((state, problem) => {
      this.#shell.emit('leader.changed', { now: state, problem, epoch: lease.epoch })
      if (state === 'deposed') deposed.abort()
    })
    return deposed
  }

  /** Knows who is active, as long as this server is not. */
  async #look(candidate: PostgresLease, known: () => void): Promise<void> {
    const { signal } = this.#stopping
    let hasReported = false
    while (!signal.aborted) {
      // First of all, since the lease of a server that was killed in the same data directory is this one's at once.
      await pause(LOOK_MS, null, { signal }).catch(() => {})
      if (this.#acting === null) {
        await this.#findOther(candidate)
        if (this.#other !== null && !hasReported && this.#acting === null) {
          hasReported = true
          requireApiKey(this.#shell)
          keepGivenKey(this.#shell)
          this.#shell.emit('leader.changed', { now: 'standby', problem: null, epoch: this.#other.epoch })
          known()
        }
        this.#compareSettings()
      }
    }
  }

  /** Says once for each term of the active server which settings a takeover by this one would change. */
  #compareSettings(): void {
    const other = this.#other
    if (other === null || other.agreement === null || other.epoch === this.#comparedEpoch) return
    this.#comparedEpoch = other.epoch
    const { config, log } = this.#shell
    const settings = new OwnAgreement(config).differsFrom(other.agreement)
    if (settings.length > 0) log.warn({ settings, consequence: OTHER_SETTINGS }, 'standby.settings_differ')
  }

  async #findOther(candidate: PostgresLease): Promise<void> {
    const server = await candidate.active().catch(() => null)
    this.#other = server !== null && server.leaseLeftMs > 0 && !this.#isSelf(server) ? server : null
  }

  /** By the epoch, which no clock moves: another process may have had the same id before. */
  #isSelf({ pid, host, epoch }: ActiveServer): boolean {
    return pid === process.pid && host === hostname() && epoch > this.#previousEpoch
  }

  async #status(): Promise<ServerStatus> {
    const { config } = this.#shell
    const { managementUrl: url } = listenerAddresses(await this.#shell.listen())
    const own = { pid: process.pid, host: hostname(), url }
    const acts = this.#acting !== null
    const met = this.#shell.storeDamage.met()
    const file = config.databaseUrl === null ? ` at ${join(config.dataDir, DATABASE_NAME)}` : ''
    const damage = met === null ? null : `${damageText(met)}${file}; ${DAMAGE_ACTION}`
    const role = !acts ? 'standby' : this.#lease === null || this.#lease.isLeader() ? 'active' : 'unsure'
    const about = { role, version: packageVersion(), ...own, database: storeName(config), damage } as const
    if (this.#candidate === null) {
      const since = new Date(this.#sinceMs).toISOString()
      return { ...about, active: { epoch: null, ...own, since, leaseLeftMs: null } }
    }
    const server = await this.#candidate.active()
    if (server === null) return { ...about, active: null }
    const { epoch, pid, host, leaseLeftMs } = server
    const since = new Date(server.sinceMs).toISOString()
    return { ...about, active: { epoch, pid, host, url: server.url, since, leaseLeftMs: Math.round(leaseLeftMs) } }
  }
}

/** A key that is made at a takeover would replace that of the server before. */
function requireApiKey({ apiKeyFile, config }: Shell): void {
  if (readApiKey(apiKeyFile, config.apiKey) !== null) return
  throw new StartError(
    `another server acts on the database, and one that stands by needs the same API key: give it in RUNYARD_API_KEY, or in ${apiKeyFile}`,
  )
}

const OTHER_SETTINGS = 'they differ from those of the active server, and apply from a takeover by this server on'

/** Commands read the key there. That of another server in this folder stays, until this one acts. */
function keepGivenKey({ apiKeyFile, config: { apiKey } }: Shell): void {
  if (apiKey !== null && !existsSync(apiKeyFile)) keepApiKey(apiKeyFile, apiKey)
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** A wait that was ended on purpose has no result, and is no failure. */
function unless(signal: AbortSignal): (error: unknown) => null {
  return error => {
    if (signal.aborted) return null
    throw error
  }
}

/** The answers while another server is active. @param active that server, as far as it is known now */
function createStandby(shell: Shell, { status }: ServerControl, active: () => ActiveServer | null): Standby {
  const { config, apiKeyFile, metrics } = shell
  return new Standby({
    active() {
      const server = active()
      return {
        open: parseUrl(server?.openUrl),
        management: parseUrl(server?.url),
        workers: parseUrl(server?.workersUrl),
      }
    },
    forwards: config.forwardToActive,
    trusts: addressList(config.trustedProxies),
    tls: shell.certificate,
    keys() {
      const { apiKey, previousApiKey, metricsKey } = config
      return [readApiKey(apiKeyFile, apiKey), previousApiKey, metricsKey].filter(key => key !== null)
    },
    status: async () => JSON.stringify(await status()),
    metrics: config.metricsPublic ? () => metrics.expose([], () => NO_LOAD) : null,
  })
}

const NO_LOAD = { requests: 0, sockets: 0, waiting: 0, busyWorkers: 0 }

function parseUrl(text: string | null | undefined): URL | null {
  return text === null || text === undefined ? null : URL.parse(text)
}
