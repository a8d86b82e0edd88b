/** Records of a bill, summed up for people. */
import type { ServerlessBillingRecord, TokenUsageRecord } from '../../client/api-types.d.ts'
import type { Look, Series } from '../../parts/chart-data.ts'

const HOUR_MS = 3_600_000

/** The use of one endpoint in the whole range. */
export interface EndpointUse {
  readonly id: string
  readonly cost: number
  readonly gpuCost: number
  readonly cpuCost: number
  /** Hours in which its workers existed, by activity. */
  readonly startingHours: number
  readonly runningHours: number
  readonly idleHours: number
  readonly frozenHours: number
  readonly hours: number
  readonly completed: number
  /** Jobs that ended in another way. */
  readonly others: number
}

/** Figures that are shown over time. */
export type Figure = 'cost' | 'hours'

/** Sums by endpoint, those that cost most first. */
export function byEndpoint(records: readonly ServerlessBillingRecord[]): EndpointUse[] {
  const uses = new Map<string, EndpointUse>()
  for (const record of records) {
    const use = useFromRecord(record)
    const sum = uses.get(use.id)
    uses.set(use.id, sum === undefined ? use : added(sum, use))
  }
  return [...uses.values()].sort((a, b) => b.cost - a.cost || b.hours - a.hours || (a.id < b.id ? -1 : 1))
}

/** The sum of all, with an empty id. */
export function sumUses(uses: readonly EndpointUse[]): EndpointUse {
  return uses.reduce(added, NO_USE)
}

const NO_USE: EndpointUse = {
  id: '',
  cost: 0,
  gpuCost: 0,
  cpuCost: 0,
  startingHours: 0,
  runningHours: 0,
  idleHours: 0,
  frozenHours: 0,
  hours: 0,
  completed: 0,
  others: 0,
}

function useFromRecord({
  serverlessId,
  totalAmount,
  gpuAmount,
  cpuAmount,
  usage,
}: ServerlessBillingRecord): EndpointUse {
  const { startingMs, runningMs, idleMs, frozenMs, jobs } = usage
  return {
    id: serverlessId,
    cost: totalAmount,
    gpuCost: gpuAmount,
    cpuCost: cpuAmount,
    startingHours: startingMs / HOUR_MS,
    runningHours: runningMs / HOUR_MS,
    idleHours: idleMs / HOUR_MS,
    frozenHours: frozenMs / HOUR_MS,
    hours: (startingMs + runningMs + idleMs + frozenMs) / HOUR_MS,
    completed: jobs.completed,
    others: jobs.failed + jobs.timedOut + jobs.cancelled + jobs.expired,
  }
}

function added(a: EndpointUse, b: EndpointUse): EndpointUse {
  const sums = Object.keys(NO_USE).filter(name => name !== 'id') as Exclude<keyof EndpointUse, 'id'>[]
  return { ...a, ...Object.fromEntries(sums.map(name => [name, a[name] + b[name]])) }
}

/** The tokens of one model in the whole range. */
export interface ModelUse {
  /** As answers name it; null where they name none. */
  readonly model: string | null
  readonly requests: number
  readonly measuredRequests: number
  readonly promptTokens: number
  readonly completionTokens: number
  readonly cachedTokens: number
}

/** Sums by model, those with most tokens first. */
export function byModel(records: readonly TokenUsageRecord[]): ModelUse[] {
  const uses = new Map<string | null, ModelUse>()
  for (const { model, requests, measuredRequests, promptTokens, completionTokens, cachedTokens } of records) {
    const sum = uses.get(model)
    uses.set(model, {
      model,
      requests: requests + (sum?.requests ?? 0),
      measuredRequests: measuredRequests + (sum?.measuredRequests ?? 0),
      promptTokens: promptTokens + (sum?.promptTokens ?? 0),
      completionTokens: completionTokens + (sum?.completionTokens ?? 0),
      cachedTokens: cachedTokens + (sum?.cachedTokens ?? 0),
    })
  }
  const tokens = ({ promptTokens, completionTokens }: ModelUse) => promptTokens + completionTokens
  return [...uses.values()].sort((a, b) => tokens(b) - tokens(a) || b.requests - a.requests)
}

/** Spans of a bill. */
export type Size = 'hour' | 'day' | 'week' | 'month' | 'year'

/** The starts of all spans of a bill and their end, in UTC, also of unused spans. */
export function bounds(startMs: number, endMs: number, size: Size): number[] {
  const starts: number[] = []
  for (let at = startMs; at < endMs && starts.length < MAX_SPANS; at = periodEnd(at, size)) starts.push(at)
  return [...starts, endMs]
}

const MAX_SPANS = 1_000

function periodEnd(atMs: number, size: Size): number {
  const at = new Date(atMs)
  if (size === 'year') return Date.UTC(at.getUTCFullYear() + 1, 0)
  if (size === 'month') return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
  return atMs + (size === 'week' ? 168 : size === 'day' ? 24 : 1) * HOUR_MS
}

const COLORS = ['--chart-1', '--chart-2', '--chart-4', '--chart-5', '--chart-6'] as const
const LOOKS: readonly Look[] = ['plain', 'up', 'level']

/** Limit of endpoints that have a color of their own; the rest is one series. */
export const MOST_SERIES = 10

/** One series for each of the endpoints with the highest figures, and one for all others. */
export function costSeries(
  records: readonly ServerlessBillingRecord[],
  startsMs: readonly number[],
  figure: Figure,
  endpointName: (id: string) => string,
): Series[] {
  const sorted = byEndpoint(records).sort((a, b) => b[figure] - a[figure])
  const shownUses = sorted.slice(0, MOST_SERIES)
  const places = new Map(shownUses.map(({ id }, place) => [id, place]))
  const spans = new Map(startsMs.map((atMs, at) => [atMs, at]))
  const values = Array.from({ length: shownUses.length + 1 }, () => startsMs.map(() => 0))
  for (const record of records) {
    const span = spans.get(Date.parse(record.startTime))
    const row = values[places.get(record.serverlessId) ?? shownUses.length]!
    if (span !== undefined) row[span] = row[span]! + useFromRecord(record)[figure]
  }
  const series = shownUses.map(({ id }, place) => ({
    id,
    title: endpointName(id),
    color: COLORS[place % COLORS.length]!,
    look: LOOKS[Math.floor(place / COLORS.length)]!,
    values: values[place]!,
  }))
  const otherCount = sorted.length - shownUses.length
  if (otherCount === 0) return series
  const title = otherCount === 1 ? 'One other' : `${otherCount} others`
  return [...series, { id: '', title, color: '--faint', look: 'plain', values: values[shownUses.length]! }]
}

/** Finds the name of an endpoint by its id: the present one, or that of a deleted one, if the server knows it. */
export function endpointNames(
  present: ReadonlyMap<string, string> | null,
  records: readonly ServerlessBillingRecord[],
): (id: string) => string | undefined {
  const named = ({ serverlessId, serverlessName }: ServerlessBillingRecord) =>
    serverlessName === null ? [] : ([[serverlessId, serverlessName]] as const)
  const former = new Map(records.flatMap(named))
  return id => present?.get(id) ?? former.get(id)
}

/** All records as rows of a CSV file, the first of them the names of its columns. */
export function csvRows(
  records: readonly ServerlessBillingRecord[],
  endpointName: (id: string) => string,
): (string | number | null)[][] {
  const names = ['starting', 'running', 'idle', 'frozen'].map(state => `${state}Ms`)
  const jobs = ['completed', 'failed', 'timedOut', 'cancelled', 'expired'] as const
  return [
    ['from', 'to', 'endpointId', 'endpoint', 'totalAmount', 'gpuAmount', 'cpuAmount', ...names, 'billedMs', ...jobs],
    ...records.map(({ startTime, endTime, serverlessId, totalAmount, gpuAmount, cpuAmount, usage }) => [
      startTime,
      endTime,
      serverlessId,
      endpointName(serverlessId),
      totalAmount,
      gpuAmount,
      cpuAmount,
      usage.startingMs,
      usage.runningMs,
      usage.idleMs,
      usage.frozenMs,
      usage.billedMs,
      ...jobs.map(job => usage.jobs[job]),
    ]),
  ]
}
