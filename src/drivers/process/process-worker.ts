/** A worker of the process driver: its facts, its handle, and its process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, writeSync } from 'node:fs'
import { TASK_PORT } from '../../core/endpoints/runtime-image.ts'
import type { EndpointId, WorkerId } from '../../core/ids.ts'
import { type Isolation, type Limit, NO_ISOLATION } from '../../core/workers/isolation.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { ExitCause, ObservedExit, PortConflict } from '../../core/workers/worker-exit.ts'
import { isDiskFull } from '../../disk/full-disk.ts'
import type { ProcessIdentity, ProcessState } from '../base/process-table.ts'
import type { ServedPorts } from '../base/served-ports.ts'
import type { CagedCommand } from '../cage/cage.ts'
import type { OpenCache } from './endpoint-caches.ts'
import { findTaken, type NamedPort, portConflict } from './named-ports.ts'
import type { Command } from './process-command.ts'
import type { Mark, MarkedCommand } from './process-marks.ts'

/** The means by which a worker is frozen. */
export type Frozen =
  | { readonly by: 'group' }
  /** The halted processes, parents first; null when an earlier server halted them. */
  | { readonly by: 'signals'; readonly halted: readonly ProcessState[] | null }

/** A worker that was started or adopted. */
export interface Running {
  readonly identity: ProcessIdentity
  /** The endpoint whose cache it has; null for a worker that an older server started. */
  readonly endpoint: EndpointId | null
  /** The ports that it serves; null when it serves none. */
  readonly ports: ServedPorts | null
  /** Its isolation; the cage leads the group of a worker in a cage. */
  readonly isolation: Isolation
  /** Null when an earlier server started it. */
  readonly child: ChildProcess | null
  /** The ports that its own variables name. */
  readonly named: readonly NamedPort[]
  /** The control group by which it can be frozen; null where it has none. */
  readonly freezer: string | null
  /** The mark by which all that it has started is found; null for none. */
  readonly mark: Mark | null
  /** The means by which it is frozen; null when it is not. */
  frozen: Frozen | null
  /** True from the begin of a suspend of its CUDA processes to the end of their resume. */
  isSuspended: boolean
  /** True once this server asked it to end. */
  asked: boolean
  /** The reason for which it was killed; null for none. */
  fault: ExitCause | null
  /** True once it has ended; its last output may still be on the way. */
  isOver: boolean
  /** Its end, once its output is whole. */
  exit: ObservedExit | null
  /** The port in use that it wanted when it ended. */
  suspicion: Promise<PortConflict | null>
}

/** Parts of the start of a worker. */
export interface Launch {
  readonly command: Command
  readonly endpoint: EndpointId
  /** The command where there is no cage. */
  readonly marked: MarkedCommand
  /** The folder in which it starts. */
  readonly folder: string
  readonly env: Readonly<Record<string, string>>
  /** The cage that it is started in; null for none. */
  readonly cage: CagedCommand | null
  readonly ports: ServedPorts | null
  readonly named: readonly NamedPort[]
  /** The control group that it joins without a cage; null for none. */
  readonly group: string | null
  /** Lines that begin its output. */
  readonly notes: readonly string[]
}

/** The folders of one worker. */
export interface OwnFolders {
  readonly working: string
  readonly isPrivate: boolean
  readonly home: string
  readonly tmp: string
  /** The cache of its endpoint. */
  readonly cache: OpenCache
}

/** The handle by which a worker is found. */
export function processHandle({
  identity,
  endpoint,
  ports,
  freezer,
  mark,
  isolation: { kind, limits },
}: Running): string {
  const cage = kind === 'cage' ? { caged: true, limits } : {}
  return JSON.stringify({ ...identity, ...knownBefore({ endpoint, ports, freezer, mark }), ...cage })
}

type KnownBefore = Pick<Running, 'endpoint' | 'ports' | 'freezer' | 'mark'>

/** The note that is written before the process of a worker exists: a handle without the process. */
export function startNote(facts: KnownBefore): string {
  return JSON.stringify(knownBefore(facts))
}

function knownBefore({ endpoint, ports, freezer, mark }: KnownBefore): Partial<KnownBefore> {
  return {
    ...(endpoint !== null && { endpoint }),
    ...(ports !== null && { ports }),
    ...(freezer !== null && { freezer }),
    ...(mark !== null && { mark }),
  }
}

/** The control group by which the worker of a handle can be frozen; null for none. */
export function freezerFromHandle(handle: string): string | null {
  try {
    const { freezer } = JSON.parse(handle) as { freezer?: string }
    return typeof freezer === 'string' ? freezer : null
  } catch {
    return null
  }
}

/** The mark in the handle of a worker, or in the note before it; null for none, and for that of another worker. */
export function markFromHandle(handle: string, worker: WorkerId): Mark | null {
  try {
    const { mark } = JSON.parse(handle) as { mark?: Partial<Mark> }
    return mark?.worker === worker && typeof mark.bytes === 'string' ? { worker, bytes: mark.bytes } : null
  } catch {
    return null
  }
}

/** The endpoint in a handle, or in the note before it; null where an older server wrote it. */
export function endpointFromHandle(handle: string): EndpointId | null {
  try {
    const { endpoint } = JSON.parse(handle) as { endpoint?: unknown }
    return typeof endpoint === 'string' ? (endpoint as EndpointId) : null
  } catch {
    return null
  }
}

/** The isolation of the worker of a handle. */
export function isolationFromHandle(handle: string): Isolation {
  try {
    const { caged, limits = [] } = JSON.parse(handle) as { caged?: boolean; limits?: Limit[] }
    return caged === true ? { kind: 'cage', limits } : NO_ISOLATION
  } catch {
    return NO_ISOLATION
  }
}

/** True for a worker with a network of its own, which only those in cages have. */
export function isNetworked({ isolation: { kind, limits } }: Pick<Running, 'isolation'>): boolean {
  return kind === 'cage' && limits.includes('network')
}

/** Names of the variables with ports that a worker that serves gets. */
export const GIVEN_PORTS: readonly string[] = ['PORT', 'PORT_HEALTH', TASK_PORT]

/** The variables of a worker that serves. @param env its other variables: that of a task names its port once more */
export function portVariables(
  ports: ServedPorts | null,
  env: Readonly<Record<string, string>>,
): Record<string, string> {
  if (ports === null) return {}
  const port = String(ports.port)
  return { PORT: port, PORT_HEALTH: String(ports.healthPort), ...(TASK_PORT in env && { [TASK_PORT]: port }) }
}

/**
 * The conflict over a port that the worker wanted and does not have.
 * @param siblings the other workers of its endpoint
 */
export async function findNamedConflict(
  ownId: WorkerId,
  named: readonly NamedPort[],
  siblings: ReadonlySet<WorkerId>,
): Promise<PortConflict | null> {
  const taken = (await findTaken(named)).filter(({ worker }) => worker !== ownId)
  const conflict = taken.find(({ worker }) => worker !== null) ?? taken[0]
  return conflict === undefined ? null : portConflict(conflict, siblings)
}

/** The exit of a process that ended unseen. */
export const UNKNOWN_EXIT: ObservedExit = {
  code: null,
  signal: null,
  cause: { kind: 'unseen', when: 'server_restarted' },
}

/** The end of a process. @param fault the reason for which it was killed, if it was */
export function processExit(code: number | null, signalName: string | null, fault: ExitCause | null): ObservedExit {
  return { code, signal: signalName, cause: fault ?? { kind: 'ended' } }
}

/**
 * A worker that cannot write has no last words, so that nothing else says why it ended; SIGBUS is a write into memory
 * that the disk has no room for.
 * @param folder where workers write
 */
export function diskFault(
  folder: string,
  { asked }: Running,
  { code, signal }: Pick<ObservedExit, 'code' | 'signal'>,
): ExitCause | null {
  const hasFailed = (code !== null && code !== 0) || signal === 'SIGBUS'
  return hasFailed && !asked && isDiskFull(folder) ? { kind: 'machine_disk_full' } : null
}

/**
 * Starts the process of a worker, which leads a group of its own. Closes the files that it gets.
 * @param output a file for what it prints
 * @returns a child without a pid where it could not be started, whose `error` says why
 * @throws WorkerStartError when a word or a variable cannot be passed on
 */
export function spawnWorker({ command, marked, folder, env, cage, notes }: Launch, output: number): ChildProcess {
  try {
    for (const note of notes) writeSync(output, `runyard: ${note}\n`)
    if (cage === null)
      return spawn(marked.program, marked.words, {
        cwd: folder,
        env,
        detached: true,
        stdio: ['ignore', output, output],
      })
    const { program, words, options, filter, attach } = cage
    const stdio = ['ignore', output, output, options, filter ?? 'ignore', attach === null ? 'ignore' : 'pipe'] as const
    return spawn(program, words, { cwd: '/', env: cage.env, detached: true, stdio: [...stdio] })
  } catch (cause) {
    // The message is not shown because it quotes the variable, which may be a secret.
    throw new WorkerStartError({ kind: 'null_character', name: command.words[0] ?? '' }, { cause })
  } finally {
    closeSync(output)
    for (const file of [cage?.options, cage?.filter]) if (typeof file === 'number') closeSync(file)
  }
}
