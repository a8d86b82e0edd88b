import type { Command } from 'commander'
import type { Explanation } from '../core/explain.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from './connection.ts'

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

function forPeople({ kind, id, name, cause, summary, action, sinceMs, evidence }: Row): string {
  const since = sinceMs === null ? '' : `, for ${duration(Date.now() - sinceMs)}`
  const lines = [`${kind} ${id} (${name}): ${cause}${since}`, `  ${summary}`]
  if (action !== null) lines.push(`  -> ${action}`)
  for (const line of evidence) lines.push(`  | ${line}`)
  return `${lines.join('\n')}\n`
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`
}
