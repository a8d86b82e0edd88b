import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { Chunk, StreamChecker } from '../checks/stream-checker.ts'
import type { Life } from '../life.ts'
import type { Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { Calls } from './calls.ts'

/** The forms of a stream. */
export const STREAM_SHAPES = ['envelope', 'array', 'events'] as const
/** One of {@link STREAM_SHAPES}. */
export type StreamShape = (typeof STREAM_SHAPES)[number]

/** Parts that a reader uses. */
export interface StreamParts {
  readonly world: World
  readonly calls: Calls
  readonly life: Life
  readonly random: SeededRandom
  readonly checker: StreamChecker
}

/** Timeout of the Python client for one part; longer than the long poll of the server. */
const TIMEOUT_MS = 10_000
/** Maximum time until the server detects a closed connection and delivers nothing more to it. */
const HUNG_UP_MS = 5_000

/**
 * Reads a job's stream in one of its forms, continues after each lost connection, and passes all chunks to a checker.
 */
export class StreamReader {
  readonly #parts: StreamParts
  readonly #endpoint: EndpointId
  readonly #job: JobId
  readonly #shape: StreamShape
  /** Number of disturbances when the last received part was requested. */
  #mark: number
  #isUncertain = false

  constructor(parts: StreamParts, endpoint: EndpointId, job: JobId, shape: StreamShape) {
    this.#parts = parts
    this.#endpoint = endpoint
    this.#job = job
    this.#shape = shape
    this.#mark = parts.world.disturbances
  }

  /**
   * Reads until the final status arrives, the job was removed, or, in the form without a status, a response is empty.
   */
  async read(): Promise<'ended' | 'gone' | 'empty'> {
    for (;;) {
      const outcome = await (this.#shape === 'events' ? this.#readEvents() : this.#readOnce())
      if (outcome !== 'more') return outcome
    }
  }

  async #readOnce(): Promise<'ended' | 'gone' | 'empty' | 'more'> {
    const { calls, world } = this.#parts
    const accept = this.#shape === 'array' ? 'application/json' : '*/*'
    const options = { headers: { accept }, timeoutMs: TIMEOUT_MS }
    const mark = world.disturbances
    const reply = await calls.get(this.#endpoint, `stream/${this.#job}`, options)
    const refused = await this.#refused(reply)
    if (refused !== null) return refused
    if (!reply.ok) return 'more'
    const parsed = JSON.parse(reply.text) as Item[] | { stream: Item[]; status: JobStatus }
    const [items, status] = Array.isArray(parsed) ? [parsed, null] : [parsed.stream, parsed.status]
    this.#got(items, status, mark)
    this.#isUncertain = reply.loss === 'doubted'
    if (status === null) return items.length === 0 ? 'empty' : 'more'
    return isFinal(status) ? 'ended' : 'more'
  }

  async #readEvents(): Promise<'ended' | 'gone' | 'more'> {
    const { calls, life, random, checker } = this.#parts
    let ended = false
    let rest = ''
    const onPart = (text: string, mark: number) => {
      const events = (rest + text).split('\n\n')
      rest = events.pop() ?? ''
      const items = events.filter(event => event.startsWith('data: ')).map(event => JSON.parse(event.slice(6)) as Item)
      const end = events.find(event => event.startsWith('event: status'))
      const status =
        end === undefined ? null : (JSON.parse(end.slice(end.indexOf('{'))) as { status: JobStatus }).status
      ended ||= status !== null
      this.#got(items, status, mark)
    }
    const timeoutMs = random.chance(0.3) ? random.int(500, 6_000) : 100_000
    const headers = { accept: 'text/event-stream' }
    const reply = await calls.get(this.#endpoint, `stream/${this.#job}`, { headers, timeoutMs, onPart })
    if (ended) return 'ended'
    // Chunks that were under way when the connection broke are lost.
    if (!reply.ok) checker.excuse({ missed: true, repeated: true })
    const refused = await this.#refused(reply)
    await life.sleep(random.int(100, 3_000))
    return refused ?? 'more'
  }

  /** Next step after a response without a part; null if it has a part. */
  async #refused(reply: Reply): Promise<'gone' | 'more' | null> {
    const { life, random, checker, world } = this.#parts
    if (reply.ok && reply.status === 200) return null
    if (reply.ok && reply.status === 404) return 'gone'
    if (reply.ok && reply.status < 500) world.report(`a stream got ${reply.status} ${reply.text}`)
    if (!reply.ok && (reply.loss === 'vanished' || reply.why === 'timeout'))
      checker.excuse({ missed: true, repeated: false })
    await life.sleep(!reply.ok && reply.why === 'timeout' ? HUNG_UP_MS : random.int(100, 3_000))
    return 'more'
  }

  #got(items: readonly Item[], status: JobStatus | null, mark: number): void {
    const { world, checker } = this.#parts
    checker.excuse({ missed: false, repeated: this.#isUncertain || world.disturbances !== this.#mark })
    const chunks = items.map(({ output }) => output)
    checker.got(chunks, status)
    world.count(`streams: ${this.#shape}`)
    this.#mark = mark
    this.#isUncertain = false
  }
}

interface Item {
  readonly output: Chunk
}
