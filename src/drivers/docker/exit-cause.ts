/** The end of a container, from the messages of the engine and of its init. */
import { constants } from 'node:os'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { ExitCause, ObservedExit } from '../../core/workers/worker-exit.ts'

/** The end of a container as the engine reports it. */
export interface ContainerEnd {
  /** The exit code; 128 plus the number of the signal for a signal. Null when the engine reports none. */
  readonly code: number | null
  readonly outOfMemory: boolean
  /** True where the engine was stopped at about that time. */
  readonly withEngine: boolean
  /** True where this server asked for the end. */
  readonly asked: boolean
  readonly memoryMb: number | null
  /** The end of its output. */
  readonly tail: string
  readonly architecture: string
}

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** The end of a container with its code or signal. */
export function containerExit(end: ContainerEnd): ObservedExit {
  const { code } = end
  const signal = code !== null && code > 128 ? (SIGNALS.get(code - 128) ?? null) : null
  return { code: signal === null ? code : null, signal, cause: findCause(end) }
}

function findCause(end: ContainerEnd): ExitCause {
  if (end.outOfMemory && end.code !== 0) return { kind: 'out_of_memory', limitMb: end.memoryMb }
  if (end.withEngine && !end.asked) return { kind: 'engine_stopped' }
  const failure = initFailure(end)
  return failure === null ? { kind: 'ended' } : { kind: 'program_not_started', failure }
}

/** Output of the inits of Docker and of Podman that could not start the program. */
const INITS = [
  { mark: '[FATAL tini (', pattern: /^\[FATAL tini \(\d+\)\] exec (?<program>.+) failed: (?<reason>.+)/ },
  { mark: 'catatonit', pattern: /^catatonit(?::\d+\))?: failed to exec pid1: (?<reason>.+)/ },
]

function initFailure({ code, tail, architecture }: ContainerEnd): StartFailure | null {
  if (code !== 126 && code !== 127 && code !== 1) return null
  const lines = tail.split('\n')
  const groups = INITS.map(({ mark, pattern }) => {
    const line = lines.find(each => each.includes(mark)) ?? ''
    return pattern.exec(line.slice(line.indexOf(mark)))?.groups
  }).find(matched => matched !== undefined)
  if (groups === undefined) return null
  const reason = (groups.reason ?? '').trim()
  const problem = INIT_PROBLEMS.find(([words]) => words.test(reason))?.[1] ?? 'unknown'
  return { kind: 'init_failed', program: groups.program ?? null, problem, said: reason, architecture }
}

const INIT_PROBLEMS = [
  [/no such file/i, 'missing'],
  [/permission denied/i, 'not_executable'],
  [/exec format/i, 'other_processor'],
] as const
