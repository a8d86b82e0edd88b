/** Calls back once after a number of milliseconds. */
export type Timer = (ms: number, callback: () => void) => void

/** Writes one line. */
type Write<Name extends string> = (name: Name, fields: object) => void

const PERIOD_MS = 60_000
/** Limit of subjects with lines of their own; all others of one name share a line a minute. */
const MAX_SUBJECTS = 1_000

/** Events since the latest line. */
interface Since {
  count: number
  latest: object
}

/**
 * Limits lines that others can cause at any rate: the first about a subject is written at once, and those of each
 * minute after it as one line, with the fields of the latest and their count.
 */
export class LogRateLimit<Name extends string> {
  readonly #write
  readonly #after
  readonly #maxSubjects
  readonly #since = new Map<string, Since>()

  constructor(write: Write<Name>, after: Timer, maxSubjects = MAX_SUBJECTS) {
    this.#write = write
    this.#after = after
    this.#maxSubjects = maxSubjects
  }

  /** @param fields those of the line; a `count` among them is the number of events of the line, 1 by default */
  add(name: Name, subject: string, fields: object): void {
    const count = 'count' in fields ? Number(fields.count) : 1
    const subjectKey = `${name} ${subject}`
    const key = this.#since.has(subjectKey) || this.#since.size < this.#maxSubjects ? subjectKey : name
    const since = this.#since.get(key)
    if (since !== undefined) {
      since.count += count
      since.latest = fields
      return
    }
    this.#write(name, { ...fields, count })
    this.#since.set(key, { count: 0, latest: fields })
    this.#after(PERIOD_MS, () => this.#end(name, key))
  }

  #end(name: Name, key: string): void {
    const since = this.#since.get(key)!
    if (since.count === 0) {
      this.#since.delete(key)
      return
    }
    this.#write(name, { ...since.latest, count: since.count })
    since.count = 0
    this.#after(PERIOD_MS, () => this.#end(name, key))
  }
}
