import type { Command, Option } from 'commander'
import { BUCKET_SIZES, type BucketSize } from '../../core/billing/billing.ts'
import { METRIC_INTERVALS } from '../../core/observing/metric-series.ts'
import { answerValue, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { KINDS, type Named } from '../client/kinds.ts'
import { chooseId, findNamed, withEndpointName } from '../client/names.ts'
import { fieldOption } from '../client/option-fields.ts'
import { pages } from '../client/pages.ts'
import { printList } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import type { TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { LIMIT_COLUMNS, money, TIMES_COLUMNS, tokenColumns, usageColumns } from '../terminal/usage-columns.ts'

interface UsageOptions extends ConnectionOptions {
  readonly bucket: BucketSize
  readonly last?: string
  readonly from?: string
  readonly to?: string
  readonly times?: boolean
  readonly tokens?: boolean
  readonly limits?: boolean
}

/** `runyard usage [endpoint]`: usage and cost of endpoints. */
export function addUsage(program: Command): void {
  const command = program
    .command('usage')
    .argument('[endpoint]', 'one endpoint, also one that is gone; all without it')
    .addOption(bucketOption())
    .addOption(fieldOption('-n, --last <count>', 'number of spans, with the present one', 'lastN'))
    .addOption(
      fieldOption(
        '--from <time>',
        `from when, as 2026-05-01 or 2026-05-01T12:00:00Z (default: 30 days ago)`,
        'startTime',
        'from',
      ),
    )
    .addOption(fieldOption('--to <time>', 'until when (default: now)', 'endTime', 'to'))
    .option('--times', 'how requests of one endpoint ended and how long they took, by hour or day')
    .option('--tokens', 'tokens that workers reported in their answers, by endpoint, key and model')
    .option('--limits', 'what the account has now, beside its limits')
  withConnection(command)
    .summary('show the use of endpoints and its cost')
    .description('show the use of endpoints in spans of time, and its cost')
    .action(usage)
}

function bucketOption(): Option {
  const option = fieldOption('-b, --bucket <size>', 'spans to sum, in UTC', 'bucketSize', 'interval')
  return option.choices(BUCKET_SIZES).default('day')
}

async function usage(endpoint: string | undefined, options: UsageOptions): Promise<void> {
  if (options.limits === true) return limits(options)
  if (options.times === true) return times(endpoint, options)
  if (options.tokens === true) return tokens(endpoint, options)
  const { bucket } = options
  const endpoints = await endpointsAndTasks(options)
  const query = billQuery(endpoints, endpoint, options)
  const bill = await answerValue<{ metadata: { totals: { totalAmount: number } } }>(
    await ask(options, `/v2/billing/serverless?${query}`),
  )
  const records = pageItems<TableRow>(bill, 'records')
  if (endpoint !== undefined && records.length === 0 && findNamed(endpoints, KINDS.endpoints, endpoint) === null)
    chooseId(endpoints, KINDS.endpoints, endpoint, null)
  if (wantsJson(options)) return printList(options, records, [], 'usage')
  const former = records.flatMap(({ serverlessId, serverlessName }) =>
    typeof serverlessName === 'string' ? [[serverlessId, `${serverlessName} (deleted)`] as const] : [],
  )
  const names = new Map<unknown, string>([...former, ...endpoints.map(({ id, name }) => [id, String(name)] as const)])
  printList(options, records, usageColumns(bucket, names), 'records of usage in this time')
  if (records.length > 0) printText(`total cost ${money(bill.metadata.totals.totalAmount)}\n`)
}

/** The endpoints and the tasks: a task is an endpoint that runs once, and no list of endpoints has it. */
async function endpointsAndTasks(options: UsageOptions): Promise<Named[]> {
  const tasks = await pages(options, '/v2/pods', 'pods').catch(() => [])
  return [...(await KINDS.endpoints.list(options)), ...(tasks as unknown as Named[])]
}

/** The time of a bill and its endpoint; bills of deleted endpoints are kept. */
function billQuery(endpoints: readonly Named[], endpoint: string | undefined, options: UsageOptions) {
  const { bucket, last, from, to } = options
  const serverlessId =
    endpoint === undefined ? undefined : (findNamed(endpoints, KINDS.endpoints, endpoint) ?? endpoint)
  return new URLSearchParams({
    bucketSize: bucket,
    ...(serverlessId === undefined ? {} : { serverlessId: String(serverlessId) }),
    ...(last === undefined ? {} : { lastN: last }),
    ...(from === undefined ? {} : { startTime: withTime(from) }),
    ...(to === undefined ? {} : { endTime: withTime(to) }),
  })
}

/** Tokens by span of time, endpoint, key and model. */
async function tokens(endpoint: string | undefined, options: UsageOptions): Promise<void> {
  if (options.bucket === 'hour') throw new CliError('tokens are summed by the day; choose another --bucket', EXIT.usage)
  const endpoints = await KINDS.endpoints.list(options)
  const query = billQuery(endpoints, endpoint, options)
  const answer = await answerValue<{ metadata: { totals: TableRow } }>(
    await ask(options, `/v2/billing/tokens?${query}`),
  )
  const records = pageItems<TableRow>(answer, 'records')
  if (wantsJson(options)) return printList(options, records, [], 'tokens')
  const namesOf = (rows: readonly Named[]) => new Map(rows.map(({ id, name }) => [id, String(name)]))
  const names = { endpoints: namesOf(endpoints), keys: namesOf(await KINDS.keys.list(options)) }
  printList(options, records, tokenColumns(options.bucket, names), 'tokens in this time')
  const { requests, measuredRequests, promptTokens, completionTokens } = answer.metadata.totals
  if (records.length > 0)
    printText(
      `total ${promptTokens} prompt, ${completionTokens} completion; ${measuredRequests} of ${requests} answers had them\n`,
    )
}

/** Metrics of one endpoint over time. */
async function times(endpoint: string | undefined, options: UsageOptions): Promise<void> {
  const { bucket, last, from, to } = options
  if (endpoint === undefined) throw new CliError('--times is about one endpoint; give its id or name', EXIT.usage)
  const interval = INTERVALS[bucket]
  if (interval === undefined) throw new CliError("--times takes a --bucket 'hour' or 'day'", EXIT.usage)
  if (last !== undefined && !/^[1-9]\d{0,3}$/.test(last)) throw new CliError('--last takes a whole number', EXIT.usage)
  const start = from ?? (last === undefined ? undefined : startOfLast(Number(last), interval.lengthMs))
  const query = new URLSearchParams({
    interval: interval.name,
    ...(start === undefined ? {} : { from: withTime(start) }),
    ...(to === undefined ? {} : { to: withTime(to) }),
  })
  const answer = await withEndpointName(options, endpoint, id =>
    ask(options, `/v2/serverless/${encodeURIComponent(id)}/metrics?${query}`),
  )
  const points = pageItems<TableRow>(await answerValue(answer), 'points')
  printList(options, points, TIMES_COLUMNS, 'requests in this time')
}

/** The intervals in which metrics are read. */
const INTERVALS: Partial<Record<BucketSize, { readonly name: string; readonly lengthMs: number }>> = {
  hour: { name: '1h', lengthMs: METRIC_INTERVALS['1h'].lengthMs },
  day: { name: '1d', lengthMs: METRIC_INTERVALS['1d'].lengthMs },
}

/** The beginning of the last intervals, the present one included. */
function startOfLast(count: number, lengthMs: number): string {
  return new Date((Math.floor(Date.now() / lengthMs) - count + 1) * lengthMs).toISOString()
}

async function limits(options: UsageOptions): Promise<void> {
  const { quotas } = (await (await ask(options, '/v2/account/accounts/own/quotas')).json()) as {
    quotas: Record<string, { used: number; limit: number | null }>
  }
  const rows = Object.entries(quotas).map(([name, { used, limit }]) => ({ name, used, limit: limit ?? 'none' }))
  printList(options, rows, LIMIT_COLUMNS, 'limits')
}

/** Expands a day to its first instant in UTC. */
function withTime(text: string): string {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00:00Z` : text
}
