/** The drivers of this server: processes of this machine, and containers of an engine or a cluster. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import { MAX_WORKERS } from '../../config/workers.ts'
import { runtimeImage } from '../../core/endpoints/runtime-image.ts'
import { isFolderImage } from '../../core/endpoints/template.ts'
import { type LackOfNetworks, sharedPortsProblem, strayText, uncagedText } from '../../core/workers/isolation.ts'
import { type StartFailure, startFailureText } from '../../core/workers/start-failure.ts'
import { ensureFolder } from '../../disk/durable-file.ts'
import { runtimePackageFolder, workerPackageFolder } from '../../disk/package-files.ts'
import { readBootId } from '../../drivers/base/process-table.ts'
import { PORT_RANGE } from '../../drivers/base/served-ports.ts'
import { VOLUME_PATH } from '../../drivers/base/worker-paths.ts'
import { Cage } from '../../drivers/cage/cage.ts'
import { describeLimits, findLimits, findPlainGroups } from '../../drivers/cage/limits.ts'
import { lackWithoutCage, tryOwnNetwork } from '../../drivers/cage/network-trial.ts'
import { OwnNetwork, outerWords } from '../../drivers/cage/own-network.ts'
import { tryCage, tryLayers } from '../../drivers/cage/trial.ts'
import type { AppContainers } from '../../drivers/docker/app-parts.ts'
import type { ContainerConnection } from '../../drivers/docker/container-spec.ts'
import { DockerDriver } from '../../drivers/docker/docker.ts'
import { engineAddresses } from '../../drivers/docker/engine/engine-address.ts'
import { ProcessDriver } from '../../drivers/process/process.ts'
import { findMarker } from '../../drivers/process/process-marks.ts'
import { createNoDriver, createRoutedDriver, type DriverRoute } from '../../drivers/routed.ts'
import type { Driver } from '../../ports/driver.ts'
import type { Leader } from '../../ports/leader.ts'
import type { Notifier } from '../../ports/notifier.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import { createWorkerPipes, type PumpNote } from '../../pump/worker-pipes.ts'
import { FUNCTION_SOCKET, functionSocket, workerSocket } from '../../relay/relay-file.ts'
import type { ContainerAddress } from '../../server/container-address.ts'
import { trustBundleFile } from '../../system/certificates/trust-bundle.ts'
import { systemClock } from '../../system/clock.ts'
import { ensureInstallation } from '../../system/coordination/identities.ts'
import type { Log } from '../../system/observing/log.ts'
import { systemRandom } from '../../system/random.ts'
import { kubernetesDriver, usesKubernetes } from './kubernetes.ts'

/** Dependencies of drivers. */
export interface DriverParts {
  readonly notifier: Notifier
  readonly logs: WorkerLogs
  readonly log: Log
  /** The address for workers in containers; null where there are none. */
  readonly containers: ContainerAddress | null
  /** The role of this server. */
  readonly leader: Leader
}

/** The driver of a server. */
interface ServerDriver extends Driver {
  /** The isolation of workers that are processes, as a sentence for people. */
  readonly processIsolation: string
  /** Lets go of all workers, which go on. */
  close(): Promise<void>
}

/** Both kinds of workers as one driver. @param folders that were named on the command line */
export function driverFor(config: Config, folders: readonly string[], parts: DriverParts): ServerDriver {
  const { driver: processes, isolation } = processDriver(config, folders, parts)
  const hasProcesses = processes instanceof ProcessDriver
  const containers = containerDriver(config, parts)
  const routes: DriverRoute[] = [
    // An app runs in a container, as any other image, if no process may run.
    { takes: image => isFolderImage(image) || (hasProcesses && runtimeImage(image) !== null), driver: processes },
    { takes: () => true, driver: containers },
  ]
  const routed = createRoutedDriver(routes, config.maxWorkers ?? MAX_WORKERS)
  return Object.assign(routed, {
    processIsolation: isolation,
    async close() {
      for (const driver of [processes, containers]) {
        if ('close' in driver && typeof driver.close === 'function') await driver.close()
      }
    },
  })
}

/** The driver of all images but folders. */
function containerDriver(config: Config, parts: DriverParts): Driver {
  if (usesKubernetes(config)) return kubernetesDriver(config, folderIn(config.dataDir, 'kubernetes'), parts)
  const { containers } = parts
  return containers === null ? createNoDriver({ kind: 'containers_off' }) : dockerDriver(config, containers, parts)
}

const PUMP_TROUBLE: ReadonlySet<PumpNote> = new Set(['pump.lost', 'pump.stopped', 'pump.failed'])

/** Processes run only of folders that were named on purpose. */
function processDriver(
  config: Config,
  folders: readonly string[],
  { notifier, logs, log }: DriverParts,
): { driver: Driver; isolation: string } {
  const roots = config.processRoots
  const reason = noProcesses(config, folders)
  if (reason !== null) {
    return { driver: createNoDriver(reason), isolation: `Process workers: ${startFailureText(reason)}` }
  }
  const { cage, isolation, refused, lack } = cageFor(config)
  if (lack !== null && refused === null) log.warn(`${sharedPortsProblem(lack)}; ${lack.action}`)
  if (refused !== null) {
    const driver = createNoDriver({ kind: 'workers_off', problem: refused })
    return { driver, isolation: `Process workers: ${refused}` }
  }
  const bootId = readBootId()
  const marker = cage === null ? findMarker(process.env.PATH) : null
  const hasMarks = marker !== null && !('problem' in marker)
  const driver = new ProcessDriver({
    notifier,
    logs,
    pipes: createWorkerPipes({
      bootId,
      folder: folderIn(config.dataDir, 'pump'),
      logs: folderIn(config.dataDir, 'logs'),
      clock: systemClock,
      note: (event, fields) => log[PUMP_TROUBLE.has(event) ? 'warn' : 'debug'](fields, event),
    }),
    cage,
    findGroups: findPlainGroups,
    roots: [...roots, ...folders],
    clock: systemClock,
    hostEnv: process.env,
    nodePath: process.execPath,
    workerPackage: workerPackageFolder(),
    runtime: {
      runtime: runtimePackageFolder(),
      environments: join(config.dataDir, 'python'),
      // A cage shows nothing else of the data directory.
      ...(config.tls.selfSigned && { trustFile: resolve(trustBundleFile(config.dataDir)) }),
    },
    workerDir: folderIn(config.dataDir, 'workers'),
    caches: { folder: folderIn(config.dataDir, 'caches'), limitGb: config.workerCacheGb },
    maxWorkers: config.maxWorkers ?? MAX_WORKERS,
    bootId,
    marker: hasMarks ? marker : null,
    firstPort: randomPort(),
    volumeLink: {
      path: VOLUME_PATH,
      root: join(config.dataDir, 'volumes'),
      models: join(modelRoot(config), 'volume'),
    },
  })
  const strays = marker === null || hasMarks ? '' : `. ${strayText(marker)}`
  return { driver, isolation: `${isolation}${strays}` }
}

interface CageOfServer {
  readonly cage: Cage | null
  /** A sentence for people. */
  readonly isolation: string
  /** The reason why no worker may be a process; null when one may. */
  readonly refused: string | null
  /**
   * The reason why workers have no network of their own, against the settings; null where they follow the settings.
   */
  readonly lack: LackOfNetworks | null
}

/** The cage of process workers, found once by a trial. */
function cageFor(config: Config): CageOfServer {
  const host = { dataDir: config.dataDir, isRoot: process.geteuid?.() === 0 }
  if (config.workerSandbox === 'off') {
    const isolation = uncagedText({ reason: '--worker-sandbox off', action: null, ...host })
    return { cage: null, isolation, refused: null, lack: null }
  }
  const trial = tryCage()
  if ('problem' in trial) {
    const isolation = uncagedText({ reason: trial.problem, action: trial.action, ...host })
    const refused = config.workerSandbox === 'required' ? `--worker-sandbox is required, and ${trial.problem}` : null
    const lack = config.workerNetwork === 'shared' ? null : lackWithoutCage(trial, config.workerNetwork)
    return { cage: null, isolation, refused, lack }
  }
  const { network, text, lack } = networkFor(config, trial.bwrap)
  if (lack !== null && config.workerSandbox === 'required') {
    const refused = `--worker-sandbox is required, and workers can have no network of their own: ${lack.problem}; ${lack.action}`
    return { cage: null, isolation: refused, refused, lack }
  }
  const limits = findLimits()
  const around = network === null ? [] : outerWords(trial.bwrap)
  const layers = tryLayers(trial.bwrap, folderIn(config.dataDir, 'workers'), around)
  const sockets = engineAddresses(config.docker, process.env)
    .map(({ socket }) => socket)
    .filter((path): path is string => path !== null && existsSync(path))
  const hidden = [{ path: config.dataDir, isFolder: true }, ...sockets.map(path => ({ path, isFolder: false }))]
  const given = { readable: config.workerReadable, writable: config.workerWritable, diskGb: config.workerDiskGb }
  const cage = new Cage({ ...trial, limits, hidden, layers, network, ...given })
  const lacks = [
    ...(layers ? [] : ['images read-only']),
    ...(trial.filter === null ? ['no filter of system calls'] : []),
  ]
  const isolation = ['Workers run in cages', text, ...lacks, describeLimits(limits)].join(', ')
  return { cage, isolation, refused: null, lack }
}

/** The network of workers in cages. */
function networkFor(
  { workerNetwork, dataDir }: Config,
  bwrap: string,
): { network: OwnNetwork | null; text: string; lack: LackOfNetworks | null } {
  if (workerNetwork === 'shared')
    return {
      network: null,
      text: "in the machine's network, all of whose ports they reach (--worker-network shared)",
      lack: null,
    }
  const open = workerNetwork === 'open'
  const refusal = tryOwnNetwork(bwrap, open)
  if (refusal !== null) {
    const lack = { problem: refusal.problem, action: `${refusal.action}, or give --worker-network shared` }
    return { network: null, text: "in the machine's network, all of whose ports they reach", lack }
  }
  const network = new OwnNetwork({
    bwrap,
    nodePath: process.execPath,
    clock: systemClock,
    socket: workerSocket(dataDir),
    functionSocket: functionSocket(dataDir),
    open,
  })
  const text = open ? 'in networks of their own that lead to the outside' : 'in networks that lead to this server alone'
  return { network, text, lack: null }
}

/** The reason for which no worker can be a process; null when some can. */
function noProcesses({ processes, processRoots }: Config, folders: readonly string[]): StartFailure | null {
  if (processes === 'off') return { kind: 'processes_off' }
  if (processRoots.length > 0 || folders.length > 0) return null
  return { kind: 'process_folders_missing' }
}

function randomPort(): number {
  const { first, last } = PORT_RANGE
  return first + (Buffer.from(systemRandom.bytes(4)).readUInt32BE() % (last - first + 1))
}

function dockerDriver(
  config: Config,
  containers: ContainerAddress,
  { notifier, logs, log }: DriverParts,
): DockerDriver {
  return new DockerDriver({
    notifier,
    logs,
    connection: () => connectionTo(containers),
    clock: systemClock,
    installation: ensureInstallation(config.dataDir),
    stateDir: folderIn(config.dataDir, 'docker'),
    runtime: runtimePackageFolder(),
    maxWorkers: config.maxWorkers ?? MAX_WORKERS,
    bootId: readBootId(),
    addresses: () => engineAddresses(config.docker, process.env),
    note: (event, fields) => log[event === 'engine.away' ? 'warn' : 'info'](fields, event),
    apps: appContainers(config),
  })
}

/** The image and the folders of containers of apps. */
function appContainers({ dataDir, appImage, tls }: Config): AppContainers {
  return {
    image: appImage === 'sdk' ? null : appImage,
    functions: { folder: resolve(folderIn(dataDir, 'functions')), file: FUNCTION_SOCKET },
    trustFile: tls.selfSigned ? resolve(trustBundleFile(dataDir)) : null,
  }
}

/** The connection of a new container. @throws AppError with the reason when there is none */
async function connectionTo(containers: ContainerAddress): Promise<ContainerConnection> {
  const { network: name, extraHosts, serving } = await containers.connection()
  return { name, extraHosts, serving }
}

/** The folder of the cache of models. */
export function modelRoot({ dataDir, modelCache }: Pick<Config, 'dataDir' | 'modelCache'>): string {
  return modelCache ?? join(dataDir, 'models')
}

function folderIn(dataDir: string, name: string): string {
  const folder = join(dataDir, name)
  ensureFolder(folder)
  return folder
}
