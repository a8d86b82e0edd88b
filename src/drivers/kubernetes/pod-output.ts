/** Copies the output of pods, as the API hands it out, to the logs of their workers. */
import { join } from 'node:path'
import { ByteBudget } from '../../core/byte-budget.ts'
import type { WorkerId } from '../../core/ids.ts'
import type { Clock } from '../../ports/clock.ts'
import type { WorkerLogs } from '../../ports/worker-logs.ts'
import { gatherBytes } from '../base/byte-source.ts'
import { COPY_RATE, forgetCopy, LogCopy } from '../base/log-copy.ts'
import { entryTime, type LogEntry } from '../base/log-position.ts'
import type { ByteStream, KubernetesApi } from './api.ts'
import { CONTAINER } from './names.ts'
import type { PodOutput, WorkerPod } from './worker-pod.ts'

/** The outputs of all pods. */
export interface PodOutputs {
  /** Begins to copy the output of a pod, or goes on where an earlier server of this machine stopped. */
  copy(pod: WorkerPod): PodOutput
  /** Forgets the copied part of the output of a worker. */
  forget(worker: WorkerId): void
}

/** Outputs that are followed at once; each takes a connection. More are asked for from time to time. */
const MAX_FOLLOWED = 256
const ASK_AGAIN_MS = 5_000
/** So that thousands of them are no burden for the API. */
const MOST_ASKED_A_SECOND = 25
const RETRY_MS = { first: 500, most: 10_000 }
/** Longer lines come in parts of this length, wherever the stream was cut. */
const MAX_PART_BYTES = 64 * 1024

/**
 * The wait before an output is asked for again, in ms.
 * @param asked number of outputs that are asked for instead of followed
 */
export function askPauseMs(asked: number): number {
  return Math.max(ASK_AGAIN_MS, (asked * 1000) / MOST_ASKED_A_SECOND)
}

/** Copies outputs through the API of a cluster. */
export function createPodOutputs(options: {
  readonly api: KubernetesApi
  readonly namespace: string
  readonly clock: Clock
  readonly logs: WorkerLogs
  /** An existing folder for notes about the copied parts of outputs. */
  readonly stateDir: string
}): PodOutputs {
  const { api, namespace, clock, logs, stateDir } = options
  const budget = new ByteBudget(COPY_RATE, clock)
  let followed = 0
  /** Those that are asked for from time to time. */
  const polled = new Set<WorkerId>()
  const noteFile = (worker: WorkerId) => join(stateDir, `${worker}.json`)
  const copy = (pod: WorkerPod) => {
    let pauseMs = 0
    const read = async (sinceS: number, signal: AbortSignal) => {
      const follows = followed < MAX_FOLLOWED
      if (follows) followed += 1
      if (follows) polled.delete(pod.worker)
      else polled.add(pod.worker)
      const free = () => {
        if (follows) followed -= 1
      }
      try {
        const stream = await api.stream({
          method: 'GET',
          path: `/api/v1/namespaces/${namespace}/pods/${pod.name}/log`,
          query: {
            container: CONTAINER,
            timestamps: 'true',
            follow: String(follows),
            ...(sinceS <= 0 ? {} : { sinceTime: `${new Date(sinceS * 1000).toISOString().slice(0, 19)}Z` }),
          },
          signal,
        })
        pauseMs = follows ? RETRY_MS.first : askPauseMs(polled.size)
        return readEntries(stream, () => pod.isEnding, free)
      } catch (thrown) {
        free()
        pauseMs = Math.min(Math.max(RETRY_MS.first, pauseMs * 2), RETRY_MS.most)
        throw thrown
      }
    }
    const { worker } = pod
    const files = { logFolder: logs.folder(worker), noteFile: noteFile(worker) }
    return new LogCopy({ clock, ...files, budget, read, pauseMs: () => pauseMs })
  }
  const forget = (worker: WorkerId) => {
    polled.delete(worker)
    forgetCopy(noteFile(worker))
  }
  return { copy, forget }
}

/**
 * The entries of an output. What stands behind the last line of a stream that was read to its end is an entry only
 * when no more of that line will come.
 */
async function* readEntries(
  stream: ByteStream,
  isOver: () => boolean,
  ended: () => void,
): AsyncGenerator<readonly LogEntry[]> {
  const lines = new OutputLines()
  try {
    for await (const chunk of gatherBytes(stream)) yield lines.push(chunk)
    if (isOver()) yield lines.rest()
  } finally {
    stream.destroy()
    ended()
  }
}

/** Puts lines with their times together from pieces of a stream. */
export class OutputLines {
  #line: Buffer = Buffer.alloc(0)
  /** The time of the line whose beginning was given out already; null at the beginning of a line. */
  #at: string | null = null

  /** The entries that are whole now. */
  push(chunk: Uint8Array): LogEntry[] {
    const entries: LogEntry[] = []
    let bytes: Buffer = this.#line.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#line, chunk])
    for (;;) {
      const end = bytes.indexOf(10)
      const length = end === -1 ? bytes.length : end + 1
      if (end === -1 && length <= MAX_PART_BYTES) break
      entries.push(...this.#parts(bytes.subarray(0, length), end !== -1))
      bytes = end === -1 ? this.#line : bytes.subarray(length)
      if (end === -1) break
    }
    this.#line = Buffer.from(bytes)
    return entries
  }

  /** The text behind the last line. */
  rest(): LogEntry[] {
    const bytes = this.#line
    this.#line = Buffer.alloc(0)
    return bytes.length === 0 ? [] : this.#parts(bytes, true)
  }

  /** A line in parts of a fixed length; the last of one that goes on is kept. */
  #parts(bytes: Buffer, isWhole: boolean): LogEntry[] {
    const entries: LogEntry[] = []
    let text = bytes
    if (this.#at === null) {
      const blank = bytes.subarray(0, 64).indexOf(0x20)
      const at = blank === -1 ? null : entryTime(bytes.subarray(0, blank).toString('latin1'))
      this.#at = at ?? ''
      if (at !== null) text = bytes.subarray(blank + 1)
    }
    const at = this.#at
    while (text.length > MAX_PART_BYTES) {
      entries.push({ at, stream: 1, text: Buffer.from(text.subarray(0, MAX_PART_BYTES)) })
      text = text.subarray(MAX_PART_BYTES)
    }
    if (isWhole) {
      entries.push({ at, stream: 1, text: Buffer.from(text) })
      this.#at = null
    } else this.#line = Buffer.from(text)
    return entries
  }
}
