import { stripVTControlCharacters, styleText } from 'node:util'

/** A column: its title and the text of a row in it. */
export interface Column {
  readonly title: string
  readonly text: (row: TableRow) => string
}

/** A resource as the server shows it. */
export type TableRow = Readonly<Record<string, unknown>>

/** Maximum characters of a cell. Longer text is cut; JSON output has all of it. */
const MAX_CELL = 60

/** Minimum width of a column. */
const MIN_WIDTH = 8
const GAP = '  '

/**
 * Rows under their titles, in columns as wide as needed, without control characters. If the terminal is too narrow,
 * the widest columns are cut, but never the first one, which people copy. If that is not enough, each row becomes a
 * paragraph.
 * @param width characters per line; unlimited unless the output is a terminal
 */
export function table(columns: readonly Column[], rows: readonly TableRow[], width = terminalWidth()): string {
  const cells = rows.map(row => columns.map(({ text }) => cut(onOneLine(text(row)), MAX_CELL)))
  const wanted = columns.map(({ title }, index) => Math.max(title.length, ...cells.map(line => line[index]!.length)))
  const widths = fitting(wanted, columns, width)
  if (widths === null) return paragraphs(columns, cells)
  const line = (texts: readonly string[]) =>
    texts
      .map((text, index) => cut(text, widths[index]!).padEnd(widths[index]!))
      .join(GAP)
      .trimEnd()
  const head = styleText('bold', line(columns.map(({ title }) => title)), { stream: process.stdout })
  return `${[head, ...cells.map(line)].join('\n')}\n`
}

function terminalWidth(): number {
  // Some terminals report 0 columns if the width is unknown.
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY
}

/** Column widths, at most as wide as wanted; null if they do not fit on a line. */
function fitting(wantedWidths: readonly number[], columns: readonly Column[], width: number): readonly number[] | null {
  const widths = [...wantedWidths]
  const least = columns.map(({ title }, index) =>
    index === 0 ? wantedWidths[0]! : Math.min(wantedWidths[index]!, Math.max(title.length, MIN_WIDTH)),
  )
  const over = () => widths.reduce((sum, one) => sum + one, (widths.length - 1) * GAP.length) - width
  while (over() > 0) {
    const spare = widths.map((one, index) => (one > least[index]! ? one : 0))
    const widest = spare.indexOf(Math.max(...spare))
    if (spare[widest] === 0) return null
    widths[widest]! -= 1
  }
  return widths
}

function paragraphs(columns: readonly Column[], cells: readonly (readonly string[])[]): string {
  const longest = Math.max(...columns.map(({ title }) => title.length))
  const texts = cells.map(line =>
    columns.map(({ title }, index) => `${title.padEnd(longest)}${GAP}${line[index]}\n`).join(''),
  )
  return texts.join('\n')
}

/** A column that shows a member, found by its path. */
export function column(title: string, path: string): Column {
  return { title, text: row => shown(memberAt(row, path)) }
}

/** A value as text for people. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'string') return value === '' ? '-' : value
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** UTC date and time in seconds, of an instant in milliseconds. */
export function timeText(ms: unknown): string {
  return typeof ms === 'number' ? new Date(ms).toISOString().slice(0, 19).replace('T', ' ') : '-'
}

/** The time since an instant in milliseconds, in its largest unit. */
export function ageText(ms: unknown, nowMs = Date.now()): string {
  if (typeof ms !== 'number') return '-'
  const seconds = Math.max(0, Math.floor((nowMs - ms) / 1_000))
  if (seconds < 120) return `${seconds}s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)}m`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)}h` : `${Math.floor(seconds / 86_400)}d`
}

/** A duration in its two largest units. */
export function durationText(ms: unknown): string {
  if (typeof ms !== 'number') return '-'
  if (ms < 1_000) return `${Math.round(ms)}ms`
  const seconds = Math.floor(ms / 1_000)
  const two = (number: number) => String(number).padStart(2, '0')
  if (seconds < 60) return `${Math.floor(ms / 100) / 10}s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  return `${Math.floor(seconds / 3_600)}h${two(Math.floor(seconds / 60) % 60)}m`
}

/** The member of a row at a path such as `workers.min`; undefined where there is none. */
export function memberAt(row: TableRow, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as TableRow | null | undefined)?.[name], row)
}

/** Text without control characters, on one line. */
export function onOneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are removed here.
  return stripVTControlCharacters(text).replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}
