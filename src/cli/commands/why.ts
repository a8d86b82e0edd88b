import type { Command } from 'commander'
import { roughDuration } from '../../core/observing/explain-facts.ts'
import type { ActionView, ExplanationView } from '../../core/observing/explanation.ts'
import { answerValue, jsonLine, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/names.ts'
import { onOneLine } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

type Row = ExplanationView & { readonly kind: string; readonly id: string; readonly name: string }

interface Answer {
  readonly explanations: readonly Row[]
  readonly pagination?: { readonly nextCursor: string | null }
}

/** `runyard why [id]`: why something waits. */
export function addWhy(program: Command): void {
  const command = program.command('why').argument('[id]', 'a job, an endpoint or a worker; all endpoints without it')
  withConnection(command).description('say why jobs wait, and what to do about it').action(why)
}

async function why(id: string | undefined, options: ConnectionOptions): Promise<void> {
  if (id !== undefined)
    return void (await withEndpointName(options, id, known =>
      printRows(options, rowsAt(options, `/ops/why/${encodeURIComponent(known)}`)),
    ))
  const count = await printRows(options, allRows(options))
  if (count === 0 && !wantsJson(options)) printText('there are no endpoints\n')
}

/** @returns the number of printed rows */
async function printRows(options: ConnectionOptions, rows: AsyncIterable<Row>): Promise<number> {
  let count = 0
  for await (const row of rows) {
    printText(wantsJson(options) ? `${jsonLine(row)}\n` : explanationText(row))
    count += 1
  }
  return count
}

/** Explanations of all endpoints, page by page. */
async function* allRows(options: ConnectionOptions): AsyncGenerator<Row> {
  for (let cursor: string | null = null; ; ) {
    const query: string = cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`
    cursor = yield* rowsAt(options, `/ops/why${query}`)
    if (cursor === null) return
  }
}

/** Explanations of one response. @returns cursor of the next page; null on the last page */
async function* rowsAt(options: ConnectionOptions, path: string): AsyncGenerator<Row, string | null> {
  const answer = await ask(options, path)
  const page = await answerValue<Answer>(answer)
  yield* pageItems<Row>(page, 'explanations')
  return page.pagination?.nextCursor ?? null
}

function explanationText({ kind, id, name, cause, summary, action, actions, sinceMs, evidence, notes }: Row): string {
  const since = sinceMs === null ? '' : `, for ${roughDuration(Date.now() - sinceMs)}`
  const lines = [`${kind} ${id} (${name}): ${cause}${since}`, `  ${summary}`]
  if (action !== null) lines.push(`  -> ${action}`)
  lines.push(...commandLines(actions, null))
  for (const [index, note] of notes.entries()) lines.push(`  note: ${note}`, ...commandLines(actions, index))
  for (const line of evidence) lines.push(`  | ${line}`)
  // Worker output may contain terminal control characters.
  return `${lines.map(onOneLine).join('\n')}\n`
}

/** The commands of the actions of a note, or of the cause, each once. */
function commandLines(actions: readonly ActionView[], note: number | null): string[] {
  const commands = actions.flatMap(action => (action.note === note ? (action.command ?? []) : []))
  return [...new Set(commands)].map(command => `     $ ${command}`)
}
