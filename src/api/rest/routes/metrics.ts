import { z } from '@hono/zod-openapi'
import {
  countedTimes,
  type MetricBucket,
  type MetricGpuUse,
  type MetricWorkers,
  percentile,
  type TimeClasses,
} from '../../../core/observing/metric-bucket.ts'
import { METRIC_INTERVALS, type MetricInterval, type MetricRequest } from '../../../core/observing/metric-series.ts'
import type { MetricSeries } from '../../../services/observing/metric-series.ts'
import { restSentence } from '../../field-names.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, type Rule, route } from '../route.ts'
import { DateTime, IdParam } from '../schemas/common.ts'
import { endpointId } from './serverless.ts'

const Instant = z.iso.datetime({ offset: true }).openapi({ format: 'date-time' }).optional()
const Interval = z.enum(Object.keys(METRIC_INTERVALS) as [MetricInterval, ...MetricInterval[]])

/** Query of metrics over time. */
const MetricQuery = {
  interval: Interval.default('1m').openapi({ default: '1m' }),
  from: Instant,
  to: Instant,
}

const Time = z
  .object({
    count: z.int(),
    p50: z.int().nullable(),
    p90: z.int().nullable(),
    p95: z.int().nullable(),
    p99: z.int().nullable(),
  })
  .openapi('EndpointMetricTime')

const Workers = z.object({ average: z.number(), max: z.int() }).openapi('EndpointMetricWorkers')

const GpuUse = z.object({ average: z.number(), max: z.int() }).openapi('EndpointMetricGpuUse')

const Point = z
  .object({
    at: DateTime,
    requests: z.object({
      completed: z.int(),
      failed: z.int(),
      timedOut: z.int(),
      cancelled: z.int(),
      expired: z.int(),
    }),
    delayMs: Time,
    executionMs: Time,
    coldStartMs: Time,
    workers: z.object({ starting: Workers, idle: Workers, running: Workers, frozen: Workers }),
    gpus: z.object({ busyPercent: GpuUse.nullable(), memoryPercent: GpuUse.nullable() }),
    queue: z
      .object({ waiting: z.int(), inProgress: z.int() })
      .openapi({ description: 'the highest numbers; counted every 20 s' }),
    crashes: z.int().openapi({ description: 'workers that ended and were not asked to' }),
  })
  .openapi('EndpointMetricPoint')

/** Metrics of an endpoint over time. */
const MetricSeriesBody = z
  .object({
    serverlessId: z.string(),
    interval: Interval,
    from: DateTime,
    to: DateTime,
    points: z.array(Point),
    releases: z
      .array(z.object({ version: z.int(), ended: z.int(), failed: z.int(), executionMs: Time }))
      .openapi({ description: 'the requests that workers of each release ended, without cancelled ones' }),
  })
  .openapi('EndpointMetrics')
/** See {@link MetricSeriesBody}. */
type MetricSeriesBody = z.output<typeof MetricSeriesBody>

/** An addition to the public contract: metrics of an endpoint over time. */
export function metricRoutes({ endpoints, series }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/serverless/{id}/metrics',
        operationId: 'getEndpointMetrics',
        tag: 'Serverless',
        level: 'read',
        summary:
          'How the requests of an endpoint ended, how many waited, how long they took, how many workers there were and crashed, and how busy their GPUs were, over time',
        params: IdParam,
        query: MetricQuery,
        queryRules: [rangeRule(() => series)],
        success: { status: 200, schema: MetricSeriesBody },
        problems: [400, 404],
      },
      async ({ caller, params, query }): Promise<MetricSeriesBody> => {
        const { id } = await endpoints.find(caller.owner, endpointId(params.id))
        const { range, points, releases } = await series.read(id, metricRequest(query))
        return {
          serverlessId: id,
          interval: range.interval,
          from: dateTime(range.fromMs),
          to: dateTime(range.toMs),
          points: points.map(({ atMs, bucket }) => ({ at: dateTime(atMs), ...pointBody(bucket) })),
          releases: releases.map(([version, { ended, failed, execution }]) => ({
            version,
            ended,
            failed,
            executionMs: timeBody(execution),
          })),
        }
      },
    ),
  ]
}

/** Checks the range of a query against the current time. @param series called only for a request */
function rangeRule(series: () => MetricSeries): Rule<typeof MetricQuery> {
  return (given, sent) => {
    const isWrong = Object.keys(MetricQuery).some(name => sent.has(name) && !(name in given))
    return isWrong
      ? []
      : series()
          .problems(metricRequest(given))
          .map(problem => restSentence(problem, 'query'))
  }
}

function metricRequest({ interval = '1m', from, to }: Partial<Members<typeof MetricQuery>>): MetricRequest {
  return { interval, fromMs: instant(from), toMs: instant(to) }
}

function pointBody(bucket: MetricBucket): Omit<MetricSeriesBody['points'][number], 'at'> {
  return {
    requests: { ...bucket.results },
    delayMs: timeBody(bucket.times.delay),
    executionMs: timeBody(bucket.times.execution),
    coldStartMs: timeBody(bucket.times.coldStart),
    workers: {
      starting: workersBody(bucket, 'starting'),
      idle: workersBody(bucket, 'idle'),
      running: workersBody(bucket, 'running'),
      frozen: workersBody(bucket, 'frozen'),
    },
    gpus: { busyPercent: gpusBody(bucket, 'busy'), memoryPercent: gpusBody(bucket, 'memory') },
    queue: { ...bucket.queue },
    crashes: bucket.crashes,
  }
}

function timeBody(classes: TimeClasses) {
  const part = (of: number) => percentile(classes, of)
  return { count: countedTimes(classes), p50: part(0.5), p90: part(0.9), p95: part(0.95), p99: part(0.99) }
}

function workersBody({ workers }: MetricBucket, state: MetricWorkers) {
  const average = workers.samples === 0 ? 0 : workers.sum[state] / workers.samples
  return { average: twoDecimals(average), max: workers.max[state] }
}

function gpusBody({ gpus }: MetricBucket, use: MetricGpuUse) {
  const { samples, sum, max } = gpus[use]
  return samples === 0 ? null : { average: twoDecimals(sum / samples), max }
}

function twoDecimals(number: number): number {
  return Math.round(number * 100) / 100
}

function instant(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text)
}

function dateTime(ms: number): string {
  return new Date(ms).toISOString()
}
