import type { RoundOptions } from './rounds.ts'
import type { Bench } from './sides.ts'

/** A benchmark. */
export interface Suite {
  readonly name: string
  /** Heading of its section. */
  readonly title: string
  /** Explanation for the reader of its tables. */
  readonly notes?: string
  /** True if it belongs to the short run of each submission. */
  readonly quick: boolean
  /** Starts the sides, and measures them. */
  run(bench: Bench, effort: RoundOptions, wants: (side: string) => boolean): Promise<readonly Table[]>
}

/** A table of results. */
export interface Table {
  readonly title: string
  readonly columns: readonly Column[]
  /** Index of the column that the chart shows; null for no chart. */
  readonly bars: number | null
  readonly rows: readonly TableRow[]
  /**
   * Figures by their names that depend on no machine, such as the throughput of one side by that of
   * another. Larger is better.
   */
  readonly ratios: Readonly<Record<string, number>>
}

/** A column: its heading with the unit, and the number of decimals. */
export interface Column {
  readonly heading: string
  readonly decimals: number
}

/** A row; null for a figure that was not measured. */
export interface TableRow {
  readonly name: string
  readonly cells: readonly (number | null)[]
}

/** Text of a cell. */
export function cellText(cell: number | null | undefined, { decimals }: Column): string {
  return cell === null || cell === undefined || Number.isNaN(cell) ? '-' : cell.toFixed(decimals)
}

/** A table for the terminal. */
export function tableText({ title, columns, rows }: Table): string {
  const first = Math.max(title.length, ...rows.map(({ name }) => name.length)) + 2
  const widths = columns.map(({ heading }) => Math.max(heading.length, 8) + 2)
  const line = (name: string, cells: readonly string[]) =>
    name.padEnd(first) + cells.map((cell, index) => cell.padStart(widths[index]!)).join('')
  const head = line(
    title,
    columns.map(({ heading }) => heading),
  )
  const body = rows.map(({ name, cells }) =>
    line(
      name,
      columns.map((column, index) => cellText(cells[index], column)),
    ),
  )
  return ['', head, ...body].join('\n')
}
