/** The time in which a server acts: settings become ports, ports an application, which answers until the term ends. */
import { type Addresses, balancedUrl, browserUrl } from '../api/addresses.ts'
import { workerVariables } from '../api/client-variables.ts'
import { linkTo } from '../api/console/surface.ts'
import type { AppAddresses } from '../app/config.ts'
import { type App, createApp } from '../app.ts'
import type { Config } from '../config/config.ts'
import { FULL_SCOPE, METRICS_SCOPE } from '../core/accounts/permission.ts'
import type { Endpoint } from '../core/endpoints/endpoint.ts'
import { DEFAULT_OWNER, type KeyId } from '../core/ids.ts'
import type { ServerStatus } from '../core/observing/server-status.ts'
import { EventStream } from '../events.ts'
import type { Driver } from '../ports/driver.ts'
import type { Ports } from '../ports/ports.ts'
import { layered } from '../ports/store/operations.ts'
import type { ContainerAddress } from '../server/container-address.ts'
import { resumeTime } from '../services/observing/server-time.ts'
import { systemClock, systemTime } from '../system/clock.ts'
import { fencedDriver, singleLeader } from '../system/coordination/leader.ts'
import type { FencedTerm } from '../system/coordination/lease-term.ts'
import { createGpuMeter } from '../system/gpu/gpu-meter.ts'
import { createGpuSuspender } from '../system/gpu/gpu-suspender.ts'
import { createMachine, describeGpus } from '../system/hardware/machine.ts'
import { keepApiKey, readApiKey } from '../system/keys/api-key.ts'
import { createMeasuring } from '../system/observing/store-watches.ts'
import { createWorkerLogs } from '../system/worker-logs/worker-logs.ts'
import { appConfigFromSettings, createNotifications, folderIn, modelsIn, storageIn } from './app-parts.ts'
import { warnOfBackups } from './commands/backup.ts'
import { openSeals } from './database/seals.ts'
import { isBoundToMachine, openStore, relayTerm } from './database/store.ts'
import { prepareFolders, type ServedFolder, serveFolders, watchFolders } from './folders/folders.ts'
import { warnOfExposure } from './listening/addresses.ts'
import {
  advertisedAddresses,
  type Listeners,
  listenerAddresses,
  openContainerAddress,
  openWorkerSocket,
  serverOrigins,
} from './listening/listeners.ts'
import { openRelay, RelayLink } from './listening/relay.ts'
import { driverFor } from './platform/drivers.ts'
import { createHostInspection } from './platform/host-inspection.ts'
import { podUrls } from './platform/kubernetes.ts'
import { prepareDocuments } from './public-documents.ts'
import type { Shell } from './shell.ts'
import { isReadAlong, viewOnTerminal } from './terminal/terminal-view.ts'

/** The folders and addresses of a server while it is active. */
export interface ActingServer {
  /** The addresses of a load-balancing endpoint for programs and browsers; null for no origin of its own. */
  endpointAddresses(endpoint: Pick<Endpoint, 'id' | 'domain'>): {
    readonly base: string
    readonly browser: string | null
  }
  /** Makes an address of the console that signs in once, as the operator; null where there is no console. */
  consoleLink(): Promise<string | null>
  readonly folders: readonly ServedFolder[]
  /** The GPUs of the machine and their consequence, as a sentence for people. */
  readonly hardware: string
  /** The isolation of process workers, as a sentence for people. */
  readonly isolation: string
}

/** A term that has begun. */
export interface OpenTerm extends ActingServer {
  /**
   * Ends what it does, so that only {@link close} is left: workers finish their jobs and end, and with them the relay.
   * @param hurry ends the draining at once
   */
  drain(hurry: AbortSignal): Promise<void>
  /**
   * The same, but all workers go on for the next server. Takes some seconds at most.
   * @param hurry ends load-balanced requests at once
   */
  handOver(hurry: AbortSignal): Promise<void>
  /**
   * The same at once, because another server acts: everything that is held ends, and the relay gets its calls again
   * from that server.
   */
  abandon(): Promise<void>
  /** Releases everything, the store last. */
  close(): Promise<void>
}

/** Maximum time in which load-balanced requests finish at a hand-over: no server takes new ones in this time. */
const HAND_OVER_MS = 5_000
/** Maximum time in which a term that another server ended stops its work. */
const LET_GO_MS = 2_000
/** Maximum time in which open connections of workers in containers end. */
const GRACE_MS = 1_000

/** The server around a term: its role among those on its database. */
export interface ServerControl {
  /** The state of this server and of the active one. */
  readonly status: () => Promise<ServerStatus>
  /** Ends the present term, soon, and begins another one, which takes an accepted time of the machine's clock. */
  readonly renewTerm: () => void
}

/**
 * Begins a term.
 * @param lease lease of the server during the term; null if no other server can act on its database
 * @throws when it cannot begin; everything that was opened until then is released, and no worker was ended
 */
export async function openTerm(shell: Shell, lease: FencedTerm | null, role: ServerControl): Promise<OpenTerm> {
  const opened = new AsyncDisposableStack()
  try {
    return await beginTerm(shell, lease, role, opened)
  } catch (error) {
    shell.front.end()
    // People need the reason of the failed takeover, not errors of the cleanup.
    await Promise.allSettled([opened.disposeAsync()])
    throw error
  }
}

/**
 * The steps of a begin, each of which needs those before it: the ports, then the addresses, then the application,
 * which knows both.
 * @param opened releases the opened parts in reverse order
 */
async function beginTerm(
  shell: Shell,
  lease: FencedTerm | null,
  role: ServerControl,
  opened: AsyncDisposableStack,
): Promise<OpenTerm> {
  const { config, log, folders, front } = shell
  /** True when the workers go on for another server. */
  let isHandedOver = false
  const notifier = createNotifications(config, log)
  opened.defer(() => notifier.close?.())
  const logs = createWorkerLogs({ folder: folderIn(config.dataDir, 'logs'), clock: systemClock })
  // It starts while the store is opened.
  const relayStart = hasRelay(shell)
    ? openRelay(config, relayTerm(config, lease), log)
    : Promise.resolve(new RelayLink(null, log))
  opened.defer(async () => (isHandedOver ? (await relayStart).release() : (await relayStart).leave()))
  const containers = openContainerAddress(front, config, log, relayStart)
  const parts = { notifier, logs, log, containers, leader: lease ?? singleLeader }
  const driver = driverFor(config, folders.inProcesses, parts)
  const { store, vault, bodies } = await openMeasured(shell, lease, opened)
  const models = modelsIn(config)
  opened.defer(() => models.close())
  const relay = await relayStart
  const events = new EventStream([shell.emit, relay.emit])
  const prepared = await prepareFolders(folders, log)

  const listeners = await shell.listen()
  const { url, direct } = listenerAddresses(listeners)
  const addresses = addressesFor(config, listeners, relay, containers)

  const machine = createMachine({
    clock: systemClock,
    notifier,
    emit: shell.emit,
    env: process.env,
    dataDir: config.dataDir,
  })
  const gpuMeter = createGpuMeter(systemClock, process.env)
  const ports: Ports = {
    ...shell.ports,
    vault,
    store,
    bodies,
    storeDamage: shell.storeDamage,
    storeRoom: shell.storeRoom,
    ...fenced(lease, driver),
    notifier,
    logs,
    ...storageIn(config, log),
    machine,
    gpuMeter,
    gpuSuspender: createGpuSuspender({ clock: systemClock, env: process.env, meter: gpuMeter }),
    models,
    emit: events.emit,
    metrics: shell.metrics,
    time: systemTime,
  }
  const inspection = createHostInspection(config, driver.processIsolation)
  const { channels: httpThreads } = listeners
  const app = createApp(ports, { ...appConfigFromSettings(config), ...role, inspection, httpThreads }, addresses)
  const apiKey = await ownKey(app, shell)
  const served = await serveFolders(app, prepared, folders)
  await front.begin(app, containers)
  opened.defer(() => front.end())
  opened.defer(() => (isHandedOver ? containers?.leave(0) : containers?.close(GRACE_MS)))
  // Before the network of the containers can go.
  opened.defer(() => driver.close())
  listeners.answer()
  const hardware = describeGpus(machine, systemClock, config.placing)
  await relay.connect(direct, store, sinceMs => app.answersLost(sinceMs))
  const socket = await openWorkerSocket(app, config, relay, log)
  opened.defer(() => socket?.close(0))
  await containers?.resume()
  opened.defer(() => app.abandon())
  await app.start()
  if (config.folderWatch) opened.defer(watchFolders(app, served, folders, log))
  if (isReadAlong(config)) opened.defer(viewOnTerminal(app, events, served, log))
  await shell.publishAddress()
  const reached = advertisedAddresses(listeners, config, isBoundToMachine(config))
  lease?.reachedAt(reached.url, reached.openUrl, reached.workersUrl)
  prepareDocuments(app.fetch())
  await warnOfExposure(app, config, log)
  warnOfBackups(config, log)
  return {
    endpointAddresses: servedAt(url, addresses),
    consoleLink: createConsoleLink(app, addresses, apiKey),
    folders: served,
    hardware: await hardware,
    isolation: driver.processIsolation,
    async drain(hurry) {
      await app.stop(hurry)
      await relay.end()
    },
    async handOver(hurry) {
      isHandedOver = true
      await app.handOver(Math.min(config.drainTimeoutMs, HAND_OVER_MS), hurry)
      relay.release()
    },
    async abandon() {
      isHandedOver = true
      front.end()
      relay.release()
      const over = new Promise(resolve => setTimeout(resolve, LET_GO_MS))
      await Promise.race([Promise.allSettled([app.abandon()]), over])
    },
    close: () => opened.disposeAsync(),
  }
}

/**
 * The addresses by which clients and workers know the server.
 * @param relay may end, and workers then call the server itself
 */
function addressesFor(
  config: Config,
  listeners: Listeners,
  link: RelayLink,
  containers: ContainerAddress | null,
): AppAddresses {
  const { url, managementUrl, direct } = listenerAddresses(listeners)
  const pods = podUrls(config) ?? containers
  const origins = serverOrigins(config, url, managementUrl)
  return {
    ...origins,
    appVariables: workerVariables(origins, origins.clientTrust ?? null),
    ...(pods !== null && { containers: pods }),
    otherWorkerUrls: [direct],
    get workerUrl() {
      return link.relay?.url ?? direct
    },
  }
}

/** @param url address at which this machine reaches the endpoints */
function servedAt(url: string, origins: Addresses): ActingServer['endpointAddresses'] {
  const here = { publicUrl: url, queueUrl: url }
  return endpoint => ({ base: balancedUrl(here, endpoint.id), browser: browserUrl(origins, endpoint) })
}

/**
 * The store, with its calls measured, its errors inspected and its payloads sealed, and the time of the previous
 * server.
 */
async function openMeasured(shell: Shell, lease: FencedTerm | null, opened: AsyncDisposableStack) {
  const { config, log, metrics, storeDamage, storeRoom, emit } = shell
  const { store, readyForLarge } = await openStore(config, lease?.fence ?? null, emit)
  opened.defer(() => store.close())
  await resumeTime({ store, time: systemTime, emit })
  const look = (error: unknown) => {
    storeDamage.look(error)
    storeRoom.look(error)
  }
  const measured = layered(store, createMeasuring(systemClock, metrics.storeCalled.bind(metrics), look))
  return { ...(await openSeals(measured, config, log)), bodies: shell.bodies.whenReady(readyForLarge) }
}

/** A relay keeps calls of workers of this machine; others call a server. */
function hasRelay({ config }: Shell): boolean {
  return !config.directWorkers && isBoundToMachine(config)
}

/**
 * The key of the server itself, made valid, and with it the one before and the one for metrics, where they are given.
 */
async function ownKey({ services }: App, { apiKeyFile, config, log }: Shell): Promise<string> {
  const isMade = readApiKey(apiKeyFile, config.apiKey) === null
  const key = keepApiKey(apiKeyFile, config.apiKey)
  const noted = (id: KeyId) => services.audit.ofServer('setServerKey', { kind: 'key', id }, {}, DEFAULT_OWNER)
  const { metricsKey, previousApiKey } = config
  const ofMetrics = metricsKey === null ? [] : [{ name: 'metrics', key: metricsKey, scope: METRICS_SCOPE }]
  const isChanging = previousApiKey !== null && previousApiKey !== key
  if (isChanging) log.warn(PREVIOUS_KEY)
  const previousKeys = isChanging ? [{ name: 'previous', key: previousApiKey, scope: FULL_SCOPE }] : []
  const keys = [{ name: 'main', key, scope: FULL_SCOPE }, ...previousKeys, ...ofMetrics]
  const ended = await services.access.ensureKeys(DEFAULT_OWNER, keys, noted)
  if (isMade && ended.includes('main')) log.warn({ file: apiKeyFile }, NEW_KEY)
  return key
}

const NEW_KEY =
  'the file of the API key was missing or empty: there is a new key, and the one before is no longer valid; to keep that one, put it into the file and start again'

const PREVIOUS_KEY =
  'the previous API key is valid, too; leave RUNYARD_PREVIOUS_API_KEY out once all clients have the present one'

/** The operator's way into the console. */
function createConsoleLink({ services }: App, { consoleUrl = null }: Addresses, apiKey: string) {
  return async () => {
    if (consoleUrl === null) return null
    const { code } = await services.sessions.link(await services.access.authenticate(apiKey))
    return linkTo(consoleUrl, code)
  }
}

/**
 * The driver for the application: only the leader may use it in full. PostgreSQL itself refuses the changes of others.
 */
function fenced(leader: FencedTerm | null, driver: Driver): Pick<Ports, 'leader' | 'driver'> {
  return leader === null ? { leader: singleLeader, driver } : { leader, driver: fencedDriver(driver, leader) }
}
