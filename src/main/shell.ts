/** The parts of a run of the server that it has from its start to its end, in all of its terms. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config } from '../config/config.ts'
import type { TracingConfig } from '../config/tracing.ts'
import { AppError } from '../core/errors.ts'
import { builtFolder, packageFile, packageVersion } from '../disk/package-files.ts'
import { type Emit, EventStream } from '../events.ts'
import type { Mailer } from '../ports/mailer.ts'
import type { Ports } from '../ports/ports.ts'
import type { DataDirLock, ServerInfo } from '../store/data-dir-lock.ts'
import { BodyThreads } from '../system/bodies/body-threads.ts'
import type { CertificateInUse } from '../system/certificates/certificate-in-use.ts'
import { systemClock } from '../system/clock.ts'
import { type BuiltConsoleFile, type ConsoleSource, createConsoleFiles } from '../system/console-files.ts'
import { createHealthProbes } from '../system/http/health-probe.ts'
import { createImageRegistries } from '../system/http/image-registries.ts'
import { createOutbound } from '../system/http/outbound.ts'
import { createSmtpMailer } from '../system/mail/smtp-mailer.ts'
import { createLog, type Log, logEvents } from '../system/observing/log.ts'
import { type CountingMetrics, createMetrics } from '../system/observing/metrics.ts'
import { loadSpanExporter, SPAN_EXPORTERS, type SpanExporter } from '../system/observing/span-exporter.ts'
import { SpanQueue } from '../system/observing/span-queue.ts'
import { StoreDamageWatch, StoreRoomWatch } from '../system/observing/store-watches.ts'
import { Tracer } from '../system/observing/tracer.ts'
import { systemRandom } from '../system/random.ts'
import type { FoldersToServe } from './folders/folders.ts'
import { Front } from './listening/front.ts'
import { bind, type Listeners, listenerAddresses } from './listening/listeners.ts'

/** The parts of a {@link Shell} that are opened before it. */
interface ShellParts {
  readonly config: Config
  readonly log: Log
  readonly lock: DataDirLock
  readonly folders: FoldersToServe
  readonly certificate: CertificateInUse | null
  /** Null for no traces. */
  readonly tracing: LoadedTracing | null
  /** Called once, before it listens. */
  readonly beforeListening: () => void
}

/** The parts of a run that all of its terms share. */
export class Shell {
  readonly config: Config
  readonly log: Log
  readonly lock: DataDirLock
  readonly folders: FoldersToServe
  /** Null where the server speaks plain HTTP. */
  readonly certificate: CertificateInUse | null
  readonly front = new Front()
  readonly metrics: CountingMetrics
  /** One stream of events for all its readers. */
  readonly emit: Emit
  /** Damage of the database that this server has met. */
  readonly storeDamage: StoreDamageWatch
  /** A full disk of the database. */
  readonly storeRoom: StoreRoomWatch
  /** Threads for large bodies: those of clients and, as many bytes again, those of workers. */
  readonly bodies: BodyThreads
  /** Ports that need nothing of a term. */
  readonly ports: Pick<
    Ports,
    'clock' | 'random' | 'outbound' | 'mailer' | 'registries' | 'probes' | 'consoleFiles' | 'tracing'
  >
  /** Null when no traces are recorded. */
  readonly traces: Traces | null
  readonly #beforeListening
  #listeners: Promise<Listeners> | null = null
  #unfollow: () => void = () => {}

  constructor({ config, log, lock, folders, certificate, tracing, beforeListening }: ShellParts) {
    this.config = config
    this.log = log
    this.lock = lock
    this.folders = folders
    this.certificate = certificate
    this.#beforeListening = beforeListening
    this.metrics = createMetrics({ clock: systemClock, ofProcess: true })
    this.traces = tracing === null ? null : openTraces(tracing, this.metrics, log)
    const traced = this.traces === null ? [] : [this.traces.tracer.emit]
    this.emit = new EventStream([logEvents(log), this.metrics.emit, ...traced]).emit
    this.storeDamage = new StoreDamageWatch(this.emit, () => systemClock.now())
    this.storeRoom = new StoreRoomWatch(this.emit, systemClock)
    this.bodies = new BodyThreads({ waitingBytes: 2 * config.bodyBytes })
    this.ports = {
      clock: systemClock,
      random: systemRandom,
      outbound: createOutbound({ publicOnly: config.webhookPublicOnly }),
      mailer: mailerFrom(config.mail),
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

  /** Binds the addresses, at the first call: connections wait until {@link Listeners.answer}. @throws StartError */
  listen(): Promise<Listeners> {
    if (this.#listeners === null) {
      this.#beforeListening()
      this.#listeners = bind(this.front, this.config, this.log, this.certificate)
    }
    return this.#listeners
  }

  /** Publishes the address of this server for commands on this data directory. */
  async publishAddress(): Promise<void> {
    const { managementUrl } = listenerAddresses(await this.listen())
    const info = (): ServerInfo => {
      const cert = this.certificate?.current.cert
      return {
        pid: process.pid,
        url: managementUrl,
        ...(cert === undefined ? {} : { certificate: firstCertificate(cert) }),
      }
    }
    this.lock.publish(info())
    this.#unfollow()
    this.#unfollow = this.certificate?.watch(() => this.lock.update(info())) ?? (() => {})
  }

  /** Ends the listeners, if there are any. @param graceMs milliseconds in which open connections may end */
  async endListeners(graceMs: number): Promise<void> {
    await (await this.#listeners?.catch(() => null))?.close(graceMs)
  }
}

function mailerFrom({ smtpUrl, smtpFrom }: Config['mail']): Mailer | undefined {
  return smtpUrl === null || smtpFrom === null ? undefined : createSmtpMailer(smtpUrl, smtpFrom)
}

/** The log of a server with these settings. */
export function serverLog({ logLevel, json }: Config): Log {
  return createLog(logLevel, !json && process.stderr.isTTY === true)
}

/** The certificate itself, without its chain. */
function firstCertificate(pem: string): string {
  const end = '-----END CERTIFICATE-----'
  return `${pem.slice(pem.indexOf('-----BEGIN CERTIFICATE-----'), pem.indexOf(end))}${end}\n`
}

/** The settings, and the exporter that was loaded for them. */
interface LoadedTracing {
  readonly config: TracingConfig
  readonly exporter: SpanExporter
}

/** The recorder of traces. */
export interface Traces {
  readonly tracer: Tracer
  /** Sends the spans that wait, for some seconds at most. */
  close(): Promise<void>
}

/** Maximum time in which spans are sent when the server stops. */
const FLUSH_MS = 3_000

/** Loads the exporter of traces. Null if traces are off, or if its package is missing, which the log reports. */
export async function loadTracing(config: TracingConfig | null, log: Log): Promise<LoadedTracing | null> {
  if (config === null) return null
  const { protocol, serviceName, resource } = config
  const exporter = await loadSpanExporter(protocol, { serviceName, resource, version: packageVersion() })
  if (exporter !== null) return { config, exporter }
  const install = `npm install --global ${SPAN_EXPORTERS[protocol]}`
  log.warn({ install }, 'no traces are sent, because the package that sends them is not installed')
  return null
}

/** Begins to record traces. */
function openTraces({ config, exporter }: LoadedTracing, metrics: CountingMetrics, log: Log): Traces {
  const queue = new SpanQueue(systemClock, config.limits, exporter.send, {
    sent: count => metrics.spansPassed('sent', count),
    dropped: count => metrics.spansPassed('dropped', count),
    failing: (problem, dropped) => log.warn({ problem, dropped }, 'spans of traces were dropped'),
  })
  const ports = { clock: systemClock, random: systemRandom }
  const tracer = new Tracer(ports, config.sampling, spans => queue.add(spans))
  return {
    tracer,
    async close() {
      await queue.close(FLUSH_MS)
      // It may wait for a call that goes on.
      void exporter.close().catch(() => {})
    },
  }
}

/** The source of the console for the program that runs. */
function consoleSource(): ConsoleSource {
  const folder = builtFolder('console')
  return folder === null ? new BundledConsole() : { hasChanged: () => false, read: async () => filesIn(folder) }
}

function filesIn(folder: string): BuiltConsoleFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .map(file => ({ path: relative(folder, file), contents: readFileSync(file) }))
}

interface Bundler {
  buildConsole(): Promise<{ readonly files: readonly BuiltConsoleFile[]; readonly inputs: readonly string[] }>
}

/**
 * Bundles the sources, again after a change, so that whoever works on the console sees it at the next load of the
 * page.
 */
class BundledConsole implements ConsoleSource {
  #inputs: readonly string[] = []
  #readMs = 0

  hasChanged(): boolean {
    return this.#inputs.some(file => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > this.#readMs)
  }

  async read(): Promise<readonly BuiltConsoleFile[]> {
    const readMs = Date.now()
    const { files, inputs } = await bundled()
    this.#inputs = inputs.map(input => packageFile(input))
    this.#readMs = readMs
    return files
  }
}

/** @throws AppError `unavailable` when the sources cannot be bundled; its cause is for the log */
async function bundled(): ReturnType<Bundler['buildConsole']> {
  try {
    // The bundler is a development dependency, and no part of a built program.
    const { buildConsole } = (await import(pathToFileURL(packageFile('scripts/console.ts')).href)) as Bundler
    return await buildConsole()
  } catch (cause) {
    throw new AppError('unavailable', 'the console cannot be bundled from its sources; the log says why', { cause })
  }
}
