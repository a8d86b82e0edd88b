import { AppError, toAppError } from '../../core/errors.ts'
import type { EndpointId, JobId, OwnerId } from '../../core/ids.ts'
import type { JobOutcome } from '../../core/jobs/job.ts'
import { LARGE_PART_CHARACTERS, type LargeOutput, MAX_RESULT_BYTES } from '../../core/jobs/large-output.ts'
import { LargeResultReader } from '../../core/jobs/large-result.ts'
import {
  largestResultRead,
  oversizedResult,
  RESULT_BYTES,
  type ResultReading,
  unreadableResult,
} from '../../core/jobs/result.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'

/** Time after its last part at which a text that belongs to no job is removed; the slowest body takes less. */
const UNUSED_MS = 30 * 60_000
/** Maximum number of parts that one call of {@link LargeResults.removeUnused} removes. */
const REMOVED_PARTS = 32

/** A body that is passed on as it arrives. */
export interface PassingBody {
  /** Throws AppError `invalid` when the connection ends before the body. */
  readonly pieces: AsyncIterable<Uint8Array>
  /** Reads the rest and drops it. */
  drop(): void
}

/** A large post to job-done that was received wholly. */
export interface ReceivedResult {
  readonly reading: (ResultReading & { readonly kind: 'final' }) | { readonly kind: 'note'; readonly text: string }
  /** The stored text, also that of a refused result; null without one. */
  readonly textId: string | null
  /** Bytes that count for the account until {@link LargeResults.settle}. */
  readonly admittedBytes: number
}

/** The worker of a result. */
interface Sender {
  readonly owner: OwnerId
  readonly endpointId: EndpointId
}

/**
 * Results that are larger than what is held in memory: stored in parts as they arrive, and read in parts again. The
 * parts belong to nobody until the end of the job takes them, so a result that breaks off leaves nothing but them.
 */
export class LargeResults {
  readonly #ports
  readonly #quotas
  readonly #statusUrl

  /** Limit of a result, in bytes. */
  readonly maxBytes: number

  /** @param statusUrl the address at which clients read a job */
  constructor(
    ports: Ports,
    quotas: Quotas,
    options: {
      readonly maxBytes?: number | undefined
      readonly statusUrl: (endpointId: EndpointId, jobId: JobId) => string
    },
  ) {
    this.#ports = ports
    this.#quotas = quotas
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
   * @throws AppError `invalid` when the connection ended before, `unavailable` when the store failed: the worker sends
   * it again
   */
  async receive({ owner, endpointId }: Sender, jobId: JobId, body: PassingBody): Promise<ReceivedResult> {
    const draft = new Draft(this.#ports, this.#quotas, owner)
    try {
      const { bytes, isWhole } = await this.#readInto(draft, body)
      const url = this.#statusUrl(endpointId, jobId)
      const reading = bytes > this.maxBytes ? final(this.tooLarge(bytes, !isWhole)) : await draft.end(bytes, url)
      return { reading, textId: draft.storedId, admittedBytes: draft.admittedBytes }
    } catch (error) {
      await this.settle(owner, { textId: draft.storedId, admittedBytes: draft.admittedBytes })
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

  /** Ends a result: gives up its text, unless it has a job. A text that cannot be given up is removed later. */
  async settle(owner: OwnerId, { textId, admittedBytes }: Omit<ReceivedResult, 'reading'>): Promise<void> {
    this.#quotas.releaseResult(owner, admittedBytes)
    if (textId !== null) await this.#ports.store.largeTexts.giveUp(textId).catch(() => {})
  }

  /**
   * The text of a large output, part by part.
   * @throws AppError `unavailable` when it is gone, or the store failed
   */
  async *texts({ id, bytes }: LargeOutput): AsyncGenerator<string, void> {
    let left = bytes
    for (let seq = 0; left > 0; seq += 1) {
      const text = await this.#ports.store.largeTexts.part(id, seq)
      if (text === null) throw new AppError('unavailable', 'the result was removed while it was read')
      left -= Buffer.byteLength(text)
      yield text
    }
  }

  /** Removes some parts of texts that no job has. True when there may be more. */
  removeUnused(nowMs: number): Promise<boolean> {
    return this.#ports.store.largeTexts.removeUnused(nowMs - UNUSED_MS, REMOVED_PARTS)
  }
}

/** A result while it is received. */
class Draft {
  readonly #ports
  readonly #quotas
  readonly #owner
  readonly #id: string
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  readonly #reader = new LargeResultReader(part => this.#take(part))
  /** The output that is not stored yet. */
  #waiting = ''
  #parts = 0
  #bytes = 0
  /** The outcome where it is known before the end; the rest is dropped. */
  #refusal: (ResultReading & { readonly kind: 'final' }) | null = null
  #isRefused = false

  constructor(ports: Ports, quotas: Quotas, owner: OwnerId) {
    this.#ports = ports
    this.#quotas = quotas
    this.#owner = owner
    this.#id = ports.random.uuid()
  }

  /** The id of the stored text; null before its first part. */
  get storedId(): string | null {
    return this.#parts === 0 ? null : this.#id
  }

  /** Bytes that were counted for the account. */
  get admittedBytes(): number {
    return this.#bytes
  }

  /** Stores no more of it. */
  refuse(): void {
    this.#isRefused = true
    this.#waiting = ''
  }

  async add(piece: Uint8Array): Promise<void> {
    if (this.#isRefused) return
    this.#read(piece)
    while (!this.#isRefused && this.#waiting.length >= LARGE_PART_CHARACTERS) await this.#store(LARGE_PART_CHARACTERS)
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
    if (this.#parts === 0) return { ...reading, outcome: { ...outcome, output: this.#waiting || null } }
    while (!this.#isRefused && this.#waiting !== '') await this.#store(LARGE_PART_CHARACTERS)
    if (this.#refusal !== null) return this.#refusal
    if (this.#bytes <= RESULT_BYTES.kept) return { ...reading, outcome: { ...outcome, output: await this.#joined() } }
    return { ...reading, outcome: { ...outcome, largeOutput: this.#received(url) } }
  }

  #received(url: string) {
    return { id: this.#id, bytes: this.#bytes, parts: this.#parts, url }
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
    if (!this.#isRefused) this.#waiting += part
  }

  /** Stores the next part. */
  async #store(characters: number): Promise<void> {
    const end = partEnd(this.#waiting, characters)
    const text = this.#waiting.slice(0, end)
    this.#waiting = this.#waiting.slice(end)
    const bytes = Buffer.byteLength(text)
    try {
      await this.#quotas.admitResult(this.#owner, bytes)
    } catch (error) {
      const { code, message } = toAppError(error)
      if (code !== 'rate_limited') throw error
      this.#refusal = final({
        status: 'FAILED',
        output: null,
        error: `the result was not kept: ${message}`,
        warning: null,
      })
      this.refuse()
      return
    }
    const { store, clock } = this.#ports
    const part = { id: this.#id, owner: this.#owner, seq: this.#parts, text, nowMs: clock.now() }
    this.#parts += 1
    this.#bytes += bytes
    if (!(await store.largeTexts.append(part)))
      throw new AppError('unavailable', 'the result came too slowly; it has to be sent again')
  }

  async #joined(): Promise<string> {
    const parts: string[] = []
    for (let seq = 0; seq < this.#parts; seq += 1) {
      const part = await this.#ports.store.largeTexts.part(this.#id, seq)
      if (part === null) throw new AppError('unavailable', 'parts of the result were removed; it has to be sent again')
      parts.push(part)
    }
    return parts.join('')
  }
}

function final(outcome: JobOutcome): ResultReading & { readonly kind: 'final' } {
  return { kind: 'final', refresh: false, outcome }
}

/** The end of the first part of a text; a surrogate pair is not cut. */
function partEnd(text: string, characters: number): number {
  const last = text.charCodeAt(characters - 1)
  return last >= 0xd800 && last <= 0xdbff ? characters + 1 : characters
}
