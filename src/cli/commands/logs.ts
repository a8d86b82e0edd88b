import { type Command, InvalidArgumentError } from 'commander'
import { type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { events } from '../client/event-stream.ts'
import { withEndpointName } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { readInstant } from '../client/time-spans.ts'
import { printText } from '../terminal/terminal-text.ts'

interface LogsOptions extends ConnectionOptions {
  readonly follow?: boolean
  readonly tail: number
  readonly grep?: string
  readonly since?: string
  readonly source?: string
}

interface LogLine {
  readonly workerId: string
  readonly jobId: string | null
  readonly source: 'container' | 'system'
  readonly ts: string
  readonly line: string
}

/** `runyard logs <id>`: output and history of workers. */
export function addLogs(program: Command): void {
  const command = program
    .command('logs')
    .argument('<id>', 'an endpoint, a worker or a job')
    .option('-f, --follow', 'go on with new lines as they come, also when the server is restarted')
    .addOption(fieldOption('-n, --tail <lines>', 'number of old lines', 'tail').argParser(wholeNumber).default(200))
    .addOption(fieldOption('-g, --grep <text>', 'only lines with this text, in upper or lower case', 'text'))
    .addOption(fieldOption('--since <time>', 'only lines since a time ago (10m, 2h, 1d) or since a date', 'since'))
    .addOption(
      fieldOption('--source <source>', 'lines of workers, or of the server about them', 'source').choices(SOURCES),
    )
  withConnection(command).description('show what workers print, and what is done with them').action(logs)
}

const SOURCES = ['container', 'system']

async function logs(id: string, options: LogsOptions): Promise<void> {
  const { tail, grep, since, source, follow } = options
  const query = new URLSearchParams({
    tail: String(tail),
    ...(follow === true ? { follow: '1' } : {}),
    ...(grep === undefined ? {} : { text: grep }),
    ...(since === undefined ? {} : { since: readInstant('--since', since) }),
    ...(source === undefined ? {} : { source }),
  })
  const asJson = wantsJson(options)
  let isEmpty = true
  await withEndpointName(options, id, async known => {
    for await (const { event, data } of events(options, `/ops/logs/${encodeURIComponent(known)}?${query}`, 'end')) {
      if (event === 'note' && !asJson)
        printText(`runyard: ${(JSON.parse(data) as { text: string }).text}\n`, process.stderr)
      if (event === 'message' || event === 'note') isEmpty = false
      if (event === 'message') printText(asJson ? `${data}\n` : `${logText(JSON.parse(data) as LogLine)}\n`)
    }
  })
  const isFiltered = [grep, since, source].some(filter => filter !== undefined)
  if (!isEmpty || asJson) return
  const nothing = isFiltered ? 'no line matches' : `there is no output yet; runyard why ${id} says more`
  printText(`runyard: ${nothing}\n`, process.stderr)
}

function logText({ workerId, jobId, source, ts, line }: LogLine): string {
  const who = source === 'system' ? ' (runyard)' : jobId === null ? '' : ` ${jobId}`
  return `${ts} ${workerId}${who} | ${line}`
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('it must be a whole number.')
  return Number(text)
}
