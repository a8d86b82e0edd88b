/** Columns of `runyard usage`. */
import type { BucketSize } from '../../core/billing/billing.ts'
import { type Column, column, durationText, memberAt, shown, type TableRow } from './table.ts'

/** Usage and cost by span of time. @param names of endpoints by their ids */
export function usageColumns(bucket: BucketSize, names: ReadonlyMap<unknown, string>): Column[] {
  const time = (title: string, member: string): Column => ({
    title,
    text: row => durationText(memberAt(row, `usage.${member}`)),
  })
  return [
    { title: 'FROM', text: row => startText(String(row.startTime), bucket) },
    { title: 'ENDPOINT', text: row => names.get(row.serverlessId) ?? shown(row.serverlessId) },
    column('DONE', 'usage.jobs.completed'),
    column('FAILED', 'usage.jobs.failed'),
    ...[time('RUNNING', 'runningMs'), time('IDLE', 'idleMs'), time('START', 'startingMs')],
    // Tokens are summed by the day.
    ...(bucket === 'hour' ? [] : [{ title: 'TOKENS', text: tokensText }]),
    { title: 'COST', text: row => money(Number(row.totalAmount)) },
  ]
}

/** Tokens by span of time. @param names of endpoints and of keys by their ids */
export function tokenColumns(
  bucket: BucketSize,
  names: { readonly endpoints: ReadonlyMap<unknown, string>; readonly keys: ReadonlyMap<unknown, string> },
): Column[] {
  return [
    { title: 'FROM', text: row => startText(String(row.startTime), bucket) },
    { title: 'ENDPOINT', text: row => names.endpoints.get(row.serverlessId) ?? shown(row.serverlessId) },
    { title: 'KEY', text: row => names.keys.get(row.keyId) ?? shown(row.keyId) },
    column('MODEL', 'model'),
    column('REQUESTS', 'requests'),
    column('PROMPT', 'promptTokens'),
    column('COMPLETION', 'completionTokens'),
  ]
}

/** Results and durations of the requests of an endpoint, by interval. */
export const TIMES_COLUMNS: readonly Column[] = [
  { title: 'FROM', text: row => String(row.at).slice(0, 16).replace('T', ' ') },
  { title: 'DONE', text: row => shown(memberAt(row, 'requests.completed')) },
  { title: 'FAILED', text: row => String(countFailed(row)) },
  { title: 'WAIT 50% 95%', text: row => percentileText(row, 'delayMs') },
  { title: 'RAN 50% 95%', text: row => percentileText(row, 'executionMs') },
  { title: 'START', text: row => durationText(memberAt(row, 'coldStartMs.p50')) },
  { title: 'WORKERS', text: row => shown(memberAt(row, 'workers.running.max')) },
  { title: 'GPU', text: row => percentText(memberAt(row, 'gpus.busyPercent.average')) },
]

/** The usage of the account beside its limits. */
export const LIMIT_COLUMNS: readonly Column[] = [
  column('NAME', 'name'),
  column('USED', 'used'),
  column('LIMIT', 'limit'),
]

/** The tokens of a record, of prompt and completion together. */
function tokensText(row: TableRow): string {
  const count = (name: string) => memberAt(row, `usage.tokens.${name}`)
  const [prompt, completion] = [count('promptTokens'), count('completionTokens')]
  return typeof prompt === 'number' && typeof completion === 'number' ? String(prompt + completion) : '-'
}

/** Dollars with two decimals, or more for small amounts. */
export function money(dollars: number): string {
  if (dollars === 0 || dollars >= 0.01) return `$${dollars.toFixed(2)}`
  return `$${dollars.toFixed(6)}`
}

function countFailed(row: TableRow): number {
  const count = (name: string) => Number(memberAt(row, `requests.${name}`) ?? 0)
  return count('failed') + count('timedOut') + count('expired')
}

/** The median and the 95th percentile. */
function percentileText(row: TableRow, time: string): string {
  const [p50, p95] = [memberAt(row, `${time}.p50`), memberAt(row, `${time}.p95`)]
  return p50 === null || p50 === undefined ? '-' : `${durationText(p50)} ${durationText(p95)}`
}

function percentText(percent: unknown): string {
  return typeof percent === 'number' ? `${Math.round(percent)}%` : '-'
}

function startText(time: string, bucket: BucketSize): string {
  const [day = '', clock = ''] = time.split('T')
  if (bucket === 'hour') return `${day} ${clock.slice(0, 5)}`
  return bucket === 'year' ? day.slice(0, 4) : bucket === 'month' ? day.slice(0, 7) : day
}
