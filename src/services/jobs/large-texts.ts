import { AppError } from '../../core/errors.ts'
import type { OwnerId } from '../../core/ids.ts'
import {
  LARGE_PART_CHARACTERS,
  type LargeText,
  type LargeTextKind,
  type ReceivedText,
} from '../../core/jobs/large-text.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Quotas } from '../accounts/quotas.ts'

/** Time after its last part at which a text that belongs to no job is removed; the slowest body takes less. */
const UNUSED_MS = 30 * 60_000
/** Maximum number of parts that one transaction removes. */
const REMOVED_PARTS = 32
/**
 * Limits of one call of {@link LargeTexts.removeUnused}. Each second it removes more than clients can send in it;
 * otherwise the database would grow without an end.
 */
const REMOVAL = { transactions: 32, forMs: 250 } as const

/** A body that is passed on as it arrives. */
export interface PassingBody {
  /** Throws AppError `invalid` when the connection ends before the body. */
  readonly pieces: AsyncIterable<Uint8Array>
  /** Its size as its head says; null if it does not. */
  readonly announcedBytes: number | null
  /** Reads the rest and drops it. */
  drop(): void
}

/** Inputs and outputs that are larger than what is held in memory: stored in parts, and read in parts. */
export class LargeTexts {
  readonly #ports
  readonly #quotas

  constructor(ports: Ports, quotas: Quotas) {
    this.#ports = ports
    this.#quotas = quotas
  }

  /** Begins a text of an account. Whoever begins it settles it in the end ({@link LargeTextWriter.settle}). */
  write(owner: OwnerId, kind: LargeTextKind): LargeTextWriter {
    return new LargeTextWriter(this.#ports, this.#quotas, { id: this.#ports.random.uuid(), owner, kind })
  }

  /**
   * A text, part by part.
   * @throws AppError `not_found` when it is gone, `internal` when it was changed on the disk or cannot be opened,
   * `unavailable` when the store failed
   */
  async *read({ id, bytes }: LargeText): AsyncGenerator<string, void> {
    let left = bytes
    for (let seq = 0; left > 0; seq += 1) {
      const text = await this.#ports.store.largeTexts.part(id, seq)
      if (text === null) throw new AppError('not_found', 'the text was removed while it was read')
      left -= Buffer.byteLength(text)
      yield text
    }
  }

  /** Removes some parts of texts that neither a job nor a record has. True when there may be more. */
  async removeUnused(nowMs: number): Promise<boolean> {
    const { store, clock } = this.#ports
    const endMs = clock.monotonic() + REMOVAL.forMs
    for (let made = 0; made < REMOVAL.transactions && clock.monotonic() < endMs; made += 1) {
      if (!(await store.largeTexts.removeUnused(nowMs - UNUSED_MS, REMOVED_PARTS))) return false
    }
    return true
  }
}

/** A large text while it is received. Its parts count towards the limits of its account until it is settled. */
export class LargeTextWriter {
  readonly #ports
  readonly #quotas
  readonly #text
  /** The end of the text, which is not stored yet. */
  #waiting = ''
  #parts = 0
  #bytes = 0
  /** Those of them that count for the account. */
  #countedBytes = 0

  constructor(
    ports: Ports,
    quotas: Quotas,
    text: { readonly id: string; readonly owner: OwnerId; readonly kind: LargeTextKind },
  ) {
    this.#ports = ports
    this.#quotas = quotas
    this.#text = text
  }

  /** The characters that are not stored yet. */
  get waiting(): string {
    return this.#waiting
  }

  /** Bytes that are stored. */
  get bytes(): number {
    return this.#bytes
  }

  /** True once a part is stored. */
  get isBegun(): boolean {
    return this.#parts > 0
  }

  /** The stored text. */
  get text(): ReceivedText {
    return { id: this.#text.id, bytes: this.#bytes, parts: this.#parts }
  }

  /** Adds characters, which are stored by the next {@link storeWhole} or {@link storeRest}. */
  add(characters: string): void {
    this.#waiting += characters
  }

  /** Drops what is not stored yet. */
  drop(): void {
    this.#waiting = ''
  }

  /**
   * Stores what waits, as far as it makes whole parts.
   * @throws AppError `rate_limited` when the account keeps too much, `unavailable` when the store failed or the text
   * was given up, because it came too slowly
   */
  async storeWhole(): Promise<void> {
    while (this.#waiting.length >= LARGE_PART_CHARACTERS) await this.#store()
  }

  /** Stores all that waits. @throws AppError as {@link storeWhole} */
  async storeRest(): Promise<void> {
    while (this.#waiting !== '') await this.#store()
  }

  async #store(): Promise<void> {
    const { id, owner, kind } = this.#text
    const { store, clock } = this.#ports
    const end = partEnd(this.#waiting, LARGE_PART_CHARACTERS)
    const text = this.#waiting.slice(0, end)
    const bytes = Buffer.byteLength(text)
    await this.#quotas.admitReceived(owner, bytes)
    this.#countedBytes += bytes
    this.#waiting = this.#waiting.slice(end)
    const part = { id, kind, owner, seq: this.#parts, text, nowMs: clock.now() }
    this.#parts += 1
    this.#bytes += bytes
    if (await store.largeTexts.append(part)) return
    throw new AppError('unavailable', `the ${noun(kind)} came too slowly; it has to be sent again`)
  }

  /** The stored text as one. @throws AppError `unavailable` when parts of it are gone, or the store failed */
  async joined(): Promise<string> {
    const { id, kind } = this.#text
    const parts: string[] = []
    for (let seq = 0; seq < this.#parts; seq += 1) {
      const part = await this.#ports.store.largeTexts.part(id, seq)
      if (part === null)
        throw new AppError('unavailable', `parts of the ${noun(kind)} were removed; it has to be sent again`)
      parts.push(part)
    }
    return parts.join('')
  }

  /** Notes that its job has the text, and counts it from now on. */
  keep(): void {
    this.#quotas.keepReceived(this.#text.owner, this.#countedBytes)
    this.#countedBytes = 0
  }

  /**
   * Ends the text: removes it, unless it has a job. Its bytes count until then; otherwise bodies that break off would
   * fill the disk. One that cannot be removed, since the store fails, is removed later.
   */
  async settle(): Promise<void> {
    const { largeTexts } = this.#ports.store
    try {
      let mayHaveMore = this.#parts > 0
      while (mayHaveMore) mayHaveMore = await largeTexts.giveUp(this.#text.id, REMOVED_PARTS)
    } catch {
      // The upkeep removes it.
    }
    this.#quotas.releaseReceived(this.#text.owner, this.#countedBytes)
    this.#countedBytes = 0
  }
}

function noun(kind: LargeTextKind): string {
  return kind === 'input' ? 'input' : 'result'
}

/** The end of the first part of a text; a surrogate pair is not cut. */
function partEnd(text: string, characters: number): number {
  const last = text.charCodeAt(characters - 1)
  return last >= 0xd800 && last <= 0xdbff ? characters + 1 : characters
}
