/**
 * Ports that the variables of a worker name. Processes share the ports of this machine, so a worker that needs a port
 * of another one ends or waits forever. The cause is read from /proc, so only Linux has it.
 */
import { readdir, readFile, readlink } from 'node:fs/promises'
import type { WorkerId } from '../../core/ids.ts'
import type { PortConflict } from '../../core/workers/worker-exit.ts'
import { WORKER_VARIABLE } from '../base/host-environment.ts'
import { readVariables } from '../base/process-table.ts'

/** A port and the variable that names it; null for one that the output of a worker names. */
export interface NamedPort {
  readonly variable: string | null
  readonly port: number
}

/** A {@link NamedPort} on which a process listens. */
export interface TakenPort extends NamedPort {
  /** The id of the worker that listens; null for another process, or one that cannot be read. */
  readonly worker: string | null
}

/** Limit of variables of one worker that are read. */
const MAX_NAMED = 20
const LISTENING = '0A'

/** The ports that variables such as PORT or VLLM_PORT name. @param serverNames names that the server sets itself */
export function readNamedPorts(
  env: Readonly<Record<string, string>>,
  serverNames: readonly string[] = [],
): NamedPort[] {
  const ports = Object.entries(env).flatMap(([variable, value]) => {
    if (!/(?:^|_)PORT$/.test(variable) || serverNames.includes(variable) || !/^\d{1,5}$/.test(value)) return []
    const port = Number(value)
    return port >= 1 && port <= 65_535 ? [{ variable, port }] : []
  })
  return ports.slice(0, MAX_NAMED)
}

/** The ports among these on which a process listens. */
export async function findTaken(named: readonly NamedPort[]): Promise<TakenPort[]> {
  if (named.length === 0) return []
  const sockets = await listeningSockets(new Set(named.map(({ port }) => port)))
  if (sockets.size === 0) return []
  const workers = await workersWith(new Set(sockets.values()))
  return named.flatMap(({ variable, port }) => {
    const socket = sockets.get(port)
    return socket === undefined ? [] : [{ variable, port, worker: workers.get(socket) ?? null }]
  })
}

/** The message for the worker. @param siblings the other workers of its endpoint, which alone are named */
export function portConflict({ variable, port, worker }: TakenPort, siblings: ReadonlySet<string>): PortConflict {
  const workerPart = worker !== null && siblings.has(worker) ? { worker: worker as WorkerId } : {}
  return { variable, port, with: worker === null ? 'program' : 'worker', ...workerPart }
}

/** The port on which these workers listen, where there is one alone of those that a program names itself. */
export async function findWorkerPorts(workers: ReadonlySet<string>): Promise<TakenPort[]> {
  if (workers.size === 0) return []
  const sockets = await listeningSockets(null)
  const holders = await workersWith(new Set(sockets.values()))
  const ports = [...sockets].flatMap(([port, socket]) => {
    const worker = holders.get(socket)
    const isOwn = worker !== undefined && workers.has(worker) && port < FIRST_EPHEMERAL
    return isOwn ? [{ variable: null, port, worker }] : []
  })
  return ports.length === 1 ? ports : []
}

/** Linux gives ports from here on to programs that name none. */
const FIRST_EPHEMERAL = 32_768

/** The socket that listens on each of these ports, by its number. @param ports null for all */
async function listeningSockets(ports: ReadonlySet<number> | null): Promise<Map<number, string>> {
  const sockets = new Map<number, string>()
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const line of (await readFile(table, 'latin1').catch(() => '')).split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/)
      const [, local, , state] = fields
      const socket = fields[9]
      if (state !== LISTENING || local === undefined || socket === undefined) continue
      const port = Number.parseInt(local.slice(local.lastIndexOf(':') + 1), 16)
      if (ports?.has(port) !== false) sockets.set(port, socket)
    }
  }
  return sockets
}

/** The workers that have these sockets open. Processes of other users cannot be read. */
async function workersWith(sockets: ReadonlySet<string>): Promise<Map<string, string>> {
  const workers = new Map<string, string>()
  for (const pid of (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))) {
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      const socket = /^socket:\[(\d+)\]$/.exec(target)?.[1]
      if (socket === undefined || !sockets.has(socket) || workers.has(socket)) continue
      const worker = (await readVariables(Number(pid)))[WORKER_VARIABLE]
      if (worker !== undefined) workers.set(socket, worker)
    }
    if (workers.size === sockets.size) break
  }
  return workers
}
