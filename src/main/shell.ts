/** What a run of the server has from its start to its end, whichever server is active meanwhile. */
import { join } from 'node:path'
import type { Addresses } from '../api/addresses.ts'
import type { Config } from '../config/config.ts'
import type { ServerStatus } from '../core/observing/server-status.ts'
import type { Emit } from '../events.ts'
import type { Ports } from '../ports/ports.ts'
import type { DataDirLock, ServerInfo } from '../store/data-dir-lock.ts'
import { BodyThreads } from '../system/bodies/body-threads.ts'
import type { CertificateInUse } from '../system/certificates/certificate-in-use.ts'
import { systemClock } from '../system/clock.ts'
import { createConsoleFiles } from '../system/console-files.ts'
import { createHealthProbes } from '../system/http/health-probe.ts'
import { createImageRegistries } from '../system/http/image-registries.ts'
import { createOutbound } from '../system/http/outbound.ts'
import { createLog, type Log, logEvents } from '../system/observing/log.ts'
import { type CountingMetrics, createMetrics } from '../system/observing/metrics.ts'
import { StoreDamageWatch } from '../system/observing/store-damage-watch.ts'
import { StoreRoomWatch } from '../system/observing/store-room-watch.ts'
import { systemRandom } from '../system/random.ts'
import { consoleSource } from './console-source.ts'
import type { FoldersToServe } from './folders/folders.ts'
import { consoleUrlFor } from './listening/console.ts'
import { Front } from './listening/front.ts'
import { bind, type Listeners } from './listening/listeners.ts'
import { RelayTokens } from './listening/relay-tokens.ts'
import { type LoadedTracing, openTraces, type Traces } from './tracing.ts'

/** What terms share. */
export class Shell {
  readonly config: Config
  readonly log: Log
  readonly lock: DataDirLock
  readonly folders: FoldersToServe
  /** Null where the server speaks plain HTTP. */
  readonly certificate: CertificateInUse | null
  readonly front = new Front()
  readonly metrics: CountingMetrics
  readonly relayTokens: RelayTokens
  /** One stream of events for all its readers. */
  readonly emit: Emit
  /** Damage of the database that this server has met. */
  readonly storeDamage: StoreDamageWatch
  /** Whether its disk is full. */
  readonly storeRoom: StoreRoomWatch
  /** Ports that need nothing of a term. */
  readonly ports: Pick<
    Ports,
    'clock' | 'random' | 'bodies' | 'outbound' | 'registries' | 'probes' | 'consoleFiles' | 'tracing'
  >
  /** Null when no traces are recorded. */
  readonly traces: Traces | null
  /** Is awaited before the first large body is handed on; a term sets it. */
  readyForLarge: () => Promise<void> = async () => {}
  /** Is called before it listens. */
  beforeListening: () => void = () => {}
  /** What this server says of itself and of the active one. */
  status: () => Promise<ServerStatus> = () => Promise.reject(new Error('the server is starting'))
  /** Ends the present term, soon, and begins another one, which takes an accepted time of the machine's clock. */
  renewTerm: () => void = () => {}
  #listeners: Promise<Listeners> | null = null
  #unfollow: () => void = () => {}

  constructor(
    config: Config,
    log: Log,
    lock: DataDirLock,
    folders: FoldersToServe,
    certificate: CertificateInUse | null,
    tracing: LoadedTracing | null,
  ) {
    this.config = config
    this.log = log
    this.lock = lock
    this.folders = folders
    this.certificate = certificate
    this.metrics = createMetrics({ clock: systemClock, ofProcess: true })
    this.relayTokens = new RelayTokens(log)
    this.traces = tracing === null ? null : openTraces(tracing, this.metrics, log)
    const traced = this.traces === null ? [] : [this.traces.tracer.emit]
    this.emit = toAll([logEvents(log), this.metrics.emit, this.relayTokens.emit, ...traced])
    this.storeDamage = new StoreDamageWatch(this.emit, () => systemClock.now())
    this.storeRoom = new StoreRoomWatch(this.emit, systemClock)
    this.ports = {
      clock: systemClock,
      random: systemRandom,
      // Those of clients and, as many bytes again, those of workers.
      bodies: new BodyThreads({ ready: () => this.readyForLarge(), waitingBytes: 2 * config.bodyBytes }),
      outbound: createOutbound({ publicOnly: config.webhookPublicOnly }),
      registries: createImageRegistries({ allowed: config.privateRegistries }),
      probes: createHealthProbes(),
      consoleFiles: createConsoleFiles(consoleSource()),
      tracing: this.traces?.tracer,
    }
  }

  /** The file of the API key of the server. */
  get apiKeyFile(): string {
    return join(this.config.dataDir, 'api-key')
  }

  /** Begins to listen, at the first call. @throws StartError */
  listen(): Promise<Listeners> {
    if (this.#listeners === null) {
      this.beforeListening()
      this.#listeners = bind(this.front, this.config, this.log, this.certificate)
    }
    return this.#listeners
  }

  /** Tells commands on this data directory how to reach this server. */
  async tellCommands(): Promise<void> {
    const { managementUrl } = addressesOf(await this.listen())
    const info = (): ServerInfo => {
      const cert = this.certificate?.current.cert
      return { pid: process.pid, url: managementUrl, ...(cert === undefined ? {} : { certificate: firstOf(cert) }) }
    }
    this.lock.publish(info())
    this.#unfollow()
    this.#unfollow = this.certificate?.watch(() => this.lock.update(info())) ?? (() => {})
  }

  /** Ends the listeners, if there are any. @param graceMs how long open connections may take to end */
  async endListeners(graceMs: number): Promise<void> {
    await (await this.#listeners?.catch(() => null))?.close(graceMs)
  }
}

/** The log of a server with these settings. */
export function logOf({ logLevel, json }: Config): Log {
  return createLog(logLevel, !json && process.stderr.isTTY === true)
}

/** Where people and managers reach the listeners, and where this machine reaches them without a relay. */
export function addressesOf({ open, admin, workers }: Listeners) {
  return { url: open.url, managementUrl: admin?.url ?? open.url, direct: workers.url }
}

/** What answers call this server. @param url where it listens @param managementUrl where it does for management */
export function originsOf(config: Config, url: string, managementUrl: string): Addresses {
  const { publicUrl, queueUrl, lbDomain } = config
  const origin = publicUrl ?? url
  const consoleUrl = consoleUrlFor(config, managementUrl)
  return {
    consoleUrl,
    publicUrl: publicUrl ?? managementUrl,
    queueUrl: queueUrl ?? origin,
    balancedUrl: origin,
    lbDomain,
  }
}

/** Where other servers reach the listeners. @param isBound whether they all run on this machine, because its workers do */
export function advertisedOf({ open, admin, pods, workers }: Listeners, { advertiseHost }: Config, isBound: boolean) {
  const at = (url: string) => {
    if (advertiseHost === null) return url
    const named = new URL(url)
    named.hostname = advertiseHost
    return named.origin
  }
  // One beside HTTPS is on loopback.
  const local = workers !== open && isBound ? workers.url : null
  return { openUrl: at(open.url), url: at(admin?.url ?? open.url), workersUrl: pods === null ? local : at(pods.url) }
}

/** The certificate itself, without its chain. */
function firstOf(pem: string): string {
  const end = '-----END CERTIFICATE-----'
  return `${pem.slice(pem.indexOf('-----BEGIN CERTIFICATE-----'), pem.indexOf(end))}${end}\n`
}

function toAll(readers: readonly Emit[]): Emit {
  return (name, fields) => {
    for (const read of readers) read(name, fields)
  }
}
