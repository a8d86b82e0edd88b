import type { Ports } from '../ports/ports.ts'
import { Explainer } from '../services/observing/explainer.ts'
import { LogReading } from '../services/observing/log-reading.ts'
import type { MetricRecorder } from '../services/observing/metric-recorder.ts'
import { MetricSeries } from '../services/observing/metric-series.ts'
import { MetricsReader } from '../services/observing/metrics-reader.ts'
import { WorkerReading } from '../services/observing/worker-reading.ts'
import type { BalancingServices } from './balancing-services.ts'
import type { AppConfig, Stopping } from './config.ts'
import type { WorkerServices } from './worker-services.ts'

/** Services that explain and show the state, and whether the server is ready. */
export interface ObservingServices {
  readonly explaining: Explainer
  readonly workers: WorkerReading
  readonly logs: LogReading
  readonly scraping: MetricsReader
  readonly series: MetricSeries
  readonly ready: () => Promise<boolean>
}

export function createObservingServices(
  ports: Ports,
  { placing }: AppConfig,
  { fleet, running }: WorkerServices,
  { balancing, gateway }: BalancingServices,
  recorder: MetricRecorder,
  { stopping }: Stopping,
): ObservingServices {
  const explaining = new Explainer(ports, { fleet, running, balancing }, placing)
  return {
    explaining,
    workers: new WorkerReading(ports, { running, balancing, explaining }),
    logs: new LogReading(ports),
    scraping: new MetricsReader(ports, id => gateway.passing(id)),
    series: new MetricSeries(ports, recorder),
    ready: () => isReady(ports, stopping),
  }
}

async function isReady({ leader, store }: Ports, stopping: AbortSignal): Promise<boolean> {
  if (stopping.aborted || !leader.isLeader()) return false
  try {
    await store.workers.alive()
    return true
  } catch {
    return false
  }
}
