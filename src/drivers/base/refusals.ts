/** The messages of container engines, registries and nodes of clusters, and the failures that they stand for. */
import { parseReference } from '../../core/endpoints/image-reference.ts'
import { hasInOrder } from '../../core/text-parts.ts'
import { parseContainerArgs } from '../../core/workers/command-line.ts'
import { type PullProblem, type StartFailure, WorkerStartError } from '../../core/workers/start-failure.ts'

/** The failure of an image or command line that no container can run; null for ones that some can. */
export function containerRefusal(image: string, args: string): StartFailure | null {
  if (parseReference(image) === null) return { kind: 'image_invalid', image }
  try {
    parseContainerArgs(args)
    return null
  } catch (thrown) {
    if (thrown instanceof WorkerStartError) return thrown.failure
    throw thrown
  }
}

/**
 * The problem that kept an image from being downloaded.
 * @param hasCredential true where the download had a credential
 */
export function pullProblem(message: string, hasCredential: boolean): PullProblem {
  return REASONS.find(([words]) => words.test(message))?.[1](hasCredential) ?? 'unknown'
}

/** Messages of engines and registries about a download that fails, and their meaning. */
const REASONS: readonly (readonly [RegExp, (hasCredential: boolean) => PullProblem])[] = [
  [/no space left/i, () => 'disk_full'],
  [/toomanyrequests|rate limit/i, () => 'download_limit'],
  [/no matching manifest|does not match the specified platform|no match for platform/i, () => 'other_processor'],
  [
    /unauthorized|authentication required|no basic auth|incorrect username or password|\b401\b/i,
    has => (has ? 'credential_refused' : 'credential_missing'),
  ],
  [
    /access denied|access to the resource is denied|may require|forbidden|\b403\b/i,
    has => (has ? 'not_found_for_credential' : 'not_found_or_private'),
  ],
  [/manifest unknown|not found|name unknown|does not exist/i, () => 'not_found'],
  [
    /dial tcp|no such host|i\/o timeout|connection refused|connection reset|tls|client\.timeout|request canceled|deadline exceeded|\beof\b|unreachable|proxyconnect/i,
    () => 'unreachable',
  ],
]

/**
 * The failure behind the message of an engine, or of a node of a cluster, that refuses a start; null for an unknown
 * message.
 */
export function findRefusal(message: string, memoryMb: number | null): StartFailure | null {
  const words = message.toLowerCase()
  const refusal = REFUSALS.find(([messages]) => messages.some(pattern => hasInOrder(words, ...pattern.split(' ... '))))
  return refusal?.[1](message, memoryMb) ?? null
}

/** Messages of engines that refuse a start, in lower case; ` ... ` stands for any words. */
const REFUSALS: readonly (readonly [
  messages: readonly string[],
  failure: (said: string, memoryMb: number | null) => StartFailure,
])[] = [
  [
    ['could not select device driver', 'nvidia-container-cli', 'unknown or invalid runtime name: nvidia'],
    said => ({ kind: 'gpu_toolkit_missing', said }),
  ],
  [['/dev/kfd ... no such file', '/dev/dri/ ... no such file'], said => ({ kind: 'gpu_device_missing', said })],
  [['container-init binary not found'], said => ({ kind: 'init_missing', said })],
  [['no command specified'], () => ({ kind: 'image_without_command' })],
  [['no space left on device'], () => ({ kind: 'engine_disk_full' })],
  [['minimum memory limit'], (_, memoryMb) => ({ kind: 'memory_too_small', memoryMb })],
  [
    [
      'executable file not found',
      'no such file or directory ... exec',
      'no such file or directory ... unknown',
      'exec: ... no such file',
    ],
    said => ({ kind: 'image_program_missing', said }),
  ],
  [
    ['permission denied ... unknown', 'exec: ... permission denied'],
    said => ({ kind: 'image_program_not_executable', said }),
  ],
  [['exec format error'], () => ({ kind: 'image_of_other_processor' })],
  [['bind source path does not exist'], () => ({ kind: 'volume_unseen' })],
  [['network ... not found'], said => ({ kind: 'network_gone', said })],
]

const MAX_MESSAGE = 400
/** Characters of a message that are read: white space among them is joined. */
const MAX_READ = 8_000

/** A message as one line of bounded length. */
export function clean(text: string): string {
  const line = text
    .slice(0, MAX_READ)
    .replace(/\p{C}+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  return line.length > MAX_MESSAGE ? `${line.slice(0, MAX_MESSAGE)}...` : line
}
