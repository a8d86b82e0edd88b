/** How a container ended, from what the engine and its init say. */
import { constants } from 'node:os'
import type { ObservedExit } from '../../ports/driver.ts'

/** What is known of the end of a container. */
export interface ContainerEnd {
  /** As the engine reports it: 128 and the number for a signal. Null when it does not know. */
  readonly code: number | null
  readonly outOfMemory: boolean
  /** Whether the engine went away at about that time. */
  readonly withEngine: boolean
  /** Whether we had asked for it. */
  readonly asked: boolean
  readonly memoryMb: number | null
  /** The end of its output. */
  readonly tail: string
  readonly architecture: string
}

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** The end as a sentence for people, with its code or signal. */
export function containerExit(end: ContainerEnd): ObservedExit {
  const { code, outOfMemory, memoryMb } = end
  const signal = code !== null && code > 128 ? (SIGNALS.get(code - 128) ?? null) : null
  const how = { code: signal === null ? code : null, signal }
  const plain = signal !== null ? `was killed by ${signal}` : code === null ? 'ended' : `exited with code ${code}`
  if (outOfMemory && code !== 0) {
    const limit = memoryMb === null ? 'more memory than the machine has' : `more than its ${memoryMb} MB of memory`
    const cause = signal === 'SIGKILL' ? `was killed because it used ${limit}` : `${plain} after it had used ${limit}`
    return { ...how, cause }
  }
  if (end.withEngine && !end.asked)
    return { ...how, cause: `${plain} when the container engine was stopped or restarted` }
  const start = startProblem(end)
  return { ...how, cause: start === null ? plain : `${plain} because ${start}` }
}

/** How the inits of Docker and of Podman say that they could not start the program. */
const INITS = [
  /\[FATAL tini \(\d+\)\] exec (?<program>.+) failed: (?<reason>.+)/,
  /catatonit(?::\d+\))?: failed to exec pid1: (?<reason>.+)/,
]

function startProblem({ code, tail, architecture }: ContainerEnd): string | null {
  if (code !== 126 && code !== 127 && code !== 1) return null
  const found = INITS.map(pattern => pattern.exec(tail)?.groups).find(groups => groups !== undefined)
  if (found === undefined) return null
  const program = found.program === undefined ? 'its program' : `its program '${found.program}'`
  const reason = (found.reason ?? '').trim()
  if (/no such file/i.test(reason)) {
    return `${program} does not exist in the image, or the program that its #! line names does not`
  }
  if (/permission denied/i.test(reason)) return `${program} is not executable`
  if (/exec format/i.test(reason)) return `${program} is no program for this machine (${architecture})`
  return `${program} could not be started: ${reason}`
}
