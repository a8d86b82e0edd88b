import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream as NodeReadableStream } from 'node:stream/web'
import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from './connection.ts'

interface LogsOptions extends ConnectionOptions {
  readonly follow?: boolean
  readonly tail: string
}

/** `runyard logs <id>`: what workers print. */
export function addLogs(program: Command): void {
  const command = program
    .command('logs')
    .argument('<id>', 'an endpoint, a worker or a job')
    .option('-f, --follow', 'go on with new lines as they come')
    .option('-n, --tail <lines>', 'how many old lines', '200')
  withConnection(command).description('show what workers print').action(logs)
}

async function logs(id: string, options: LogsOptions): Promise<void> {
  const query = new URLSearchParams({ tail: options.tail, ...(options.follow === true ? { follow: '1' } : {}) })
  const answer = await ask(options, `/ops/logs/${encodeURIComponent(id)}?${query}`)
  if (answer.body === null) return
  const asJson = wantsJson(options)
  const input = Readable.fromWeb(answer.body as NodeReadableStream<Uint8Array>)
  for await (const text of createInterface({ input })) {
    process.stdout.write(asJson ? `${text}\n` : `${forPeople(text)}\n`)
  }
}

function forPeople(text: string): string {
  const { workerId, jobId, line } = JSON.parse(text) as { workerId: string; jobId: string | null; line: string }
  return `${workerId}${jobId === null ? '' : ` ${jobId}`} | ${line}`
}
