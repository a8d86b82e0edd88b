import { stripVTControlCharacters, styleText } from 'node:util'

/** A column: its title and the text of a row in it. */
export interface Column {
  readonly title: string
  readonly text: (row: TableRow) => string
}

/** A resource as the server shows it. */
export type TableRow = Readonly<Record<string, unknown>>

/** The longest text of a cell; what is longer is cut, and whole in JSON. */
const MAX_CELL = 60

/** Columns are not made narrower than this. */
const LEAST_WIDTH = 8
const GAP = '  '

/**
 * Rows under their titles, in columns as wide as they need to be. Control characters of names are left out. Where the terminal is
 * too narrow the widest columns are cut, but never the first one, which people copy; where that is not enough, each row is a
 * paragraph.
 * @param width how many characters a line has room for; any number unless the output is a terminal
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
  // Some terminals say 0 when they do not know.
  return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY
}

/** The widths of the columns, none wider than wanted; null where they do not fit into a line. */
function fitting(wanted: readonly number[], columns: readonly Column[], width: number): readonly number[] | null {
  const widths = [...wanted]
  const least = columns.map(({ title }, index) =>
    index === 0 ? wanted[0]! : Math.min(wanted[index]!, Math.max(title.length, LEAST_WIDTH)),
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

/** A value as a person reads it. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'string') return value === '' ? '-' : value
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Seconds of UTC, of an instant in milliseconds. */
export function timeText(ms: unknown): string {
  return typeof ms === 'number' ? new Date(ms).toISOString().slice(0, 19).replace('T', ' ') : '-'
}

/** A length of time in its two largest units. */
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

/** A text without what could steer a terminal. */
export function onOneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return stripVTControlCharacters(text).replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, ' ')
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text
}
