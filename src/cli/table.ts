import { stripVTControlCharacters, styleText } from 'node:util'

/** A column: its title and the text of a row in it. */
export interface Column {
  readonly title: string
  readonly text: (row: Row) => string
}

/** A resource as the server shows it. */
export type Row = Readonly<Record<string, unknown>>

/** The longest text of a cell; what is longer is cut, and whole in JSON. */
const MAX_CELL = 60

/** Rows under their titles, in columns as wide as they need to be. Control characters of names are left out. */
export function table(columns: readonly Column[], rows: readonly Row[]): string {
  const cells = rows.map(row => columns.map(({ text }) => cut(plain(text(row)))))
  const widths = columns.map(({ title }, index) => Math.max(title.length, ...cells.map(line => line[index]!.length)))
  const line = (texts: readonly string[]) =>
    texts
      .map((text, index) => text.padEnd(widths[index]!))
      .join('  ')
      .trimEnd()
  const head = styleText('bold', line(columns.map(({ title }) => title)), { stream: process.stdout })
  return `${[head, ...cells.map(line)].join('\n')}\n`
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

/** The member of a row at a path such as `workers.min`; undefined where there is none. */
export function memberAt(row: Row, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Row | null | undefined)?.[name], row)
}

function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return stripVTControlCharacters(text).replaceAll(/[\u0000-\u001f\u007f]/g, ' ')
}

function cut(text: string): string {
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL - 1)}…` : text
}
