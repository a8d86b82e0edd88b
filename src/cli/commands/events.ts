import type { Command } from 'commander'
import { type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { events } from '../client/event-stream.ts'
import { withEndpointName } from '../client/names.ts'
import { printText } from '../terminal/terminal-text.ts'

interface LiveEvent {
  readonly type: string
  readonly at: string
  /** Null for a change that is not of a single endpoint. */
  readonly endpointId: string | null
  readonly [field: string]: unknown
}

/** `runyard events [endpoint]`: prints events as they happen. */
export function addEvents(program: Command): void {
  const command = program
    .command('events')
    .argument('[endpoint]', 'the id or the name of an endpoint (default: all)')
    .summary('follow events as they happen')
    .description('follow events of endpoints, their jobs and workers')
  withConnection(command).action(async (endpoint: string | undefined, options: ConnectionOptions) => {
    if (endpoint === undefined) return follow(options, '/v2/events')
    await withEndpointName(options, endpoint, id => follow(options, `/v2/events?endpoint=${encodeURIComponent(id)}`))
  })
}

async function follow(options: ConnectionOptions, path: string): Promise<void> {
  const asJson = wantsJson(options)
  // There is no last event: the command goes on until it is interrupted.
  for await (const { event, data } of events(options, path, '')) {
    if (asJson) printText(`${event === 'missed' ? JSON.stringify({ type: event, ...JSON.parse(data) }) : data}\n`)
    else printText(event === 'missed' ? missedText(JSON.parse(data)) : eventText(JSON.parse(data)))
  }
}

function missedText({ events }: { readonly events: number | null }): string {
  return `(${events ?? 'some'} events are missing here: the server keeps only the newest ones, and no events across a restart)\n`
}

/** One line: time, endpoint, event, and the rest as `name=value`. */
function eventText({ type, at, endpointId, jobId, workerId, from, to, ...rest }: LiveEvent): string {
  const subject = jobId ?? workerId ?? ''
  const move = from === undefined || to === undefined ? (to ?? '') : `${from} -> ${to}`
  const by = jobId !== undefined && typeof workerId === 'string' ? `worker=${workerId}` : ''
  const details = Object.entries(rest)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name}=${typeof value === 'string' && /\s/.test(value) ? JSON.stringify(value) : value}`)
  const words = [at, endpointId ?? '-', type, subject, move, by, ...details].filter(word => word !== '')
  return `${words.join(' ')}\n`
}
