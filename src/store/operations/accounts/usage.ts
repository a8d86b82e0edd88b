import {
  addJobUsage,
  addWorkerUsage,
  countWorker,
  HOUR_MS,
  hourStart,
  type JobUsage,
  NO_WORKER_USAGE,
  USAGE_READ,
  type WorkerCount,
} from '../../../core/billing/usage.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../../core/ids.ts'
import type { TokenDay } from '../../../core/openai/token-sums.ts'
import type { JobMove } from '../../../ports/store/store.ts'
import type {
  FlavorWorkers,
  FormerName,
  JobUsageSum,
  TokenQuery,
  TokenSum,
  UsageQuery,
  UsageStore,
  WorkerUsageSum,
} from '../../../ports/store/usage-store.ts'
import * as sql from '../../tables/usage.ts'
import {
  type FormerEndpointRow,
  type JobSumRow,
  jobUsageFromRow,
  jobUsageParams,
  type MeterRow,
  meterFromRow,
  type TokenSumRow,
  tokenDayParams,
  tokenFiguresFromRow,
  type WorkerSumRow,
  workerUsageFromRow,
} from '../../tables/usage.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Usage of jobs and workers. */
export const usage = {
  jobs: read(function* (usageQuery: UsageQuery): Steps<{ sums: JobUsageSum[]; nextMs: number | null }> {
    const { owner, endpointId } = usageQuery
    const untilMs = yield* endOfPart(usageQuery, endpointId === null ? sql.jobHourOfOwner : sql.jobHourOfEndpoint)
    return yield* bySpan(usageQuery, untilMs, function* (startMs, endMs) {
      const rows =
        endpointId === null
          ? yield* query<JobSumRow>(sql.jobSumsOfOwner, [owner, startMs, endMs])
          : yield* query<JobSumRow>(sql.jobSumsOfEndpoint, [owner, startMs, endMs, endpointId])
      return rows.map(row => ({ startMs, endpointId: row.endpoint_id, usage: jobUsageFromRow(row) }))
    })
  }),

  workers: read(function* (
    usageQuery: UsageQuery,
    nowMs: number,
  ): Steps<{ sums: WorkerUsageSum[]; nextMs: number | null }> {
    const { owner, endpointId } = usageQuery
    const meters =
      endpointId === null
        ? yield* query<MeterRow>(sql.metersOfOwner, [owner])
        : yield* query<MeterRow>(sql.metersOfEndpoint, [owner, endpointId])
    const running = meters.map(row => ({ row, ...countWorker(meterFromRow(row), nowMs) }))
    const hourBehind = endpointId === null ? sql.workerHourOfOwner : sql.workerHourOfEndpoint
    const untilMs = yield* endOfPart(usageQuery, hourBehind)
    return yield* bySpan(usageQuery, untilMs, function* (startMs, endMs) {
      const rows =
        endpointId === null
          ? yield* query<WorkerSumRow>(sql.workerSumsOfOwner, [owner, startMs, endMs])
          : yield* query<WorkerSumRow>(sql.workerSumsOfEndpoint, [owner, startMs, endMs, endpointId])
      const counted = rows.map(row => ({
        startMs,
        endpointId: row.endpoint_id,
        flavor: row.flavor,
        usage: workerUsageFromRow(row),
      }))
      return withRunning(counted, running, startMs, endMs)
    })
  }),

  running: read(function* (owner: OwnerId): Steps<FlavorWorkers[]> {
    return [...(yield* query<FlavorWorkers>(sql.runningWorkers, [owner]))]
  }),

  countWorkers: write(function* (nowMs: number, beforeMs: number, limit: number): Steps<number> {
    const due = yield* query<MeterRow>(sql.metersDue, [beforeMs, limit])
    for (const row of due) yield* count(row, countWorker(meterFromRow(row), nowMs))
    return due.length
  }),

  addTokens: write(function* (days: readonly TokenDay[]): Steps<void> {
    // Always in the same order, so that no two servers wait for each other.
    const params = days.map(tokenDayParams).sort((a, b) => (a.slice(0, 5).join() < b.slice(0, 5).join() ? -1 : 1))
    for (const values of params) yield* perform(sql.addTokenDay, values)
  }),

  tokens: read(function* ({
    owner,
    bounds,
    keyId = null,
    endpointId = null,
    byEndpoint = false,
  }: TokenQuery): Steps<{ sums: TokenSum[]; nextMs: number | null }> {
    const sums: TokenSum[] = []
    const spans = Math.min(bounds.length - 1, USAGE_READ.tokenSpans)
    for (let index = 0; index < spans; index += 1) {
      const startMs = bounds[index]!
      const span = [owner, startMs, bounds[index + 1]!, keyId ?? '', endpointId ?? '', USAGE_READ.sums + 1]
      const rows = yield* query<TokenSumRow>(byEndpoint ? sql.tokenSumsOfEndpoints : sql.tokenSums, span)
      if (sums.length + rows.length > USAGE_READ.sums) return { sums, nextMs: startMs }
      for (const row of rows) {
        const { endpoint_id, key_id, model } = row
        const place = {
          endpointId: endpoint_id,
          keyId: key_id === '' ? null : key_id,
          model: model === '' ? null : model,
        }
        sums.push({ startMs, ...place, figures: tokenFiguresFromRow(row) })
      }
    }
    return { sums, nextMs: spans < bounds.length - 1 ? bounds[Math.max(0, spans)]! : null }
  }),

  modelsOfDay: read(function* (owner: OwnerId, dayMs: number, limit: number): Steps<string[]> {
    return (yield* query<{ model: string }>(sql.modelsOfDay, [owner, dayMs, limit])).map(({ model }) => model)
  }),

  formerNames: read(function* (owner: OwnerId, sinceMs: number, limit: number): Steps<FormerName[]> {
    const rows = yield* query<FormerEndpointRow>(sql.formerEndpointsOfOwner, [owner, sinceMs, limit])
    return rows.map(({ endpoint_id: endpointId, name }) => ({ endpointId, name }))
  }),

  removeOld: write(function* (beforeMs: number, limit: number): Steps<number> {
    const jobs = yield* query(sql.deleteJobHours, [hourStart(beforeMs), limit])
    const workers = yield* query(sql.deleteWorkerHours, [hourStart(beforeMs), limit])
    const tokens = yield* query(sql.deleteTokenDays, [hourStart(beforeMs), limit])
    const former = yield* query(sql.deleteFormerEndpoints, [hourStart(beforeMs), limit])
    return Math.max(jobs.length, workers.length, tokens.length, former.length)
  }),
} satisfies PortOperations<UsageStore>

/**
 * The instant up to which one call reads, so that it reads a bounded number of rows; an hour is read as a whole,
 * however many endpoints were used in it.
 * @param hourBehind statement that finds the hour of the first row that is too many
 */
function* endOfPart({ owner, endpointId, bounds }: UsageQuery, hourBehind: string): Steps<number> {
  const [startMs = 0] = bounds
  const endMs = bounds.at(-1) ?? 0
  const span = [owner, startMs, endMs, USAGE_READ.hours]
  const row = yield* queryOne<{ hour_ms: number }>(hourBehind, endpointId === null ? span : [...span, endpointId])
  return row === null ? endMs : Math.max(row.hour_ms, startMs + HOUR_MS)
}

/**
 * Reads one span after the other up to an instant for as long as their sums are few enough; the first one is read in
 * any case.
 */
function* bySpan<Sum>(
  { bounds }: UsageQuery,
  untilMs: number,
  readSpan: (startMs: number, endMs: number) => Steps<Sum[]>,
): Steps<{ sums: Sum[]; nextMs: number | null }> {
  const sums: Sum[] = []
  const last = Math.min(bounds.length - 1, USAGE_READ.spans)
  for (let index = 0; index < last && bounds[index]! < untilMs; index += 1) {
    const spanSums = yield* readSpan(bounds[index]!, Math.min(bounds[index + 1]!, untilMs))
    if (index > 0 && sums.length + spanSums.length > USAGE_READ.sums) return { sums, nextMs: bounds[index]! }
    sums.push(...spanSums)
  }
  const nextMs = Math.min(bounds[Math.max(0, last)] ?? untilMs, untilMs)
  return { sums, nextMs: nextMs < (bounds.at(-1) ?? 0) ? nextMs : null }
}

/** Adds the time of workers that run and that is not counted yet. */
function withRunning(
  counted: readonly WorkerUsageSum[],
  running: readonly (WorkerCount & { row: MeterRow })[],
  startMs: number,
  endMs: number,
): WorkerUsageSum[] {
  const sums = new Map(counted.map(sum => [`${sum.endpointId} ${sum.flavor}`, sum]))
  for (const { row, hours } of running) {
    const within = hours.filter(({ hourMs }) => hourMs >= startMs && hourMs < endMs)
    if (within.length === 0) continue
    const { endpoint_id: endpointId, flavor } = row
    const name = `${endpointId} ${flavor}`
    const previous = sums.get(name)?.usage ?? NO_WORKER_USAGE
    const sum = within.reduce((total, { usage: more }) => addWorkerUsage(total, more), previous)
    sums.set(name, { startMs, endpointId, flavor, usage: sum })
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
}

/** Counts the usage of moves of jobs, in the hour of the moves. Must run in the transaction of the moves. */
export function* countJobUsage(moves: readonly UsedMove[], nowMs: number): Steps<void> {
  const sums = new Map<EndpointId, { owner: OwnerId; usage: JobUsage }>()
  for (const { job, usage: used } of moves) {
    const previous = sums.get(job.endpointId)
    sums.set(job.endpointId, {
      owner: job.owner,
      usage: previous === undefined ? used : addJobUsage(previous.usage, used),
    })
  }
  const hourMs = hourStart(nowMs)
  for (const [endpointId, { owner, usage: sum }] of [...sums].sort(([a], [b]) => (a < b ? -1 : 1))) {
    yield* perform(sql.addJobUsage, [endpointId, hourMs, owner, ...jobUsageParams(sum)])
  }
}

/** Moves of jobs that {@link countJobUsage} counts. */
export type UsedMove = Pick<JobMove, 'usage'> & { readonly job: { endpointId: EndpointId; owner: OwnerId } }

/**
 * Counts the time of a worker that ends. Must run in the transaction of its end.
 * @param seen true if its end was observed; otherwise its time since the last count is not counted
 */
export function* countEnd(id: WorkerId, nowMs: number, seen: boolean): Steps<void> {
  const row = yield* queryOne<MeterRow>(sql.meterOfWorker, [id])
  if (row !== null && seen) yield* count(row, countWorker(meterFromRow(row), nowMs))
}

/**
 * Counts the time of a worker under the flavor that it has, before it gets another one. Must run in the transaction
 * of that change.
 */
export function* countFlavor(id: WorkerId, flavor: string, nowMs: number): Steps<void> {
  const row = yield* queryOne<MeterRow>(sql.meterOfWorker, [id])
  if (row !== null && row.flavor !== flavor) yield* count(row, countWorker(meterFromRow(row), nowMs))
}

function* count(row: MeterRow, { hours, countedUntilMs, countedIdleMs, countedFrozenMs }: WorkerCount): Steps<void> {
  for (const { hourMs, usage: used } of hours) {
    const { startingMs, runningMs, idleMs, frozenMs } = used
    const figures = [startingMs, runningMs, idleMs, frozenMs]
    yield* perform(sql.addWorkerUsage, [row.endpoint_id, hourMs, row.flavor, row.owner, ...figures])
  }
  yield* perform(sql.setMeter, [row.id, countedUntilMs, countedIdleMs, countedFrozenMs])
}
