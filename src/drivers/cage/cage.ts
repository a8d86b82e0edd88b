/**
 * Runs process workers in bubblewrap, each with the system's folders, its image and its own folders, and nothing else
 * of the machine. A worker and all that it starts are processes of a namespace of their own, which ends with its first
 * process.
 */
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { mkdir, realpath, rm } from 'node:fs/promises'
import { constants, homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import type { Isolation, Limit } from '../../core/workers/isolation.ts'
import type { Clock } from '../../ports/clock.ts'
import type { WorkerSpec } from '../../ports/driver.ts'
import { type HostEnvironment, WORKER_VARIABLE } from '../base/host-environment.ts'
import { groupMembers, signal } from '../base/process-table.ts'
import type { ServedPorts } from '../base/served-ports.ts'
import { CACHE_PATH, contains, mountPoint } from '../base/worker-paths.ts'
import { type CageSpec, cageOptions } from './arguments.ts'
import { cageMounts } from './cage-mounts.ts'
import { DOOR_PROGRAM, FILTER_FD, OPTIONS_FD } from './door-settings.ts'
import { outermost, programFolders, systemFolders } from './folders.ts'
import { gpuDevices } from './gpu-devices.ts'
import { kernelMasks } from './kernel-tables.ts'
import { type Layer, layerWords, makeLayer, sameUser } from './layer.ts'
import { freezerGroup, joinCommand, type Limits, leaveGroups } from './limits.ts'
import { NetworkWatch } from './network-watch.ts'
import type { OwnNetwork } from './own-network.ts'

/** The name of the processes that hold a cage together. */
export const CAGE_PROGRAM = 'bwrap'

/** One worker to start. */
export interface CagedLaunch {
  readonly spec: WorkerSpec
  /** The real path of the image's folder. */
  readonly image: string
  readonly program: string
  readonly words: readonly string[]
  /** The folder in which it starts: its private folder, or the image itself. */
  readonly working: string
  /** True where its environment asks for a private folder. */
  readonly isPrivate: boolean
  readonly home: string
  readonly tmp: string
  /** The cache of its endpoint, and the targets of links in it. */
  readonly cache: { readonly path: string; readonly readable: readonly string[] }
  readonly env: Readonly<Record<string, string>>
  /** The ports that it serves; null when it serves none. */
  readonly ports: ServedPorts | null
  readonly hostEnv: HostEnvironment
  readonly nodePath: string
  /** Folders of the server with packages that the worker reads. */
  readonly readable: readonly string[]
}

/** The process that is spawned for a worker in a cage. */
export interface CagedCommand {
  readonly program: string
  readonly words: readonly string[]
  /**
   * Of bubblewrap itself, without what the worker's owner chose: a variable such as LD_PRELOAD would act outside of
   * the cage.
   */
  readonly env: Readonly<Record<string, string>>
  /** An open file with the options, which the process is given as its fourth; to be closed after the start. */
  readonly options: number
  /**
   * An open file with the filter of system calls, which it is given as its fifth; to be closed after the start. Null
   * for none.
   */
  readonly filter: number | null
  readonly isolation: Isolation
  /** The control group by which the worker can be frozen; null where there is none. */
  readonly freezer: string | null
  /** Called with the process: gives its network a way to the outside. Null where nothing has to be done. */
  readonly attach: ((child: ChildProcess) => void) | null
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Makes cages. */
export class Cage {
  readonly #options
  readonly #system = systemFolders()
  readonly #masks = kernelMasks()

  constructor(options: {
    /** The program bubblewrap. */
    readonly bwrap: string
    /** Folders and sockets of the server and of the container engine, which no worker sees. */
    readonly hidden: readonly { readonly path: string; readonly isFolder: boolean }[]
    /** Folders that workers may read beside those that they need by themselves. */
    readonly readable: readonly string[]
    /** Folders that all workers may change. */
    readonly writable: readonly string[]
    readonly limits: Limits
    /** Limit of the writes of each worker, in GB; null for the usual one, 0 for no limit. */
    readonly diskGb: number | null
    /** True where each worker gets a private layer over its image, which it can otherwise only read. */
    readonly layers: boolean
    /** Gives workers a network of their own; null for that of the machine. */
    readonly network: OwnNetwork | null
    /** The program that refuses system calls; null without one. */
    readonly filter: Buffer | null
  }) {
    this.#options = options
  }

  /**
   * Prepares the start of a worker.
   * @param folder the worker's folder in the data directory
   */
  async command(launch: CagedLaunch, folder: string): Promise<CagedCommand> {
    const { spec, home, ports } = launch
    const { limits, network } = this.#options
    const layer = this.#makeLayer(launch, [join(folder, 'layer'), layerApart(spec.workerId)])
    const command = [...joinCommand(limits, spec), ...this.#cageWords(launch, layer)]
    const shared = { words: command, env: launch.env, resolver: null, attach: null }
    const { words, env, resolver, attach } =
      network?.prepare({ worker: spec.workerId, folder, ports, env: launch.env, command }) ?? shared
    const options = cageOptions({ ...(await this.#cageSpec({ ...launch, env }, layer)), resolver })
    const [program = '', ...rest] = words
    return {
      program,
      words: rest,
      // By these the server finds a worker and its folders again.
      env: { PATH, HOME: home, [WORKER_VARIABLE]: spec.workerId, ...harmlessVariables(env) },
      attach,
      ...openFiles(folder, options, this.#options.filter),
      isolation: { kind: 'cage', limits: this.#appliedLimits(spec) },
      freezer: freezerGroup(limits, spec.workerId),
    }
  }

  /** The limit of the writes of each worker, by the settings. */
  get diskGb(): number | null {
    return this.#options.diskGb
  }

  /** Folders with the files of a worker. @param folder its folder in the data directory */
  workerFolders(worker: WorkerId, folder: string): string[] {
    return [folder, layerApart(worker)]
  }

  /** True where workers have a network of their own. */
  get hasNetworks(): boolean {
    return this.#options.network !== null
  }

  /** Keeps networks of workers closed as this machine changes; null where none leads to the outside. */
  watchNetworks(clock: Clock, leaders: () => readonly number[]): NetworkWatch | null {
    return this.#options.network?.isOpen === true ? new NetworkWatch({ clock, leaders }) : null
  }

  /** The worker has ended. */
  async forget(worker: WorkerId): Promise<void> {
    await rm(layerApart(worker), { recursive: true, force: true, maxRetries: 5 })
    leaveGroups(this.#options.limits, worker)
  }

  #appliedLimits({ placement: { vcpus } }: WorkerSpec): Limit[] {
    const { memory, processes, cpu } = this.#options.limits
    const limits: [limit: Limit, isHeld: boolean][] = [
      ['memory', memory !== null],
      ['processes', processes !== null],
      ['cpu', cpu !== null && vcpus !== null],
      ['disk', this.#options.diskGb !== 0],
      ['network', this.hasNetworks],
    ]
    return limits.flatMap(([limit, isHeld]) => (isHeld ? [limit] : []))
  }

  /** A worker that works in its image itself has no layer. */
  #makeLayer({ isPrivate, image }: CagedLaunch, folders: readonly [string, string]): Layer | null {
    return this.#options.layers && isPrivate ? makeLayer(image, folders) : null
  }

  /** The cage itself, in its layer, which is the innermost namespace around it. */
  #cageWords({ program, words }: CagedLaunch, layer: Layer | null): string[] {
    const { bwrap, network, filter } = this.#options
    const ids = layer === null && network === null ? [] : sameUser()
    const fileWords = ['--args', String(OPTIONS_FD), ...(filter === null ? [] : ['--seccomp', String(FILTER_FD)])]
    return [...(layer === null ? [] : layerWords(layer)), bwrap, ...ids, ...fileWords, '--', program, ...words]
  }

  async #cageSpec(launch: CagedLaunch, layer: Layer | null): Promise<Omit<CageSpec, 'resolver'>> {
    const { spec, image, program, words, working, home, tmp, cache, env, hostEnv, nodePath } = launch
    const hostHome = hostEnv.HOME || homedir()
    const programs = await programFolders({
      image,
      programs: [program, nodePath],
      home: hostHome,
      path: hostEnv.PATH ?? '',
    })
    const userFolders = env.PYTHONUSERBASE === join(hostHome, '.local') ? ['bin', 'lib'] : []
    const folders = [
      ...this.#system.readable,
      ...programs,
      ...launch.readable,
      ...cache.readable,
      ...this.#options.readable,
    ]
    const paths = [...folders, ...userFolders.map(name => join(hostHome, '.local', name)), await resolverFile(), image]
    const readable = outermost(paths.filter(path => path !== ''))
    const shared = this.#options.writable
    const inside = (path: string) => [...readable, ...shared].some(folder => contains(folder, path))
    const hidden = this.#options.hidden.filter(({ path }) => inside(path))
    const isHidden = (path: string) => hidden.some(one => one.isFolder && one.path !== path && contains(one.path, path))
    // The folder above the layer would be the image itself.
    const workingFolders = layer !== null && working === image ? [] : [working]
    return {
      links: this.#system.links,
      masks: this.#masks,
      env,
      program,
      words,
      tmp,
      folder: working,
      readable,
      shared,
      layer,
      hidden,
      shown: outermost([...launch.readable, ...cache.readable, image].filter(isHidden)),
      writable: [...new Set([home, cache.path, ...workingFolders])],
      volume: spec.volume?.path ?? null,
      mounts: cageMounts(spec, [
        ...readable,
        ...shared,
        ...this.#system.links.map(({ path }) => path),
        home,
        tmp,
        image,
      ]),
      models: spec.models.map(model => ({ path: model.path, at: mountPoint(model) })),
      modelFolder: await makeModelFolder(launch),
      devices: gpuDevices(spec.placement.gpus),
    }
  }
}

/**
 * For an image in which the data directory lies, as that of `runyard serve --worker .` does. It outlives a restart of
 * the machine, as the data directory does.
 */
function layerApart(worker: WorkerId): string {
  return join('/var/tmp', `runyard-layer-${worker}`)
}

/**
 * The signal that ended a worker, by the exit code of bubblewrap, which is that of a shell; null for a code of the
 * worker's own.
 */
export function signalFromCode(code: number | null): NodeJS.Signals | null {
  if (code === null || code <= 128) return null
  const entry = Object.entries(constants.signals).find(([, number]) => number === code - 128)
  return (entry?.[0] as NodeJS.Signals | undefined) ?? null
}

/** A folder beside the worker's others, where it has models and no network volume. */
async function makeModelFolder({ spec, home }: CagedLaunch): Promise<{ path: string; at: string } | null> {
  if (spec.models.length === 0 || spec.volume !== null) return null
  const path = join(dirname(home), 'models')
  await mkdir(path, { recursive: true, mode: 0o700 })
  return { path, at: CACHE_PATH }
}

/** Only numbers and the folder of its volume; nothing that a loader of programs would follow. */
function harmlessVariables(env: Readonly<Record<string, string>>): Record<string, string> {
  const harmless = Object.entries(env).filter(
    ([name, value]) => name === 'RUNPOD_VOLUME_PATH' || (/(?:^|_)PORT$/.test(name) && /^\d{1,5}$/.test(value)),
  )
  return Object.fromEntries(harmless)
}

/** Files that bubblewrap reads: its options, and the filter of system calls. */
function openFiles(
  folder: string,
  options: readonly string[],
  program: Buffer | null,
): Pick<CagedCommand, 'options' | 'filter'> {
  const filter = program === null ? null : openHidden(join(folder, 'filter'), program)
  try {
    const text = options.map(option => `${option}\0`).join('')
    return { filter, options: openHidden(join(folder, 'cage'), Buffer.from(text)) }
  } catch (thrown) {
    if (filter !== null) closeSync(filter)
    throw thrown
  }
}

/** A file without a name: options hold variables, which may be secrets. */
function openHidden(path: string, bytes: Buffer): number {
  const file = openSync(path, 'wx+', 0o600)
  try {
    unlinkSync(path)
    // At a place of its own, so that the one who reads it starts at the beginning.
    writeSync(file, bytes, 0, null, 0)
    return file
  } catch (thrown) {
    closeSync(file)
    throw thrown
  }
}

/** Often a link to a file outside of /etc. */
async function resolverFile(): Promise<string> {
  return realpath('/etc/resolv.conf').catch(() => '')
}

/**
 * Sends SIGTERM to all in a cage but what makes it and its network, which would end by the signal, and everything in
 * it at once.
 * @param group that the cage leads
 */
export function terminateCaged(group: number): void {
  const inside = groupMembers(group).filter(({ name }) => name !== CAGE_PROGRAM && name !== DOOR_PROGRAM)
  // The program of the cage has not started yet.
  if (inside.length === 0) signal(-group, 'SIGKILL')
  for (const { pid } of inside) signal(pid, 'SIGTERM')
}
