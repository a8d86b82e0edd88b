/** The lines of a buffer that pass a filter, found as they arrive. */
import type { LogBuffer } from './log-buffer.ts'
import { LEVELS, type Level, type LineKind, type LogLine } from './log-line.ts'
import { RowHeights } from './row-heights.ts'

/** Filter of lines. */
export interface LogFilter {
  /** Least severe level that is shown; null for all lines. */
  readonly level: Level | null
  readonly kind: Exclude<LineKind, 'notice'> | null
  /** The searched expression; null for none. */
  readonly search: RegExp | null
  /** True if only matching lines are shown. */
  readonly onlyMatches: boolean
  /** Number of lines around each match that are shown with it, while a filter hides others. */
  readonly context: number
}

/** Number of characters of a line that are searched and shown; the rest is shown on demand. */
export const MAX_SHOWN = 2_000

/** Number of lines between two reads of the clock. */
const STRIDE = 256

/** Rows: the numbers of the shown lines, and the height of each row. */
export class LogView {
  readonly #buffer
  readonly #filter
  readonly #rows = new SortedNumbers()
  readonly #context = new SortedNumbers()
  readonly #matches = new SortedNumbers()
  /** Newest hidden lines, which may become context. */
  #hidden: number[] = []
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

  /** Number of matching lines. */
  get matchCount(): number {
    return this.#matches.length
  }

  /** Number of the first line that was not scanned yet. */
  get seenUntil(): number {
    return this.#next
  }

  /** Characters of the longest row that was shown. */
  get longest(): number {
    return this.#longest
  }

  /** Number of the line in a row. */
  numberAt(row: number): number | undefined {
    return this.#rows.at(row)
  }

  /** Row of a line, or of the next one that is shown. */
  findRow(number: number): number {
    return this.#rows.indexOf(number)
  }

  isContext(number: number): boolean {
    return this.#context.at(this.#context.indexOf(number)) === number
  }

  /** The next or previous match from a line, wrapping around the end. @returns its index, or null without a match */
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

  /** Scans new lines for some milliseconds. @returns true if all lines up to `end` were scanned */
  advance(end: number, budgetMs: number): boolean {
    const untilMs = performance.now() + budgetMs
    while (this.#next < end) {
      const stop = Math.min(end, this.#next + STRIDE)
      while (this.#next < stop) this.#look()
      if (this.#next < end && performance.now() >= untilMs) return false
    }
    return true
  }

  /** Drops lines that the buffer has dropped. */
  trim(): void {
    const { first } = this.#buffer
    this.#heights.drop(this.#rows.dropBelow(first))
    this.#context.dropBelow(first)
    this.#matches.dropBelow(first)
    this.#hidden = this.#hidden.filter(number => number >= first)
    this.#next = Math.max(this.#next, first)
  }

  /** Lays out the rows again, for another width. */
  wrap(columns: number): void {
    this.#heights = new RowHeights(columns)
    for (let row = 0; row < this.count; row += 1) this.#heights.add(lineWidth(this.#buffer.get(this.#rows.at(row)!)!))
  }

  #look(): void {
    const number = this.#next
    this.#next += 1
    const line = this.#buffer.get(number)!
    if (!isWanted(line, this.#filter)) return
    const { search, onlyMatches, context, level } = this.#filter
    const isSoGrave = line.kind === 'notice' || isGrave(line, level)
    const isMatch = search !== null && isSoGrave && hasMatch(line, search)
    if (isMatch) this.#matches.push(number)
    if (line.kind === 'notice' || (isSoGrave && (isMatch || search === null || !onlyMatches))) {
      for (const earlier of this.#hidden) this.#show(earlier, true)
      this.#hidden = []
      this.#after = context
      this.#show(number, false)
    } else if (this.#after > 0) {
      this.#after -= 1
      this.#show(number, true)
    } else if (context > 0) {
      this.#hidden.push(number)
      if (this.#hidden.length > context) this.#hidden.shift()
    }
  }

  #show(number: number, isContext: boolean): void {
    this.#rows.push(number)
    if (isContext) this.#context.push(number)
    const width = lineWidth(this.#buffer.get(number)!)
    this.#heights.add(width)
    this.#longest = Math.max(this.#longest, width)
  }
}

/** True for a line that passes the filter, without regard to context. */
export function isHit(line: LogLine, filter: LogFilter): boolean {
  if (line.kind === 'notice') return true
  const isFoundToo = !filter.onlyMatches || filter.search === null || hasMatch(line, filter.search)
  return isWanted(line, filter) && isGrave(line, filter.level) && isFoundToo
}

/** The expression of a typed text. @throws SyntaxError for an invalid regular expression */
export function searchPattern(text: string, isExpression: boolean): RegExp | null {
  if (text === '') return null
  return new RegExp(isExpression ? text : text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'), 'gi')
}

/** Ranges of a text that match; empty matches are left out. */
export function findRanges(text: string, search: RegExp): { readonly from: number; readonly to: number }[] {
  const ranges: { from: number; to: number }[] = []
  for (const { index, 0: match } of text.matchAll(search)) {
    if (match !== '') ranges.push({ from: index, to: index + match.length })
  }
  return ranges
}

function hasMatch(line: LogLine, search: RegExp): boolean {
  search.lastIndex = 0
  return search.test(line.text.length > MAX_SHOWN ? line.text.slice(0, MAX_SHOWN) : line.text)
}

function isWanted({ kind }: LogLine, filter: LogFilter): boolean {
  return filter.kind === null || kind === 'notice' || kind === filter.kind
}

/** True for a line of at least a level. Lines without a level count as `info`. */
function isGrave({ level }: LogLine, least: Level | null): boolean {
  return least === null || LEVELS.indexOf(level ?? 'info') <= LEVELS.indexOf(least)
}

/** Characters that terminals show two columns wide, such as those of Chinese and Japanese, and emoji. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/g
const BEYOND_LATIN = /[\u1000-\uffff]/

/** Columns of a line; a surrogate pair counts two, since most are emoji. */
function lineWidth({ text }: LogLine): number {
  if (text.length > MAX_SHOWN) return MAX_SHOWN + REST_COLUMNS
  return text.length + (BEYOND_LATIN.test(text) ? (text.match(WIDE)?.length ?? 0) : 0)
}

/** Columns for the button that shows the rest of a line. */
const REST_COLUMNS = 24

/** Rising numbers: added at the end, dropped at the beginning, found by binary search. */
class SortedNumbers {
  #numbers: number[] = []
  #head = 0

  get length(): number {
    return this.#numbers.length - this.#head
  }

  at(index: number): number | undefined {
    return this.#numbers[this.#head + index]
  }

  push(number: number): void {
    this.#numbers.push(number)
  }

  /** Index of the first number that is not smaller; the length where all are. */
  indexOf(number: number): number {
    let [low, high] = [this.#head, this.#numbers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#numbers[middle]! < number) low = middle + 1
      else high = middle
    }
    return low - this.#head
  }

  /** Drops the numbers below one. Returns the number of dropped ones. */
  dropBelow(number: number): number {
    const count = this.indexOf(number)
    this.#head += count
    if (this.#head > 25_000) {
      this.#numbers = this.#numbers.slice(this.#head)
      this.#head = 0
    }
    return count
  }
}
