import { invalidFields } from '../../core/errors.ts'
import type { FieldProblem } from '../../core/field-problem.ts'
import type { EndpointId } from '../../core/ids.ts'
import {
  MAX_INTERVALS,
  METRIC_INTERVALS,
  type MetricPoint,
  type MetricRange,
  type MetricRequest,
  metricRange,
  pointsFromBuckets,
  releasesFromBuckets,
} from '../../core/observing/metric-series.ts'
import type { Ports } from '../../ports/ports.ts'
import type { MetricRecorder } from './metric-recorder.ts'

/** Hours of the longest interval. */
const HOURS_OF_DAY = 24

/** Reads metrics over time. */
export class MetricSeries {
  readonly #ports
  readonly #recorder

  constructor(ports: Ports, recorder: MetricRecorder) {
    this.#ports = ports
    this.#recorder = recorder
  }

  /** Problems of a request; empty for a valid one. */
  problems(request: MetricRequest): readonly FieldProblem[] {
    const range = metricRange(request, this.#ports.clock.now())
    return 'problems' in range ? range.problems : []
  }

  /**
   * The intervals of an endpoint that have counts, in order, and the sums of its releases.
   * @throws AppError `invalid` for a range that is empty or too long
   */
  async read(
    id: EndpointId,
    request: MetricRequest,
  ): Promise<{
    readonly range: MetricRange
    readonly points: readonly MetricPoint[]
    readonly releases: ReturnType<typeof releasesFromBuckets>
  }> {
    const range = metricRange(request, this.#ports.clock.now())
    if ('problems' in range) throw invalidFields([...range.problems])
    const { span } = METRIC_INTERVALS[range.interval]
    const most = MAX_INTERVALS * HOURS_OF_DAY
    const buckets = await this.#ports.store.metrics.read(id, span, range.fromMs, range.toMs, most)
    const pending = this.#recorder.pending(id).filter(({ atMs }) => atMs >= range.fromMs && atMs < range.toMs)
    const all = [...buckets, ...pending]
    return { range, points: pointsFromBuckets(all, range.interval), releases: releasesFromBuckets(all) }
  }
}
