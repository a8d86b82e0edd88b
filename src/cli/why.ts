import type { Command } from 'commander'
import type { Explanation } from '../core/explain.ts'
import { lasting } from '../core/explain-facts.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from './connection.ts'
import { onOneLine } from './table.ts'

type Row = Explanation & { readonly kind: string; readonly id: string; readonly name: string }

/** `runyard why [id]`: why something waits. */
export function addWhy(program: Command): void {
  const command = program.command('why').argument('[id]', 'a job, an endpoint or a worker; all endpoints without it')
  withConnection(command).description('say why jobs wait, and what to do about it').action(why)
}

async function why(id: string | undefined, options: ConnectionOptions): Promise<void> {
  const answer = await ask(options, id === undefined ? '/ops/why' : `/ops/why/${encodeURIComponent(id)}`)
  const { explanations } = (await answer.json()) as { explanations: Row[] }
  const asJson = wantsJson(options)
  if (explanations.length === 0 && !asJson) process.stdout.write('there are no endpoints\n')
  for (const row of explanations) process.stdout.write(asJson ? `${JSON.stringify(row)}\n` : forPeople(row))
}

function forPeople({ kind, id, name, cause, summary, action, sinceMs, evidence, notes }: Row): string {
  const since = sinceMs === null ? '' : `, for ${lasting(Date.now() - sinceMs)}`
  const lines = [`${kind} ${id} (${name}): ${cause}${since}`, `  ${summary}`]
  if (action !== null) lines.push(`  -> ${action}`)
  for (const note of notes) lines.push(`  note: ${note}`)
  for (const line of evidence) lines.push(`  | ${line}`)
  // What workers have printed may steer the terminal.
  return `${lines.map(onOneLine).join('\n')}\n`
}
