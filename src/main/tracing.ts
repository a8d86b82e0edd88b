/** Traces of a run of the server: settings become what makes spans and what sends them. */
import type { TracingConfig } from '../config/tracing.ts'
import { packageVersion } from '../disk/package-files.ts'
import { systemClock } from '../system/clock.ts'
import type { Log } from '../system/observing/log.ts'
import type { CountingMetrics } from '../system/observing/metrics.ts'
import { loadSpanExporter, SPAN_EXPORTERS, type SpanExporter } from '../system/observing/span-exporter.ts'
import { SpanQueue } from '../system/observing/span-queue.ts'
import { Tracer } from '../system/observing/tracer.ts'
import { systemRandom } from '../system/random.ts'

/** The settings, and the exporter that was loaded for them. */
export interface LoadedTracing {
  readonly config: TracingConfig
  readonly exporter: SpanExporter
}

/** What records traces. */
export interface Traces {
  readonly tracer: Tracer
  /** Sends the spans that wait, for some seconds at most. */
  close(): Promise<void>
}

/** How long spans may take to be sent when the server stops. */
const FLUSH_MS = 3_000

/** Loads what sends traces. Null when none are asked for, or when its package is missing, which the log says. */
export async function loadTracing(config: TracingConfig | null, log: Log): Promise<LoadedTracing | null> {
  if (config === null) return null
  const { protocol, serviceName, resource } = config
  const exporter = await loadSpanExporter(protocol, { serviceName, resource, version: packageVersion() })
  if (exporter !== null) return { config, exporter }
  const install = `npm install --global ${SPAN_EXPORTERS[protocol]}`
  log.warn({ install }, 'no traces are sent, because the package that sends them is not installed')
  return null
}

/** Begins to record traces. */
export function openTraces({ config, exporter }: LoadedTracing, metrics: CountingMetrics, log: Log): Traces {
  const queue = new SpanQueue(systemClock, config.limits, exporter.send, {
    sent: count => metrics.spansPassed('sent', count),
    dropped: count => metrics.spansPassed('dropped', count),
    failing: (problem, dropped) => log.warn({ problem, dropped }, 'spans of traces were dropped'),
  })
  const ports = { clock: systemClock, random: systemRandom }
  const tracer = new Tracer(ports, config.sampling, spans => queue.add(spans))
  return {
    tracer,
    async close() {
      await queue.close(FLUSH_MS)
      // It may wait for a call that goes on.
      void exporter.close().catch(() => {})
    },
  }
}
