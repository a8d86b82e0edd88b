import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Counter, collectDefaultMetrics, Gauge, type Registry } from 'prom-client'
import { droppedLogLines } from './log.ts'

/**
 * Interval of measurements of the event loop. A shorter one wakes an idle server more often: 10 ms cost 0.6 % of a
 * core.
 */
const INTERVAL_MS = 100
const NS = 1e-9

/** Adds memory, processor time, event loop and garbage collection of this process, under their usual names. */
export function addProcessMetrics(registry: Registry): void {
  // Its own histogram counts the interval as delay. It is replaced below, and runs as rarely as possible.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 2 ** 31 - 1 })
  const delay = monitorEventLoopDelay({ resolution: INTERVAL_MS })
  delay.enable()
  const figures: Readonly<Record<string, () => number>> = {
    mean: () => delay.mean,
    p50: () => delay.percentile(50),
    p90: () => delay.percentile(90),
    p99: () => delay.percentile(99),
    max: () => delay.max,
  }
  for (const figure of ['min', 'stddev', ...Object.keys(figures)]) registry.removeSingleMetric(lagMetricName(figure))
  for (const [figure, read] of Object.entries(figures))
    new Gauge({
      registers: [registry],
      name: lagMetricName(figure),
      help: `Delay of the event loop since the last scrape, measured every ${INTERVAL_MS} ms: ${figure}`,
      collect() {
        const seconds = read() * NS - INTERVAL_MS / 1_000
        this.set(Number.isFinite(seconds) ? Math.max(0, seconds) : 0)
        // The last one: later events belong to the next scrape.
        if (figure === 'max') delay.reset()
      },
    })
}

/** Adds the lines that the log of this process lacks. */
export function addLogMetrics(registry: Registry): void {
  new Counter({
    registers: [registry],
    name: 'runyard_log_lines_dropped_total',
    help: 'Lines of the log that were dropped because standard error could not be written',
    collect() {
      this.reset()
      this.inc(droppedLogLines())
    },
  })
}

function lagMetricName(figure: string): string {
  return `nodejs_eventloop_lag_${figure}_seconds`
}
