/**
 * Place up to which an output was read. An engine hands out entries from a second on, in the order in which they were
 * written; the times in them are not in order, since the parts of a long line all have the time of the first. So a
 * position is a second and the number of entries read from it on.
 */

/** One piece of output: a line with its end, or a part of a long one. */
export interface LogEntry {
  /** Time of writing, as seconds and nanoseconds that sort as text. */
  readonly at: string
  /** 1 for the standard output, 2 for standard error; always 1 where both come as one. */
  readonly stream: number
  readonly text: Buffer
}

/**
 * An instant of RFC 3339 with up to nine digits behind the point, as {@link LogEntry.at}; null when the text is none.
 */
export function entryTime(text: string): string | null {
  const parts = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text)
  if (parts === null) return null
  const [, whole, part = '', zone] = parts
  const seconds = Date.parse(`${whole}${zone}`) / 1000
  return `${String(seconds).padStart(12, '0')}.${part.padEnd(9, '0')}`
}

/** A position, to be kept. */
export interface OutputPlace {
  /** The second, since 1970, from which on entries are asked for. */
  readonly since: number
  /** Number of those that were read. */
  readonly count: number
  /** The times of the first and of the last that was read; empty before them. */
  readonly first: string
  readonly last: string
}

/** Before the first entry. */
export const BEGIN: OutputPlace = { since: 0, count: 0, first: '', last: '' }

/** Entries of one second. */
interface Second {
  count: number
  /** Number of its first entry among all entries, and the time of that entry. */
  readonly ordinal: number
  readonly first: string
}

/** Maximum delay of whole lines of a stream behind newer ones of the other. */
const SLACK_S = 2
/** Maximum number of seconds with output for which a line without an end holds the position back. */
const MAX_SECONDS = 1_000

/** Follows an output, over several times of asking for it. */
export class LogPosition {
  #place: OutputPlace
  /** The place that was asked for, and the number of its entries that have come. */
  #requested: OutputPlace
  #received = 0
  /** True where the engine dropped the oldest entries, so that counting means nothing and times decide. */
  #rotated = false
  #seconds = new Map<number, Second>()
  #since: number
  #newest = 0
  /** Start of the unfinished line of each stream. */
  readonly #unfinished = new Map<number, number>()

  constructor(place: OutputPlace) {
    this.#place = place
    this.#requested = place
    this.#since = place.since
  }

  /** The position behind all entries that were {@link isNew}. */
  get place(): OutputPlace {
    return this.#place
  }

  /** The output is requested from `place.since` on, and begins there. */
  begin(): void {
    this.#requested = this.#place
    this.#received = 0
    this.#rotated = false
    this.#seconds.clear()
    this.#since = this.#place.since
    this.#newest = 0
    this.#unfinished.clear()
  }

  /** True for an entry that was not read before. Must get all entries in their order. */
  isNew(entry: LogEntry): boolean {
    const { count: readCount, first, last } = this.#requested
    this.#received += 1
    if (this.#received === 1 && readCount > 0 && entry.at !== first) this.#rotated = true
    const isNew = this.#rotated ? entry.at > last : this.#received > readCount
    this.#count(entry)
    // Until all entries that were read have come again, the place stays.
    if (this.#rotated || this.#received >= readCount) this.#move(isNew ? entry.at : this.#place.last)
    return isNew
  }

  #count({ at, stream, text }: LogEntry): void {
    const second = Number(at.split('.')[0] || this.#newest)
    this.#newest = Math.max(this.#newest, second)
    if (text.at(-1) === 0x0a) this.#unfinished.delete(stream)
    else if (!this.#unfinished.has(stream)) this.#unfinished.set(stream, second)
    const entries = this.#seconds.get(second)
    if (entries === undefined) this.#seconds.set(second, { count: 1, ordinal: this.#received, first: at })
    else entries.count += 1
  }

  #move(last: string): void {
    const unfinishedSeconds = this.#seconds.size > MAX_SECONDS ? [] : this.#unfinished.values()
    const since = Math.min(this.#newest - SLACK_S, ...unfinishedSeconds)
    if (since > this.#since) {
      this.#since = since
      for (const second of this.#seconds.keys()) if (second < since) this.#seconds.delete(second)
    }
    let count = 0
    let oldest: Second | null = null
    for (const second of this.#seconds.values()) {
      count += second.count
      if (oldest === null || second.ordinal < oldest.ordinal) oldest = second
    }
    this.#place = { since: this.#since, count, first: oldest?.first ?? '', last }
  }
}
