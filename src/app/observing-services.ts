import { NO_PRICES } from '../core/billing/prices.ts'
import { toAppError } from '../core/errors.ts'
import { fullText } from '../core/observing/full-store.ts'
import { DAMAGE_ACTION, damageText } from '../core/observing/store-damage.ts'
import { FREEZE_RULES } from '../core/scaling/frozen-plan.ts'
import type { Ports } from '../ports/ports.ts'
import type { AttemptRecorder } from '../services/observing/attempt-recorder.ts'
import type { EventFeed } from '../services/observing/event-feed.ts'
import { Explainer } from '../services/observing/explainer.ts'
import { JobStories } from '../services/observing/job-stories.ts'
import { LogReading } from '../services/observing/log-reading.ts'
import { MachineReading } from '../services/observing/machine-reading.ts'
import type { MetricRecorder } from '../services/observing/metric-recorder.ts'
import { MetricSeries } from '../services/observing/metric-series.ts'
import { MetricsReader } from '../services/observing/metrics-reader.ts'
import { Overview } from '../services/observing/overview.ts'
import type { TimeKeeper } from '../services/observing/server-time.ts'
import { WhatIf } from '../services/observing/what-if.ts'
import { WorkerReading } from '../services/observing/worker-reading.ts'
import type { BalancingServices } from './balancing-services.ts'
import type { AppConfig, Stopping } from './config.ts'
import type { JobServices } from './job-services.ts'
import type { WorkerServices } from './worker-services.ts'

/** Services that explain and show the state, and whether the server is ready. */
export interface ObservingServices {
  readonly explaining: Explainer
  readonly overview: Overview
  readonly machineReading: MachineReading
  readonly stories: JobStories
  readonly workers: WorkerReading
  readonly logs: LogReading
  readonly scraping: MetricsReader
  readonly series: MetricSeries
  readonly whatIf: WhatIf
  readonly feed: EventFeed
  /** Null where the server's time is that of the machine's clock. */
  readonly timeKeeper: TimeKeeper | null
  /** Null when it is ready, else the problem, without a path of the machine. */
  readonly notReady: () => Promise<string | null>
  /** What people should know of the store of a server that is ready; null for nothing. */
  readonly storeNote: () => string | null
}

/** Readers of the event stream and the care of the time, which are made before all services. */
export interface EventReaders {
  readonly metrics: MetricRecorder
  readonly attemptTimes: AttemptRecorder
  readonly feed: EventFeed
  readonly timeKeeper: TimeKeeper | null
}

export function createObservingServices(
  ports: Ports,
  { placing, prices, freezing, inspection }: AppConfig,
  { fleet, models, running }: WorkerServices,
  { balancing, gateway }: BalancingServices,
  { jobRecords }: JobServices,
  { metrics, attemptTimes, feed, timeKeeper }: EventReaders,
  { stopping }: Stopping,
): ObservingServices {
  const explaining = new Explainer(ports, { fleet, models, running, balancing, timeKeeper }, placing)
  return {
    explaining,
    overview: new Overview(ports, { balancing, explaining, recent: metrics.recent }),
    machineReading: new MachineReading(ports, inspection ?? null),
    stories: new JobStories(ports, { jobRecords, explaining }),
    workers: new WorkerReading(ports, { running, models, balancing, explaining }),
    logs: new LogReading(ports),
    scraping: new MetricsReader(ports, id => gateway.passing(id)),
    series: new MetricSeries(ports, metrics),
    whatIf: new WhatIf(ports, { balancing, recorder: attemptTimes }, prices ?? NO_PRICES, {
      ...FREEZE_RULES,
      ...freezing,
    }),
    feed,
    timeKeeper,
    notReady: () => whyNotReady(ports, stopping),
    storeNote: () => {
      const full = ports.storeRoom?.full() ?? null
      return full === null ? null : fullText(full)
    },
  }
}

async function whyNotReady({ leader, store, storeDamage }: Ports, stopping: AbortSignal): Promise<string | null> {
  if (stopping.aborted) return 'the server is stopping'
  if (!leader.isLeader()) return 'the server does not act on the database'
  try {
    await store.workers.alive()
    const damage = storeDamage?.met() ?? null
    return damage === null ? null : `${damageText(damage)}; ${DAMAGE_ACTION}`
  } catch (error) {
    return toAppError(error).message
  }
}
