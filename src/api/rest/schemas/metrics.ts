import { z } from '@hono/zod-openapi'
import { METRIC_INTERVALS, type MetricInterval } from '../../../core/observing/metric-series.ts'
import { DateTime } from './common.ts'

const Instant = z.iso.datetime({ offset: true }).openapi({ format: 'date-time' }).optional()
const Interval = z.enum(Object.keys(METRIC_INTERVALS) as [MetricInterval, ...MetricInterval[]])

/** Query of metrics over time. */
export const MetricQuery = {
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
  })
  .openapi('EndpointMetricPoint')

/** Metrics of an endpoint over time. */
export const MetricSeriesBody = z
  .object({
    serverlessId: z.string(),
    interval: Interval,
    from: DateTime,
    to: DateTime,
    points: z.array(Point),
  })
  .openapi('EndpointMetrics')
/** See {@link MetricSeriesBody}. */
export type MetricSeriesBody = z.output<typeof MetricSeriesBody>
