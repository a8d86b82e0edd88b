/** One run of the server: settings become ports, ports an application, the application listens until a signal comes. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Addresses, balancedUrl } from '../api/addresses.ts'
import { linkTo } from '../api/console/surface.ts'
import { type App, type AppConfig, createApp } from '../app.ts'
import type { Config } from '../config/config.ts'
import { givenConsoleUrl } from '../config/console.ts'
import { toAppError } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import { DEFAULT_OWNER } from '../core/ids.ts'
import { ensureFolder } from '../disk/durable-file.ts'
import { packageVersion } from '../disk/package-files.ts'
import type { Emit } from '../events.ts'
import type { Driver } from '../ports/driver.ts'
import type { Notifier } from '../ports/notifier.ts'
import type { Ports } from '../ports/ports.ts'
import type { VolumeFolders } from '../ports/volume-folders.ts'
import type { RelaySupervisor } from '../relay/relay-supervisor.ts'
import type { ContainerAddress } from '../server/container-address.ts'
import { isLoopback, originOf } from '../server/listener.ts'
import type { DataDirLock } from '../store/data-dir-lock.ts'
import { BodyThreads } from '../system/bodies/body-threads.ts'
import { createSpillFiles } from '../system/bodies/spill-files.ts'
import { systemClock } from '../system/clock.ts'
import { createConsoleFiles } from '../system/console-files.ts'
import { singleLeader } from '../system/coordination/leader.ts'
import { fencedDriver } from '../system/coordination/leader-fence.ts'
import { createNotifier } from '../system/coordination/notifier.ts'
import { createPostgresNotifier } from '../system/coordination/postgres-notifier.ts'
import type { PostgresTerm } from '../system/coordination/postgres-term.ts'
import { createMachine, describeGpus } from '../system/hardware/machine.ts'
import { createHealthProbes } from '../system/http/health-probe.ts'
import { createOutbound } from '../system/http/outbound.ts'
import { keepApiKey } from '../system/keys/api-key.ts'
import { createModelCache, type DiskModelCache } from '../system/models/model-cache.ts'
import { instrumentedStore } from '../system/observing/instrumented-store.ts'
import { createLog, logEvents } from '../system/observing/log.ts'
import { createMetrics } from '../system/observing/metrics.ts'
import { systemRandom } from '../system/random.ts'
import { createVolumeFolders } from '../system/volume-folders.ts'
import { createWorkerLogs } from '../system/worker-logs/worker-logs.ts'
import { consoleUrlFor, isReadableOnItsWay } from './console.ts'
import { consoleSource } from './console-source.ts'
import { prepareDocuments } from './documents.ts'
import { driverFor, modelRoot } from './drivers.ts'
import { setUpFolder } from './folder-setup.ts'
import { foldersIn, type ServedFolder, serveFolders, watchFolders } from './folders.ts'
import { createHostInspection } from './host-inspection.ts'
import {
  bind,
  connected,
  connectionTo,
  type Listeners,
  openContainerAddress,
  openRelay,
  StartError,
  tryPorts,
} from './listeners.ts'
import { RelayTokens } from './relay-tokens.ts'
import { openSeals } from './seals.ts'
import { acquire, lead, openStore } from './store.ts'

export type { ServedFolder } from './folders.ts'
export { StartError } from './listeners.ts'

/** A server that answers. */
export interface RunningServer {
  /** Of the job operations and load-balancing endpoints. */
  readonly url: string
  /** Of GraphQL, REST and what commands use; the same unless --admin-port is given. */
  readonly managementUrl: string
  /** Where a load-balancing endpoint is reached. */
  addressOf(endpoint: { readonly id: EndpointId }): string
  readonly apiKeyFile: string
  /** Where the console is; null for none. */
  readonly consoleUrl: string | null
  /** Makes an address of the console that signs in once, as the operator; null where there is no console. */
  consoleLink(): Promise<string | null>
  readonly folders: readonly ServedFolder[]
  /** What GPUs there are and what that means, as a sentence for people. */
  readonly hardware: string
  /** How process workers are kept apart, as a sentence for people. */
  readonly isolation: string
  /** Stops as decision stop says; a second call hurries. Resolves when everything is over. */
  stop(): Promise<void>
  /**
   * Resolves with the reason once another server has taken over the database. This one has let go of everything then, and its workers
   * go on; its process is to end.
   */
  readonly deposed: Promise<string>
}

/**
 * Starts the server.
 * @param sampleFolder where the sample handler lies
 * @throws StartError when it cannot start; everything that was opened until then is released
 */
export async function startServer(config: Config, sampleFolder: string): Promise<RunningServer> {
  const opened = new AsyncDisposableStack()
  try {
    return await openServer(config, sampleFolder, opened)
  } catch (error) {
    // Why it cannot start is what people want to know, not what went wrong while it was given up.
    await Promise.allSettled([opened.disposeAsync()])
    throw error instanceof StartError ? error : new StartError(toAppError(error).message, { cause: error })
  }
}

/** The steps of a start, each of which needs those before it. @param opened releases in reverse what the steps have opened */
async function openServer(config: Config, sampleFolder: string, opened: AsyncDisposableStack): Promise<RunningServer> {
  const log = createLog(config.logLevel, !config.json && process.stderr.isTTY === true)
  const readers = readersOf(log)
  const { relayTokens, emit } = readers
  const apiKeyFile = join(config.dataDir, 'api-key')
  const late = new LateParts()

  // A server that runs on this data directory has the port: that it runs is what people want to know.
  const isFresh = !existsSync(config.dataDir)
  if (isFresh) await tryPorts(config)
  const lock = acquire(config.dataDir)
  opened.defer(() => lock.release())
  if (!isFresh) await tryPorts(config)
  const led = await lead(config)
  opened.defer(() => led?.close())
  const leader = led?.term ?? null
  const deposed = whenDeposed(leader, emit)

  const notifier = createNotifications(config, log)
  opened.defer(() => notifier.close?.())
  const logs = createWorkerLogs({ folder: folderIn(config.dataDir, 'logs'), clock: systemClock })
  const folders = foldersIn(config, sampleFolder)
  for (const folder of folders.inProcesses) await setUpFolder(resolve(folder), config.folderSetup, log)
  const connection = connectionTo(() => late.containers)
  const driver = driverFor(config, folders.inProcesses, { notifier, logs, log, connection })
  // It starts while the store is opened.
  const relayStart = config.directWorkers ? Promise.resolve(null) : openRelay(config, log)
  opened.defer(async () => (await relayStart)?.leave())
  const { store: plain, readyForLarge } = await openMeasured(config, leader, readers.metrics)
  opened.defer(() => plain.close())
  const { store, vault } = await openSeals(plain, config, log)

  const { dataDir } = config
  const machine = createMachine({ clock: systemClock, notifier, emit, env: process.env, dataDir })
  const models = modelsIn(config)
  opened.defer(() => models.close())
  const ports: Ports = {
    ...systemPorts(config, readyForLarge),
    vault,
    store,
    ...fenced(leader, driver),
    notifier,
    logs,
    ...storageIn(config, log),
    machine,
    models,
    emit,
    metrics: readers.metrics,
  }
  const inspection = createHostInspection(config, driver.processIsolation)
  const app = createApp(ports, { ...appConfigOf(config), inspection })
  const apiKey = await ownKey(app, apiKeyFile, config)
  const served = await serveFolders(app, folders, log)

  const containers = openContainerAddress(app, config, log, () => late.relay)
  late.containers = containers
  const listeners = await bind(app, config, log, address => containers?.isContainer(address) === true)
  opened.defer(() => listeners.close(GRACE_MS))
  opened.defer(() => containers?.close(GRACE_MS))
  // Before the network of the containers can go.
  opened.defer(() => driver.close())
  const hardware = describeGpus(machine, systemClock, config.placing)
  const { url, managementUrl, direct } = addressesOf(listeners, config)
  const relay = await connected(await relayStart, direct, { app, store: ports.store, tokens: relayTokens, log })
  late.relay = relay
  await listeners.listenForWorkers(relay)
  await containers?.resume()

  opened.defer(() => app.abandon())
  const origins = originsOf(config, url, managementUrl)
  await app.start({
    ...(containers === null ? {} : { containers }),
    ...origins,
    otherWorkerUrls: [direct],
    get workerUrl() {
      return relay?.url ?? direct
    },
  })
  if (config.folderWatch) opened.defer(watchFolders(app, served, folders, log))
  tellOthers(lock, leader, managementUrl)
  prepareDocuments(app)
  await warnOfExposure(app, config, log)
  const stop = async (hurry: AbortSignal) => {
    await app.stop(hurry)
    relayTokens.end()
    await relay?.end()
    await opened.disposeAsync()
  }
  return {
    url,
    managementUrl,
    apiKeyFile,
    ...consoleOf(app, origins, apiKey),
    addressOf: ({ id }) => balancedUrl({ publicUrl: url, queueUrl: url }, id),
    folders: served,
    hardware: await hardware,
    isolation: driver.processIsolation,
    stop: onceOrHurried(stop),
    deposed: deposed.then(why => letGo(app, listeners).then(() => why)),
  }
}

/** The key of the server itself, made valid. */
async function ownKey({ services }: App, file: string, config: Config): Promise<string> {
  const key = keepApiKey(file, config.apiKey)
  await services.access.ensureKey(DEFAULT_OWNER, 'main', key)
  return key
}

/** Where the console is, and how its operator gets in. */
function consoleOf(
  { services }: App,
  { consoleUrl = null }: Addresses,
  apiKey: string,
): Pick<RunningServer, 'consoleUrl' | 'consoleLink'> {
  const consoleLink = async () => {
    if (consoleUrl === null) return null
    const { code } = await services.sessions.link(await services.access.authenticate(apiKey))
    return linkTo(consoleUrl, code)
  }
  return { consoleUrl, consoleLink }
}

/** How long open connections may take to end when the server stops. */
const GRACE_MS = 1_000

/** What earlier parts ask for, and what exists only once the application does: null until then. */
class LateParts {
  containers: ContainerAddress | null = null
  relay: RelaySupervisor | null = null
}

/** The first call begins, further ones hurry; all wait for the same end. */
function onceOrHurried(stop: (hurry: AbortSignal) => Promise<void>): () => Promise<void> {
  const hurry = new AbortController()
  let stopping: Promise<void> | null = null
  return () => {
    if (stopping !== null) hurry.abort()
    stopping ??= stop(hurry.signal)
    return stopping
  }
}

/** The store, whose calls are measured. */
async function openMeasured(
  config: Config,
  term: PostgresTerm | null,
  metrics: ReturnType<typeof readersOf>['metrics'],
) {
  const { store, readyForLarge } = await openStore(config, term?.fence ?? null)
  return { store: instrumentedStore(store, systemClock, metrics.storeCalled.bind(metrics)), readyForLarge }
}

/** Where people and managers reach the listeners, and where this machine reaches them without a relay. */
function addressesOf({ open, admin }: Listeners, { host }: Config) {
  return { url: open.url, managementUrl: admin?.url ?? open.url, direct: originOf(host, open.port) }
}

/** The error for a data directory or database that another server has: it names that server. */
function tellOthers(lock: DataDirLock, leader: PostgresTerm | null, url: string): void {
  lock.publish({ pid: process.pid, url })
  leader?.reachedAt(url)
}

/** What answers call this server. @param url where it listens @param managementUrl where it does for management */
function originsOf(config: Config, url: string, managementUrl: string): Addresses {
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

/** Warnings about who can reach the server. */
async function warnOfExposure({ services }: App, config: Config, log: Log): Promise<void> {
  const { host, adminHost, adminPort } = config
  const consoleUrl = givenConsoleUrl(config)
  if (consoleUrl !== null && isReadableOnItsWay(consoleUrl))
    log.warn({ consoleUrl }, 'keys that are typed into the console can be read on their way; put TLS in front of it')
  if (adminPort !== null && !isLoopback(adminHost))
    log.warn({ host: adminHost }, 'management can be reached from outside; put TLS in front of it')
  if (!isLoopback(host)) log.warn({ host }, 'the server can be reached from outside; put TLS in front of it')
  const reason = await services.sharing.problem()
  if (reason !== null) {
    const what =
      'there are several accounts, and workers of one can reach what is not its own; see --accept-shared-host'
    log.warn({ reason }, what)
  }
}

function appConfigOf(config: Config): AppConfig {
  const { rateWindows, limitJobs, drainTimeoutMs, metricsPublic, bodyBytes, placing, startAware, prices } = config
  const admission = { open: config.lbPublic, trustedProxies: config.trustedProxies }
  const { freezing, lbBodyBytes: balancedBodyBytes } = config
  const chosen = { placing, freezing, startAware, prices: prices ?? undefined, admission, balancedBodyBytes }
  const management = { rateWindows, limitJobs, deleteRunningEndpoints: config.deleteRunningEndpoints }
  const { acceptSharedHost, webhookPrivate, corsOrigins } = config
  const sharing = { acceptSharedHost, webhookPrivate }
  const { accountLimits, jobRecords } = config
  const limits = { bodyBytes, accountLimits, jobRecords }
  return {
    ...management,
    version: packageVersion(),
    consoleUrl: givenConsoleUrl(config),
    drainTimeoutMs,
    metricsPublic,
    corsOrigins,
    sharing,
    ...limits,
    ...chosen,
  }
}

/** The readers of the event stream: log, metrics and the listeners of the library. */
function readersOf(log: Log) {
  const metrics = createMetrics({ clock: systemClock, ofProcess: true })
  const relayTokens = new RelayTokens(log)
  return { metrics, relayTokens, emit: toAll([logEvents(log), metrics.emit, relayTokens.emit]) }
}

/** One stream of events for all its readers. */
function toAll(readers: readonly Emit[]): Emit {
  return (name, fields) => {
    for (const read of readers) read(name, fields)
  }
}

/** What the application gets of a driver that only the leader may use in full. PostgreSQL itself refuses the changes of others. */
function fenced(leader: PostgresTerm | null, driver: Driver): Pick<Ports, 'leader' | 'driver'> {
  return leader === null ? { leader: singleLeader, driver } : { leader, driver: fencedDriver(driver, leader) }
}

/** Resolves with the reason, if ever. */
function whenDeposed(leader: PostgresTerm | null, emit: Emit): Promise<string> {
  return new Promise(resolve => {
    leader?.watch((now, problem) => {
      emit('leader.changed', { now, problem })
      if (now === 'deposed') resolve(problem ?? 'another server leads')
    })
  })
}

const LET_GO_MS = 2_000

/** Ends whatever this server does, and no worker: they may be another server's now. */
async function letGo(app: App, listeners: Listeners): Promise<void> {
  const late = new Promise(resolve => setTimeout(resolve, LET_GO_MS))
  await Promise.race([Promise.allSettled([app.abandon(), listeners.close(0)]), late])
}

type Log = ReturnType<typeof createLog>

/** Notifications, and what ends them where they have a connection. */
type Notifications = Notifier & { close?(): Promise<void> }

function createNotifications(config: Config, log: Log): Notifications {
  const onError = (error: unknown) => log.error({ problem: String(error) }, 'notifier.failed')
  const local = createNotifier({ onError })
  return config.databaseUrl === null ? local : createPostgresNotifier({ url: config.databaseUrl, local, onError })
}

/** What is kept in folders of the data directory beside the store. */
/** What needs nothing that the steps of a start open. */
function systemPorts({ webhookPublicOnly: publicOnly }: Config, readyForLarge: () => Promise<void>) {
  return {
    clock: systemClock,
    random: systemRandom,
    bodies: new BodyThreads({ ready: readyForLarge }),
    outbound: createOutbound({ publicOnly }),
    probes: createHealthProbes(),
    consoleFiles: createConsoleFiles(consoleSource()),
  }
}

function storageIn({ dataDir, bodyDiskBytes: maxBytes }: Config, log: Log): Pick<Ports, 'volumes' | 'spill'> {
  const spill = createSpillFiles({ folder: join(dataDir, 'bodies'), maxBytes })
  return { volumes: volumesIn(dataDir, log), spill }
}

function volumesIn(dataDir: string, log: ReturnType<typeof createLog>): VolumeFolders {
  const folders = createVolumeFolders({
    root: join(dataDir, 'volumes'),
    unique: () => randomBytes(8).toString('hex'),
    onError: error => log.error({ problem: String(error) }, 'volume.not_emptied'),
  })
  void folders.sweep()
  return folders
}

function modelsIn(config: Config): DiskModelCache {
  const { modelCacheGb, modelHub } = config
  return createModelCache({
    root: modelRoot(config),
    hub: modelHub,
    limitBytes: modelCacheGb === null ? null : modelCacheGb * 1e9,
    clock: systemClock,
    env: process.env,
  })
}

function folderIn(dataDir: string, name: string): string {
  const folder = join(dataDir, name)
  ensureFolder(folder)
  return folder
}
