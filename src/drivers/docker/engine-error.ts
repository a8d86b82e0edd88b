/** What goes wrong with a container engine, as sentences for the person who runs it. */
import { AppError } from '../../core/errors.ts'

/** A call of the engine that failed. */
export class EngineError extends Error {
  /** The HTTP status of its answer; null when none came. */
  readonly status: number | null
  /** Whether there was nobody to call, in contrast to an answer that took too long. */
  readonly away: boolean

  constructor(message: string, status: number | null, away: boolean, cause?: unknown) {
    super(message, { cause })
    this.name = 'EngineError'
    this.status = status
    this.away = away
  }
}

/** Codes of sockets behind which no engine answers. */
const AWAY: Readonly<Record<string, string>> = {
  ENOENT: 'nothing is there',
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was cut off',
  EACCES: 'this user may not use it (permission denied); add the user to its group, often docker',
  EPERM: 'this user may not use it (permission denied)',
  ENOTFOUND: 'its host is not known',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
  ETIMEDOUT: 'its host does not answer',
}

/** The members of what dockerode throws. */
interface Thrown {
  readonly statusCode?: number
  readonly code?: string
  readonly message?: string
  readonly json?: { readonly message?: string } | null
}

/** What dockerode throws, as an {@link EngineError}. Messages of the engine may be long and of several lines. */
export function engineError(thrown: unknown): EngineError {
  if (thrown instanceof EngineError) return thrown
  const { statusCode, code, message = '', json } = (thrown ?? {}) as Thrown
  if (statusCode !== undefined) {
    return new EngineError(clean(json?.message ?? withoutCode(message)), statusCode, false, thrown)
  }
  const known = AWAY[code ?? '']
  const hangUp = /socket hang up|aborted/i.test(message)
  return new EngineError(
    known ?? clean(message === '' ? 'unknown problem' : message),
    null,
    known !== undefined || hangUp,
    thrown,
  )
}

/** Where the answer was a stream dockerode puts its own words before those of the engine. */
function withoutCode(message: string): string {
  return message.replace(/^\(HTTP code \d+\) [\w ]+ - /, '')
}

/**
 * What dockerode throws, for the person who asked for something.
 * @param answered what to say where the engine has answered, from its own words
 */
export function engineRefusal(thrown: unknown, answered: (said: string) => AppError): AppError {
  if (thrown instanceof AppError) return thrown
  const { statusCode, code, message = '', json } = thrown as Thrown
  if (statusCode !== undefined) return answered((json?.message ?? withoutCode(message)).trim())
  return new AppError('unavailable', `the container engine cannot be reached: ${AWAY[code ?? ''] ?? code ?? message}`, {
    cause: thrown,
  })
}

/** A problem of a start as the reason that people see. */
export function startRefusal(thrown: unknown, memoryMb: number | null = null): AppError {
  if (thrown instanceof AppError) return thrown
  const { message, status, away } = engineError(thrown)
  const extras = { cause: thrown }
  if (status === null && /\bcontainer engine\b/.test(message)) return new AppError('invalid', message, extras)
  if (status === null) {
    const what = away ? 'cannot be reached' : 'does not answer'
    return new AppError('invalid', `the container engine ${what}: ${message}`, extras)
  }
  const reason = REFUSALS.find(([pattern]) => pattern.test(message))?.[1]
  const said = typeof reason === 'function' ? reason(message, memoryMb) : reason
  const busy = status === 503 ? 'the container engine is overloaded or shuts down' : 'the container engine refuses it'
  return new AppError('invalid', said ?? `${busy}: ${message}`, extras)
}

type Refusal = string | ((message: string, memoryMb: number | null) => string)

const REFUSALS: readonly (readonly [RegExp, Refusal])[] = [
  [
    /could not select device driver|nvidia-container-cli|unknown or invalid runtime name: nvidia/i,
    message => `the engine cannot give GPUs to containers; install the NVIDIA Container Toolkit (${message})`,
  ],
  [
    /\/dev\/(?:kfd|dri\/\w+).*no such file/i,
    message => `the engine's machine has no device for the GPU; its driver amdgpu has to be loaded there (${message})`,
  ],
  [/container-init binary not found/i, message => `Podman has no init for containers; install catatonit (${message})`],
  [/no command specified/i, 'the image names no command, and args gives none'],
  [/no space left on device/i, 'there is no space left on the disk of the container engine'],
  [/minimum memory limit/i, (_, memoryMb) => `${memoryMb} MB of memory are too few for a container`],
  [
    /executable file not found|no such file or directory.*(?:exec|unknown)|exec: .*no such file/i,
    message => `its program does not exist in the image (${message})`,
  ],
  [/permission denied.*unknown|exec: .*permission denied/i, message => `its program is not executable (${message})`],
  [/exec format error/i, 'its program is built for another kind of processor than this machine has'],
  [
    /bind source path does not exist/i,
    'the engine does not see the folder of the network volume; it has to run on this machine',
  ],
  [/network .* not found/i, message => `the network of the containers is gone (${message})`],
]

const MAX_MESSAGE = 400

/** One line, and no more of it than people read. */
export function clean(text: string): string {
  const line = text
    .replace(/\p{C}+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return line.length > MAX_MESSAGE ? `${line.slice(0, MAX_MESSAGE)}...` : line
}
