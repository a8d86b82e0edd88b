import { toAppError } from '../../core/errors.ts'
import type { EndpointId, JobId, OwnerId } from '../../core/ids.ts'
import type { JobOutcome } from '../../core/jobs/job.ts'
import { LargeResultReader } from '../../core/jobs/large-result.ts'
import { MAX_RESULT_BYTES } from '../../core/jobs/large-text.ts'
import {
  largestResultRead,
  oversizedResult,
  RESULT_BYTES,
  type ResultReading,
  unreadableResult,
} from '../../core/jobs/result.ts'
import type { LargeTexts, LargeTextWriter, PassingBody } from './large-texts.ts'

/** A large post to job-done that was received wholly. */
export interface ReceivedResult {
  readonly reading: (ResultReading & { readonly kind: 'final' }) | { readonly kind: 'note'; readonly text: string }
  /** Ends the result: gives up its text, unless it has a job. */
  settle(): Promise<void>
}

/** The worker of a result. */
interface Sender {
  readonly owner: OwnerId
  readonly endpointId: EndpointId
}

/**
 * Results that are larger than what is held in memory: stored in parts as they arrive. The parts belong to nobody
 * until the end of the job takes them, so a result that breaks off leaves nothing but them.
 */
export class LargeResults {
  readonly #texts
  readonly #statusUrl

  /** Limit of a result, in bytes. */
  readonly maxBytes: number

  /** @param statusUrl the address at which clients read a job */
  constructor(
    texts: LargeTexts,
    options: {
      readonly maxBytes?: number | undefined
      readonly statusUrl: (endpointId: EndpointId, jobId: JobId) => string
    },
  ) {
    this.#texts = texts
    this.#statusUrl = options.statusUrl
    this.maxBytes = options.maxBytes ?? MAX_RESULT_BYTES.default
  }

  /** The limits within which a post to job-done is read. */
  get bodyLimit(): { keptBytes: number; readBytes: number; passedBytes?: number } {
    const { kept: keptBytes } = RESULT_BYTES
    const isDefault = this.maxBytes <= keptBytes
    return { keptBytes, readBytes: largestResultRead(this.maxBytes), ...(!isDefault && { passedBytes: this.maxBytes }) }
  }

  /** The outcome of a job whose result is too large. */
  tooLarge(bytes: number, atLeast: boolean): JobOutcome {
    return oversizedResult(bytes, atLeast, this.maxBytes)
  }

  /**
   * Receives a result of a worker to its end, and stores its output.
   * @param isKept false to store nothing: the outcome then has no output
   * @throws AppError `invalid` when the connection ended before, `unavailable` when the store failed: the worker sends
   * it again
   */
  async receive(
    { owner, endpointId }: Sender,
    jobId: JobId,
    body: PassingBody,
    isKept: boolean,
  ): Promise<ReceivedResult> {
    const writer = this.#texts.write(owner, 'output')
    const draft = new Draft(writer, isKept)
    try {
      const { bytes, isWhole } = await this.#readInto(draft, body)
      const url = this.#statusUrl(endpointId, jobId)
      const reading = bytes > this.maxBytes ? final(this.tooLarge(bytes, !isWhole)) : await draft.end(bytes, url)
      return { reading, settle: () => writer.settle() }
    } catch (error) {
      await writer.settle()
      throw error
    }
  }

  async #readInto(draft: Draft, body: PassingBody): Promise<{ bytes: number; isWhole: boolean }> {
    let bytes = 0
    for await (const piece of body.pieces) {
      bytes += piece.byteLength
      if (bytes > this.bodyLimit.readBytes) {
        body.drop()
        return { bytes, isWhole: false }
      }
      if (bytes > this.maxBytes) draft.refuse()
      await draft.add(piece)
    }
    return { bytes, isWhole: true }
  }
}

/** A result while it is received. */
class Draft {
  readonly #writer
  readonly #isKept
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  readonly #reader = new LargeResultReader(part => this.#take(part))
  /** The outcome where it is known before the end; the rest is dropped. */
  #refusal: (ResultReading & { readonly kind: 'final' }) | null = null
  #isRefused = false

  constructor(writer: LargeTextWriter, isKept: boolean) {
    this.#writer = writer
    this.#isKept = isKept
  }

  /** Stores no more of it. */
  refuse(): void {
    this.#isRefused = true
    this.#writer.drop()
  }

  async add(piece: Uint8Array): Promise<void> {
    if (this.#isRefused) return
    this.#read(piece)
    await this.#store(false)
  }

  /** The result, once all of it was added. @param url the address at which clients read the job */
  async end(bytes: number, url: string): Promise<ReceivedResult['reading']> {
    if (!this.#isRefused) this.#read(null)
    if (this.#refusal !== null) return this.#refusal
    const reading = this.#reader.end()
    if (reading.kind === 'progress')
      return {
        kind: 'note',
        text: `a progress update of ${bytes} bytes was not kept: the limit is ${RESULT_BYTES.kept}`,
      }
    // A refused text has no output.
    if (this.#isRefused || this.#reader.isRefused) return reading
    const { outcome } = reading
    const writer = this.#writer
    if (!writer.isBegun) return { ...reading, outcome: { ...outcome, output: writer.waiting || null } }
    await this.#store(true)
    if (this.#refusal !== null) return this.#refusal
    if (writer.bytes <= RESULT_BYTES.kept) return { ...reading, outcome: { ...outcome, output: await writer.joined() } }
    return { ...reading, outcome: { ...outcome, largeOutput: { ...writer.text, url } } }
  }

  /** @param piece null for the end */
  #read(piece: Uint8Array | null): void {
    try {
      this.#reader.push(piece === null ? this.#decoder.decode() : this.#decoder.decode(piece, { stream: true }))
    } catch {
      this.#refusal = unreadableResult() as ResultReading & { readonly kind: 'final' }
    }
    if (this.#refusal !== null || this.#reader.isRefused) this.refuse()
  }

  #take(part: string): void {
    if (this.#isKept && !this.#isRefused) this.#writer.add(part)
  }

  /** Stores what waits. One without room for its account fails its job. */
  async #store(rest: boolean): Promise<void> {
    try {
      await (rest ? this.#writer.storeRest() : this.#writer.storeWhole())
    } catch (error) {
      const { code, message } = toAppError(error)
      if (code !== 'rate_limited') throw error
      const reason = `the result was not kept: ${message}`
      this.#refusal = final({ status: 'FAILED', output: null, error: reason, warning: null })
      this.refuse()
    }
  }
}

function final(outcome: JobOutcome): ResultReading & { readonly kind: 'final' } {
  return { kind: 'final', refresh: false, outcome }
}
