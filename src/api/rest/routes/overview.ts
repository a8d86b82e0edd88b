import type { OverviewRow } from '../../../services/observing/overview.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { pagination } from '../schemas/common.ts'
import { OverviewBody, OverviewQuery } from '../schemas/overview.ts'

/** An addition to the public contract: all endpoints with their state, for a page that reads them again often. */
export function overviewRoutes({ overview }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/overview',
        operationId: 'getOverview',
        tag: 'Serverless',
        level: 'read',
        summary:
          'The endpoints of the caller, oldest first, each with its state, workers, queue, requests of the last hour, and why something waits',
        query: OverviewQuery,
        success: { status: 200, schema: OverviewBody },
        problems: [400],
      },
      async ({ caller, query }): Promise<OverviewBody> => {
        const { rows, unexplained, nextCursor } = await overview.page(caller.owner, query)
        return { endpoints: rows.map(rowBody), unexplained, pagination: pagination(nextCursor) }
      },
    ),
  ]
}

function rowBody({ endpoint, image, state, counts, frozen, queue, rate, why, rollout }: OverviewRow) {
  const { id, name, type, version, createdAtMs, workersMin, workersMax, flashboot } = endpoint
  const { running, idle, initializing, throttled, unhealthy, total } = counts
  const { queued, queuedLowPriority, inProgress, headQueuedAtMs } = queue
  return {
    id,
    name,
    type,
    image,
    version,
    createdAt: new Date(createdAtMs).toISOString(),
    workersMin,
    workersMax,
    flashboot,
    state,
    workers: { running, idle, initializing, throttled, unhealthy, frozen, total },
    jobs: {
      inQueue: queued + queuedLowPriority,
      inProgress,
      oldestQueuedAt: headQueuedAtMs === null ? null : new Date(headQueuedAtMs).toISOString(),
    },
    rate: { ...rate, points: [...rate.points] },
    why: why === null ? null : { cause: why.cause, summary: why.summary, sinceMs: why.sinceMs },
    rollout: rollout === 'COMPLETE' ? null : { state: rollout },
  }
}
