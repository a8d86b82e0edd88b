import type { EndpointId, JobId } from '../../src/core/ids.ts'
import { isFinal, type JobStatus } from '../../src/core/jobs/job.ts'
import type { Chunk, StreamChecker } from '../checks/stream-checker.ts'
import type { Life } from '../life.ts'
import type { Reply } from '../network.ts'
import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { Calls } from './calls.ts'

/** The forms in which a stream can be had. */
export const STREAM_SHAPES = ['envelope', 'array', 'events'] as const
/** One of {@link STREAM_SHAPES}. */
export type StreamShape = (typeof STREAM_SHAPES)[number]

/** What a reader needs. */
export interface StreamParts {
  readonly world: World
  readonly calls: Calls
  readonly life: Life
  readonly random: SeededRandom
  readonly checker: StreamChecker
}

/** How the Python client waits for one part; longer than the server holds it. */
const TIMEOUT_MS = 10_000
/** After this time the server knows of a connection that was hung up, and hands nothing to it any more. */
const HUNG_UP_MS = 5_000

/** Reads a job's stream in one of its forms, asks again after each break, and hands what it gets to a checker. */
export class StreamReader {
  readonly #parts: StreamParts
  readonly #endpoint: EndpointId
  readonly #job: JobId
  readonly #shape: StreamShape
  /** The state of the world when the last part that came was asked for. */
  #mark: number
  #doubted = false

  constructor(parts: StreamParts, endpoint: EndpointId, job: JobId, shape: StreamShape) {
    this.#parts = parts
    this.#endpoint = endpoint
    this.#job = job
    this.#shape = shape
    this.#mark = parts.world.disturbances
  }

  /** Reads to the end: the final status was told, the job is gone, or, in the form without a status, nothing came. */
  async read(): Promise<'ended' | 'gone' | 'empty'> {
    for (;;) {
      const outcome = await (this.#shape === 'events' ? this.#readEvents() : this.#readOnce())
      if (outcome !== 'more') return outcome
    }
  }

  async #readOnce(): Promise<'ended' | 'gone' | 'empty' | 'more'> {
    const { calls, world } = this.#parts
    const accept = this.#shape === 'array' ? 'application/json' : '*/*'
    const asking = { headers: { accept }, timeoutMs: TIMEOUT_MS }
    const mark = world.disturbances
    const reply = await calls.get(this.#endpoint, `stream/${this.#job}`, asking)
    const refused = await this.#refused(reply)
    if (refused !== null) return refused
    if (!reply.ok) return 'more'
    const parsed = JSON.parse(reply.text) as Item[] | { stream: Item[]; status: JobStatus }
    const [items, status] = Array.isArray(parsed) ? [parsed, null] : [parsed.stream, parsed.status]
    this.#got(items, status, mark)
    this.#doubted = reply.loss === 'doubted'
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
    // Whatever was on its way when the connection broke is lost.
    if (!reply.ok) checker.excuse({ missed: true, repeated: true })
    const refused = await this.#refused(reply)
    await life.sleep(random.int(100, 3_000))
    return refused ?? 'more'
  }

  /** What to do where there is no part; null where there is one. */
  async #refused(reply: Reply): Promise<'gone' | 'more' | null> {
    const { life, random, checker, world } = this.#parts
    if (reply.ok && reply.status === 200) return null
    if (reply.ok && reply.status === 404) return 'gone'
    if (reply.ok && reply.status < 500) world.report(`a stream was answered with ${reply.status} ${reply.text}`)
    if (!reply.ok && (reply.loss === 'vanished' || reply.why === 'timeout'))
      checker.excuse({ missed: true, repeated: false })
    await life.sleep(!reply.ok && reply.why === 'timeout' ? HUNG_UP_MS : random.int(100, 3_000))
    return 'more'
  }

  #got(items: readonly Item[], status: JobStatus | null, mark: number): void {
    const { world, checker } = this.#parts
    checker.excuse({ missed: false, repeated: this.#doubted || world.disturbances !== this.#mark })
    const chunks = items.map(({ output }) => output)
    checker.got(chunks, status)
    world.count(`streams: ${this.#shape}`)
    this.#mark = mark
    this.#doubted = false
  }
}

interface Item {
  readonly output: Chunk
}
