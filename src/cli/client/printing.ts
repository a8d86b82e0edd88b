/** Output of the server's answers: for people, and JSON lines where these are asked for. */
import { indentedJson } from '../../core/json/json-format.ts'
import { type Column, type TableRow, table } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { answerValue, jsonLine } from './answers.ts'
import { type ConnectionOptions, wantsJson } from './connection.ts'

/** A table for people, JSON lines for programs. */
export function printList(
  options: ConnectionOptions,
  rows: readonly TableRow[],
  columns: readonly Column[],
  name: string,
): void {
  if (wantsJson(options)) for (const row of rows) printText(`${jsonLine(row)}\n`)
  else if (rows.length === 0) printText(`there are no ${name}\n`)
  else process.stdout.write(table(columns, rows))
}

/** Prints a resource as JSON, the only format that shows all of it: on one line where JSON is asked for. */
export async function print(options: ConnectionOptions, answer: Response): Promise<void> {
  printValue(options, await answerValue<TableRow>(answer))
}

/** As {@link print}, for a value that was read before. */
export function printValue(options: ConnectionOptions, value: TableRow): void {
  const line = jsonLine(value)
  printText(`${wantsJson(options) ? line : indentedJson(line)}\n`)
}
