/**
 * Sizes of the output of a worker over time, in a journal beside the output, one entry a line, so that a kill of the
 * server at any moment loses nothing of it.
 *     m <position> <epoch ms>   the bytes in front of the position existed at that time
 */
import { appendFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { firstIndex } from '../../core/first-index.ts'

/** Limit of marks; past it the older half is made coarser. */
const MAX_MARKS = 8_192

/** The journal of one output. */
export class WorkerLogJournal {
  readonly #file
  #positions: number[] = []
  #times: number[] = []

  /** Reads the journal, if it exists. */
  constructor(file: string) {
    this.#file = file
    for (const line of (readIfThere(file) ?? '').split('\n').slice(0, -1)) this.#replay(line)
  }

  /** Size of the output at the last mark. */
  get end(): number {
    return this.#positions.at(-1) ?? 0
  }

  /** Records that the output had grown to `end` at an instant. @param oldest the first kept position */
  note(end: number, tsMs: number, oldest: number): void {
    if (end <= this.end) return
    const ms = Math.max(Math.floor(tsMs), this.#times.at(-1) ?? 0)
    this.#mark(end, ms)
    // A full disk costs only the exact times.
    ignoringProblems(() => appendFileSync(this.#file, `m ${end} ${ms}\n`, { mode: 0o600 }))
    if (this.#positions.length > MAX_MARKS) this.#thin(oldest)
  }

  /** Time at which the byte in front of a position existed. */
  timeAt(position: number): number {
    const index = firstIndex(this.#positions, entry => entry >= position)
    return this.#times[index] ?? this.#times.at(-1) ?? 0
  }

  /** Position of the output since an instant; perhaps before the first kept one. */
  startAt(tsMs: number): number {
    const index = firstIndex(this.#times, entry => entry >= tsMs)
    return index === 0 ? 0 : this.#positions[index - 1]!
  }

  #replay(line: string): void {
    const [kind, ...words] = line.split(' ')
    const [position, ms] = words.map(Number)
    if (kind !== 'm' || words.length !== 2 || words.some(word => !/^\d{1,15}$/.test(word))) return
    this.#mark(position!, ms!)
  }

  #mark(position: number, ms: number): void {
    if (this.#times.at(-1) === ms) {
      this.#positions[this.#positions.length - 1] = position
      return
    }
    this.#positions.push(position)
    this.#times.push(ms)
  }

  /** Drops marks in front of the stored output, and every second mark of the older half. */
  #thin(oldest: number): void {
    const droppedCount = firstIndex(this.#positions, entry => entry > oldest)
    this.#positions.splice(0, droppedCount)
    this.#times.splice(0, droppedCount)
    const half = this.#positions.length / 2
    const stays = (_value: number, index: number) => index >= half || index % 2 === 1
    this.#positions = this.#positions.filter(stays)
    this.#times = this.#times.filter(stays)
    ignoringProblems(() => this.#rewrite())
  }

  #rewrite(): void {
    const marks = this.#positions.map((position, index) => `m ${position} ${this.#times[index]}\n`)
    writeFileSync(`${this.#file}.new`, marks.join(''), { mode: 0o600 })
    renameSync(`${this.#file}.new`, this.#file)
  }
}

function readIfThere(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw thrown
  }
}

function ignoringProblems(work: () => void): void {
  try {
    work()
  } catch {}
}
