/**
 * What has to be known of a worker's output beside the output itself: where its two files lie in the whole of it, and when
 * it had grown how far. It is kept in a journal beside them, one entry a line, so that a kill of the server at any moment
 * loses nothing of it.
 *
 *     a <begin> <older begin> <older end>   where the file begins, and what the older part holds
 *     c <begin> <older begin>               the older part is about to be replaced, and the file to be emptied
 *     m <position> <epoch ms>               what stands in front of the position was there at that time
 */
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { firstIndex } from '../../core/first-index.ts'

/** Limit of marks; past it the older half is made coarser. */
const MAX_MARKS = 8_192

/** Positions in the whole output. */
export interface Layout {
  /** Where the file begins. */
  readonly begin: number
  /** What the older part holds; nothing where both are equal. */
  readonly olderBegin: number
  readonly olderEnd: number
}

/** The journal of one output. */
export class WorkerLogJournal {
  readonly #file: string
  #layout: Layout = { begin: 0, olderBegin: 0, olderEnd: 0 }
  #cutting: { begin: number; olderBegin: number } | null = null
  #positions: number[] = []
  #times: number[] = []

  /** Reads the journal; `isNew` when there is none. */
  constructor(file: string) {
    this.#file = file
    const text = readIfThere(file)
    this.isNew = text === null
    for (const line of (text ?? '').split('\n').slice(0, -1)) this.#replay(line)
  }

  /** Whether there was no journal. */
  readonly isNew: boolean

  get layout(): Layout {
    return this.#layout
  }

  /** A cut that was begun and not ended; its server was killed. */
  get cutting(): { readonly begin: number; readonly olderBegin: number } | null {
    return this.#cutting
  }

  /** How far the output is known to have grown. */
  get end(): number {
    return Math.max(this.#layout.begin, this.#positions.at(-1) ?? 0)
  }

  /** The first position that is kept. */
  get oldest(): number {
    const { begin, olderBegin, olderEnd } = this.#layout
    return olderBegin < olderEnd ? olderBegin : begin
  }

  /** Notes that the output had grown to `end` at an instant. */
  note(end: number, tsMs: number): void {
    if (end <= this.end) return
    const ms = Math.max(Math.floor(tsMs), this.#times.at(-1) ?? 0)
    this.#mark(end, ms)
    // A full disk costs the exact times and nothing else.
    ignoringProblems(() => appendFileSync(this.#file, `m ${end} ${ms}\n`, { mode: 0o600 }))
    if (this.#positions.length > MAX_MARKS) this.#thin()
  }

  /** When the byte in front of a position had been written. */
  timeAt(position: number): number {
    const index = firstIndex(this.#positions, found => found >= position)
    return this.#times[index] ?? this.#times.at(-1) ?? 0
  }

  /** Where what was written at an instant or after it begins. */
  startOf(tsMs: number): number {
    const index = firstIndex(this.#times, found => found >= tsMs)
    return Math.max(this.oldest, index === 0 ? 0 : this.#positions[index - 1]!)
  }

  /** Sets where the files lie, all at once. Marks in front of what is kept go. */
  place(layout: Layout): void {
    this.#layout = layout
    this.#cutting = null
    const gone = firstIndex(this.#positions, found => found > this.oldest)
    this.#positions.splice(0, gone)
    this.#times.splice(0, gone)
    this.#rewrite()
  }

  /** Notes that the older part is about to be replaced. */
  beginCut(begin: number, olderBegin: number): void {
    appendFileSync(this.#file, `c ${begin} ${olderBegin}\n`, { mode: 0o600 })
    this.#cutting = { begin, olderBegin }
  }

  #replay(line: string): void {
    const [kind, ...words] = line.split(' ')
    const [a, b, c] = words.map(Number)
    if (words.some(word => !/^\d{1,15}$/.test(word))) return
    if (kind === 'm' && words.length === 2) this.#mark(a!, b!)
    else if (kind === 'c' && words.length === 2) this.#cutting = { begin: a!, olderBegin: b! }
    else if (kind === 'a' && words.length === 3) {
      this.#layout = { begin: a!, olderBegin: b!, olderEnd: c! }
      this.#cutting = null
    }
  }

  #mark(position: number, ms: number): void {
    if (this.#times.at(-1) === ms) {
      this.#positions[this.#positions.length - 1] = position
      return
    }
    this.#positions.push(position)
    this.#times.push(ms)
  }

  #thin(): void {
    const half = this.#positions.length / 2
    const stays = (_value: number, index: number) => index >= half || index % 2 === 1
    this.#positions = this.#positions.filter(stays)
    this.#times = this.#times.filter(stays)
    ignoringProblems(() => this.#rewrite())
  }

  #rewrite(): void {
    const { begin, olderBegin, olderEnd } = this.#layout
    const marks = this.#positions.map((position, index) => `m ${position} ${this.#times[index]}\n`)
    const cutting = this.#cutting === null ? '' : `c ${this.#cutting.begin} ${this.#cutting.olderBegin}\n`
    const draft = `${this.#file}.new`
    writeFileSync(draft, `a ${begin} ${olderBegin} ${olderEnd}\n${marks.join('')}${cutting}`, { mode: 0o600 })
    renameSync(draft, this.#file)
  }
}

/** Removes a journal. */
export function removeJournal(file: string): void {
  rmSync(file, { force: true })
  rmSync(`${file}.new`, { force: true })
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
