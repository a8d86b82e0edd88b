/** Limits of workers in cages: control groups where this server may make them. */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import { readOptional } from '../../disk/optional-files.ts'
import type { WorkerSpec } from '../../ports/driver.ts'
import { removeGroup } from '../base/thread-hold.ts'

/** Folders in which groups are made, by the resource that they limit; null for a resource that cannot be limited. */
export interface Limits {
  readonly memory: string | null
  readonly processes: string | null
  readonly cpu: string | null
  /** Folder of groups that can be frozen, which takes version 2; null where there is none. */
  readonly freezer: string | null
  /** True where the files are those of version 2. */
  readonly unified: boolean
}

/** No limits at all. */
export const NO_LIMITS: Limits = { memory: null, processes: null, cpu: null, freezer: null, unified: false }

/** The most processes and threads of a worker. */
const MAX_PROCESSES = 4_096
/** Share of the machine's memory for a worker without a limit of its own. */
const MEMORY_SHARE = 0.9
const PERIOD_US = 100_000
/**
 * A script of the shell that joins control groups. Its first argument is the number of files that follow, into each of
 * which it writes itself; the rest is the command. No core is dumped.
 */
const JOIN =
  'ulimit -c 0; n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'
const MB = 1024 * 1024
/** Deadline of the entry into a group. */
const TRIAL_MS = 5_000

/** Finds where this server may make control groups. Version 2 needs a delegated group with active controllers. */
export function findLimits(root = '/sys/fs/cgroup', ownGroups = readOwn()): Limits {
  const paths = ownPaths(ownGroups)
  const unified = paths.get('')
  if (unified !== undefined && readOptional(join(root, 'cgroup.controllers')) !== '') {
    // Processes may only be in the leaves of a tree, so groups are made beside that of the server.
    const parent = join(root, dirname(unified))
    const controllers = new Set(readOptional(join(parent, 'cgroup.subtree_control')).trim().split(' '))
    const folderFor = (name: string) => (controllers.has(name) && usable(parent) ? parent : null)
    return {
      memory: folderFor('memory'),
      processes: folderFor('pids'),
      cpu: folderFor('cpu'),
      freezer: freezing(parent),
      unified: true,
    }
  }
  const folderFor = (name: string) => {
    const path = paths.get(name)
    const folder = path === undefined ? null : join(root, name, path)
    return folder !== null && usable(folder) ? folder : null
  }
  // Both versions may exist; the second one then limits nothing, and freezes.
  const freezer = unified === undefined ? null : freezing(join(root, 'unified', dirname(unified)))
  return { memory: folderFor('memory'), processes: folderFor('pids'), cpu: folderFor('cpu'), freezer, unified: false }
}

/**
 * Finds where groups without limits are made, for workers without a cage; null where they cannot be made. In a unit of
 * systemd without delegation that is below the group of the unit, so that the limits of the unit hold for workers.
 */
export function findPlainGroups(root = '/sys/fs/cgroup', ownGroups = readOwn()): string | null {
  const own = ownPaths(ownGroups).get('')
  if (own === undefined) return null
  const hierarchy = readOptional(join(root, 'cgroup.controllers')) === '' ? join(root, 'unified') : root
  const below = /\.(?:service|scope)$/.test(own) ? freezing(join(hierarchy, own)) : null
  return below ?? freezing(join(hierarchy, dirname(own)))
}

/** The limits that hold and those that do not, as a clause. */
export function describeLimits(limits: Limits): string {
  const limitFolders = Object.entries({
    memory: limits.memory,
    processes: limits.processes,
    'processor time': limits.cpu,
  })
  const names = (isHeld: boolean) => limitFolders.filter(([, path]) => (path !== null) === isHeld).map(([name]) => name)
  if (names(true).length === 0) return 'without limits on memory and processes (no control groups)'
  const missing = names(false).length === 0 ? '' : `; no limit on ${names(false).join(', ')}`
  return `with limits on ${names(true).join(', ')}${missing}`
}

/**
 * Makes the groups of a worker.
 * @returns the words before a command that let it enter them first
 */
export function joinCommand(limits: Limits, { workerId, placement: { memoryMb, vcpus } }: WorkerSpec): string[] {
  const groups = workerGroups(limits, workerId)
  for (const group of groups) mkdirSync(group, { recursive: true })
  const memory = memoryMb === null ? Math.floor(totalmem() * MEMORY_SHARE) : memoryMb * MB
  const quota = vcpus === null ? null : Math.floor(vcpus * PERIOD_US)
  const name = groupName(workerId)
  const set = (parent: string | null, file: string, value: string | number) => {
    if (parent !== null) writeFileSync(join(parent, name, file), `${value}`)
  }
  set(limits.memory, limits.unified ? 'memory.max' : 'memory.limit_in_bytes', memory)
  set(limits.processes, 'pids.max', MAX_PROCESSES)
  if (quota !== null) {
    if (limits.unified) set(limits.cpu, 'cpu.max', `${quota} ${PERIOD_US}`)
    else set(limits.cpu, 'cpu.cfs_quota_us', quota)
  }
  const files = groups.map(group => join(group, 'cgroup.procs'))
  return ['/bin/sh', '-c', JOIN, 'sh', String(files.length), ...files]
}

/** The group by which a worker can be frozen; null where there is none. It may have been started without it. */
export function freezerGroup({ freezer }: Limits, worker: WorkerId): string | null {
  return freezer === null ? null : join(freezer, groupName(worker))
}

/** Control groups without limits, for workers without a cage. */
export class WorkerGroups {
  readonly #find
  #folder: string | null | undefined

  /** @param find finds the folder in which groups are made, once, when the first one is wanted; null for no groups */
  constructor(find: () => string | null) {
    this.#find = find
  }

  /** Makes the group of a worker. @returns null where that cannot be done */
  make(worker: WorkerId): string | null {
    if (this.#folder === undefined) this.#folder = this.#find()
    if (this.#folder === null) return null
    const group = join(this.#folder, groupName(worker))
    try {
      mkdirSync(group, { recursive: true })
      return group
    } catch {
      return null
    }
  }
}

/** Removes the groups of a worker that has ended. */
export function leaveGroups(limits: Limits, worker: WorkerId): void {
  for (const group of workerGroups(limits, worker)) removeGroup(group)
}

function workerGroups({ memory, processes, cpu, freezer }: Limits, worker: WorkerId): string[] {
  const parents = new Set([memory, processes, cpu, freezer].filter(parent => parent !== null))
  return [...parents].map(parent => join(parent, groupName(worker)))
}

function groupName(worker: WorkerId): string {
  return `runyard-${worker}`
}

/** The group of this process in each hierarchy; the empty name is version 2. */
function ownPaths(text: string): Map<string, string> {
  const paths = new Map<string, string>()
  for (const line of text.split('\n')) {
    const [, names = '', ...rest] = line.split(':')
    if (rest.length > 0) for (const name of names.split(',')) paths.set(name, rest.join(':'))
  }
  return paths
}

function readOwn(): string {
  return readOptional('/proc/self/cgroup')
}

/** The folder, if a process can enter a group in it that can be frozen; null if not. */
function freezing(folder: string): string | null {
  const trial = join(folder, `runyard-freezer-${process.pid}`)
  try {
    mkdirSync(trial)
    try {
      const enter = ['-c', 'echo 0 >"$1"', 'sh', join(trial, 'cgroup.procs')]
      const entered = spawnSync('/bin/sh', enter, { stdio: 'ignore', timeout: TRIAL_MS }).status === 0
      return entered && existsSync(join(trial, 'cgroup.freeze')) ? folder : null
    } finally {
      rmdirSync(trial)
    }
  } catch {
    return null
  }
}

/** Tests a group by its use: the right to write alone proves little. */
function usable(folder: string): boolean {
  const trial = join(folder, `runyard-trial-${process.pid}`)
  try {
    accessSync(folder, constants.W_OK)
    mkdirSync(trial)
    rmdirSync(trial)
    return true
  } catch {
    return false
  }
}
