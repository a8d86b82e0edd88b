/** The lines of a buffer that a filter lets through, found as they come. */
import type { LogBuffer } from './log-buffer.ts'
import { LEVELS, type Level, type LineKind, type LogLine } from './log-line.ts'
import { RowHeights } from './row-heights.ts'
import { SortedNumbers } from './sorted-numbers.ts'

/** Which lines are shown. */
export interface LogFilter {
  /** The least grave level that is shown; null for all lines. */
  readonly level: Level | null
  readonly kind: Exclude<LineKind, 'notice'> | null
  /** What is searched; null for nothing. */
  readonly search: RegExp | null
  /** Whether only lines with what is searched are shown. */
  readonly onlyMatches: boolean
  /** Lines around each that are shown with it, where a filter hides others. */
  readonly context: number
}

/** Characters of a line that are searched and shown; the rest is shown on demand. */
export const MAX_SHOWN = 2_000

/** Lines that are looked at between two looks at the clock. */
const STRIDE = 256

/** Rows: the numbers of the shown lines, and how high each row is. */
export class LogView {
  readonly #buffer: LogBuffer
  readonly #filter: LogFilter
  readonly #rows = new SortedNumbers()
  readonly #context = new SortedNumbers()
  readonly #matches = new SortedNumbers()
  /** The newest lines that are not shown and may become context. */
  #before: number[] = []
  #after = 0
  #next: number
  #longest = 0
  #heights: RowHeights

  /** @param columns characters in a line of text of a wrapped row; infinite where rows are not wrapped */
  constructor(buffer: LogBuffer, filter: LogFilter, columns: number) {
    this.#buffer = buffer
    this.#filter = filter
    this.#next = buffer.first
    this.#heights = new RowHeights(columns)
  }

  /** Number of rows. */
  get count(): number {
    return this.#rows.length
  }

  get heights(): RowHeights {
    return this.#heights
  }

  /** Number of lines with what is searched. */
  get matchCount(): number {
    return this.#matches.length
  }

  /** Number of the first line that it has not seen yet. */
  get seenUntil(): number {
    return this.#next
  }

  /** Characters of the longest row that has been shown. */
  get longest(): number {
    return this.#longest
  }

  /** Number of the line in a row. */
  numberAt(row: number): number | undefined {
    return this.#rows.at(row)
  }

  /** Row of a line, or of the next one that is shown. */
  rowOf(number: number): number {
    return this.#rows.indexOf(number)
  }

  isContext(number: number): boolean {
    return this.#context.at(this.#context.indexOf(number)) === number
  }

  /** The next or the previous match of a line, around the end to the other one. @returns its index, or null where there is none */
  matchFrom(number: number, by: 1 | -1): number | null {
    const count = this.#matches.length
    if (count === 0) return null
    const at = by === 1 ? this.#matches.indexOf(number + 1) : this.#matches.indexOf(number) - 1
    return (at + count) % count
  }

  /** Number of the line of a match. */
  matchAt(index: number): number | undefined {
    return this.#matches.at(index)
  }

  /** Looks at lines that it has not seen yet, for some milliseconds. @returns whether it has seen all up to `end` */
  advance(end: number, budgetMs: number): boolean {
    const untilMs = performance.now() + budgetMs
    while (this.#next < end) {
      const stop = Math.min(end, this.#next + STRIDE)
      while (this.#next < stop) this.#look()
      if (this.#next < end && performance.now() >= untilMs) return false
    }
    return true
  }

  /** Forgets lines that the buffer has let go. */
  trim(): void {
    const { first } = this.#buffer
    this.#heights.drop(this.#rows.dropBelow(first))
    this.#context.dropBelow(first)
    this.#matches.dropBelow(first)
    this.#before = this.#before.filter(number => number >= first)
    this.#next = Math.max(this.#next, first)
  }

  /** Lays the rows out anew, for another width. */
  wrap(columns: number): void {
    this.#heights = new RowHeights(columns)
    for (let row = 0; row < this.count; row += 1) this.#heights.add(widthOf(this.#buffer.get(this.#rows.at(row)!)!))
  }

  #look(): void {
    const number = this.#next
    this.#next += 1
    const line = this.#buffer.get(number)!
    if (!isWanted(line, this.#filter)) return
    const { search, onlyMatches, context, level } = this.#filter
    const isSoGrave = line.kind === 'notice' || isGrave(line, level)
    const isMatch = search !== null && isSoGrave && isFound(line, search)
    if (isMatch) this.#matches.push(number)
    if (line.kind === 'notice' || (isSoGrave && (isMatch || search === null || !onlyMatches))) {
      for (const earlier of this.#before) this.#show(earlier, true)
      this.#before = []
      this.#after = context
      this.#show(number, false)
    } else if (this.#after > 0) {
      this.#after -= 1
      this.#show(number, true)
    } else if (context > 0) {
      this.#before.push(number)
      if (this.#before.length > context) this.#before.shift()
    }
  }

  #show(number: number, isContext: boolean): void {
    this.#rows.push(number)
    if (isContext) this.#context.push(number)
    const width = widthOf(this.#buffer.get(number)!)
    this.#heights.add(width)
    this.#longest = Math.max(this.#longest, width)
  }
}

/** Whether a line is one that a filter shows, apart from context. */
export function isHit(line: LogLine, filter: LogFilter): boolean {
  if (line.kind === 'notice') return true
  const isFoundToo = !filter.onlyMatches || filter.search === null || isFound(line, filter.search)
  return isWanted(line, filter) && isGrave(line, filter.level) && isFoundToo
}

/** The expression for what was typed. @throws SyntaxError for a wrong regular expression */
export function searchOf(text: string, isExpression: boolean): RegExp | null {
  if (text === '') return null
  return new RegExp(isExpression ? text : text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'), 'gi')
}

/** Where a text has what is searched; empty matches are none. */
export function foundIn(text: string, search: RegExp): { readonly from: number; readonly to: number }[] {
  const found: { from: number; to: number }[] = []
  for (const { index, 0: match } of text.matchAll(search)) {
    if (match !== '') found.push({ from: index, to: index + match.length })
  }
  return found
}

function isFound(line: LogLine, search: RegExp): boolean {
  search.lastIndex = 0
  return search.test(line.text.length > MAX_SHOWN ? line.text.slice(0, MAX_SHOWN) : line.text)
}

function isWanted({ kind }: LogLine, filter: LogFilter): boolean {
  return filter.kind === null || kind === 'notice' || kind === filter.kind
}

/** Lines that name no level count as `info`. */
function isGrave({ level }: LogLine, least: Level | null): boolean {
  return least === null || LEVELS.indexOf(level ?? 'info') <= LEVELS.indexOf(least)
}

/** Characters that terminals show two columns wide, such as those of Chinese and Japanese, and emoji. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/g
const BEYOND_LATIN = /[\u1000-\uffff]/

/** Columns of a line; a pair of surrogates counts two, as the emoji that most of them are. */
function widthOf({ text }: LogLine): number {
  if (text.length > MAX_SHOWN) return MAX_SHOWN + REST_COLUMNS
  return text.length + (BEYOND_LATIN.test(text) ? (text.match(WIDE)?.length ?? 0) : 0)
}

/** Room for the button that shows the rest of a line. */
const REST_COLUMNS = 24
