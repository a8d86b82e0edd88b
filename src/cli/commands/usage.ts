import { type Command, Option } from 'commander'
import { BUCKET_SIZES, type BucketSize } from '../../core/billing/billing.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { pages } from '../client/pages.ts'
import { printList } from '../client/printing.ts'
import { type Column, column, durationText, memberAt, type TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

interface UsageOptions extends ConnectionOptions {
  readonly bucket: BucketSize
  readonly last?: string
  readonly from?: string
  readonly to?: string
  readonly limits?: boolean
}

/** `runyard usage [endpoint]`: usage and cost of endpoints. */
export function addUsage(program: Command): void {
  const command = program
    .command('usage')
    .argument('[endpoint]', 'one endpoint, also one that is gone; all without it')
    .addOption(new Option('-b, --bucket <size>', 'spans to sum, in UTC').choices(BUCKET_SIZES).default('day'))
    .option('-n, --last <count>', 'number of spans, with the present one')
    .option('--from <time>', 'from when, as 2026-05-01 or 2026-05-01T12:00:00Z (default: 30 days ago)')
    .option('--to <time>', 'until when (default: now)')
    .option('--limits', 'what the account has now, beside its limits')
  withConnection(command).description('what endpoints have used in spans of time, and what it costs').action(usage)
}

async function usage(endpoint: string | undefined, options: UsageOptions): Promise<void> {
  if (options.limits === true) return limits(options)
  const { bucket, last, from, to } = options
  const endpoints = await pages(options, '/v2/serverless', 'endpoints')
  const isId = endpoints.some(({ id }) => id === endpoint)
  const serverlessId = isId ? endpoint : (endpoints.find(({ name }) => name === endpoint)?.id ?? endpoint)
  const query = new URLSearchParams({
    bucketSize: bucket,
    ...(serverlessId === undefined ? {} : { serverlessId: String(serverlessId) }),
    ...(last === undefined ? {} : { lastN: last }),
    ...(from === undefined ? {} : { startTime: wholeTime(from) }),
    ...(to === undefined ? {} : { endTime: wholeTime(to) }),
  })
  const bill = (await (await ask(options, `/v2/billing/serverless?${query}`)).json()) as {
    records: TableRow[]
    metadata: { totals: { totalAmount: number } }
  }
  if (wantsJson(options)) return printList(options, bill.records, [], 'usage')
  const names = new Map(endpoints.map(({ id, name }) => [id, String(name)]))
  printList(options, bill.records, columnsFor(bucket, names), 'records of usage in this time')
  if (bill.records.length > 0) printText(`total cost ${money(bill.metadata.totals.totalAmount)}\n`)
}

async function limits(options: UsageOptions): Promise<void> {
  const { quotas } = (await (await ask(options, '/v2/account/accounts/own/quotas')).json()) as {
    quotas: Record<string, { used: number; limit: number | null }>
  }
  const rows = Object.entries(quotas).map(([name, { used, limit }]) => ({ name, used, limit: limit ?? 'none' }))
  printList(options, rows, [column('NAME', 'name'), column('USED', 'used'), column('LIMIT', 'limit')], 'limits')
}

function columnsFor(bucket: BucketSize, names: ReadonlyMap<unknown, string>): Column[] {
  const time = (title: string, member: string): Column => ({
    title,
    text: row => durationText(memberAt(row, `usage.${member}`)),
  })
  return [
    { title: 'FROM', text: row => startText(String(row.startTime), bucket) },
    column('ENDPOINT', 'serverlessId'),
    { title: 'NAME', text: row => names.get(row.serverlessId) ?? '-' },
    column('COMPLETED', 'usage.jobs.completed'),
    column('FAILED', 'usage.jobs.failed'),
    ...[time('RUNNING', 'runningMs'), time('IDLE', 'idleMs'), time('STARTING', 'startingMs')],
    { title: 'COST', text: row => money(Number(row.totalAmount)) },
  ]
}

/** Expands a day to its first instant in UTC. */
function wholeTime(text: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text
}

function startText(time: string, bucket: BucketSize): string {
  const [day = '', clock = ''] = time.split('T')
  if (bucket === 'hour') return `${day} ${clock.slice(0, 5)}`
  return bucket === 'year' ? day.slice(0, 4) : bucket === 'month' ? day.slice(0, 7) : day
}

/** Dollars with two decimals, or more for small amounts. */
function money(dollars: number): string {
  if (dollars === 0 || dollars >= 0.01) return `$${dollars.toFixed(2)}`
  return `$${dollars.toFixed(6)}`
}
