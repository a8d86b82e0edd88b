/** The processes of a server's workers, as the operating system lists them. */
import { readdirSync, readFileSync } from 'node:fs'
import { signOf } from './workers.ts'

/** One process of a worker. */
export interface WorkerProcess {
  readonly pid: number
  /** The leader of a worker's group is the program that its command line names. */
  readonly group: number
  readonly parent: number
  readonly workerId: string
  readonly command: string
}

/**
 * All living processes that were started for workers of the server with this data directory, and what they started
 * themselves: each worker has its private folder in there as its HOME.
 */
export function workerProcesses(dataDir: string): WorkerProcess[] {
  // The first process of a container is the engine's.
  return allProcesses(dataDir).filter(({ command }) => !/^\S*docker-init /.test(command))
}

/** As {@link workerProcesses}, with those that an engine started to look after them. */
export function allProcesses(dataDir: string): WorkerProcess[] {
  const sign = signOf(dataDir)
  if (sign === null) return []
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => look(Number(pid), sign))
}

/** The processes of one worker. */
export function processesOf(dataDir: string, workerId: string): WorkerProcess[] {
  return workerProcesses(dataDir).filter(process => process.workerId === workerId)
}

/** The process that leads a worker's group. */
export function leaderOf(dataDir: string, workerId: string): WorkerProcess {
  const leader = processesOf(dataDir, workerId).find(({ pid, group }) => pid === group)
  if (leader === undefined) throw new Error(`worker ${workerId} has no process`)
  return leader
}

/** Relay that a data directory names, alive or not; null without one. */
export function relayPid(dataDir: string): number | null {
  try {
    return (JSON.parse(readFileSync(`${dataDir}/relay/relay.json`, 'utf8')) as { pid: number }).pid
  } catch {
    return null
  }
}

/** All living relays of a data directory. */
export function relayProcesses(dataDir: string): number[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => isRelay(pid, dataDir))
}

function isRelay(pid: number, dataDir: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return /\/relay\/program\.[jt]s$/.test(words[1] ?? '') && words[2] === dataDir
  } catch {
    return false
  }
}

/** Kills whatever is left. */
export function killAll(dataDir: string): void {
  for (const pid of [...workerProcesses(dataDir).map(({ pid }) => pid), ...relayProcesses(dataDir)]) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
}

function look(pid: number, sign: string): WorkerProcess[] {
  try {
    const environment = `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}`
    if (!environment.includes(sign)) return []
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const [state = 'X', parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if ('ZX'.includes(state)) return []
    const workerId = /\0RUNPOD_POD_ID=([^\0]*)/.exec(environment)?.[1] ?? ''
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return [{ pid, parent: Number(parent), group: Number(group), workerId, command }]
  } catch {
    return []
  }
}

/** The processor time that a living process has used so far. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // In hundredths of a second on every Linux.
  return (Number(fields[11]) + Number(fields[12])) / 100
}
