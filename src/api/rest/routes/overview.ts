import { z } from '@hono/zod-openapi'
import { ATTENTION_KINDS } from '../../../core/alerts/concern.ts'
import { ENDPOINT_STATES } from '../../../core/observing/endpoint-state.ts'
import { WAIT_CAUSES } from '../../../core/observing/explanation.ts'
import { waitingCount } from '../../../core/scaling/scale.ts'
import type { OverviewRow } from '../../../services/observing/overview.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { DateTime, PageQuery, Pagination, pageLimit, pagination } from '../schemas/common.ts'

const Count = z.int().min(0)

/** Query of the overview. */
const OverviewQuery = {
  cursor: PageQuery.cursor,
  limit: pageLimit(100),
}

const Row = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(['QUEUE', 'LOAD_BALANCER']),
    image: z.string().nullable(),
    version: z.int(),
    createdAt: DateTime,
    workersMin: Count,
    workersMax: Count,
    flashboot: z.string(),
    state: z.enum(ENDPOINT_STATES).openapi('EndpointState'),
    workers: z.object({
      running: Count,
      idle: Count,
      initializing: Count,
      throttled: Count,
      unhealthy: Count,
      frozen: Count,
      total: Count,
    }),
    jobs: z.object({ inQueue: Count, inProgress: Count, oldestQueuedAt: DateTime.nullable() }),
    rate: z.object({
      perMinute: z.number(),
      errorShare: z.number().nullable().openapi({ description: 'of the requests that ended in the last hour' }),
      recentErrorShare: z.number().nullable().openapi({ description: 'of those of the last ten minutes' }),
      failingShare: z
        .number()
        .nullable()
        .openapi({ description: 'share of the requests that fail, if somebody should look at that' }),
      points: z.array(Count),
    }),
    why: z
      .object({ cause: z.enum(WAIT_CAUSES), summary: z.string(), sinceMs: z.int().nullable() })
      .openapi('EndpointWhy')
      .nullable(),
    attention: z
      .enum(ATTENTION_KINDS)
      .nullable()
      .openapi({ description: 'what it needs: a fix, also of requests that fail, or a look at a wait' }),
    rollout: z
      .object({
        state: z.enum(['IN_PROGRESS', 'STOPPED', 'CANARY']),
        canary: z.int().nullable().openapi({ description: 'percent of the workers that run a canary' }),
      })
      .nullable(),
  })
  .openapi('EndpointOverview')

/** The endpoints of an account, a row each. */
const OverviewBody = z
  .object({ endpoints: z.array(Row), unexplained: Count, pagination: Pagination })
  .openapi('Overview')
/** See {@link OverviewBody}. */
type OverviewBody = z.infer<typeof OverviewBody>

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

function rowBody(row: OverviewRow) {
  const { endpoint, image, state, counts, frozen, queue, rate, failingShare, why, attention, rollout, canary } = row
  const { id, name, type, version, createdAtMs, workersMin, workersMax, flashboot } = endpoint
  const { running, idle, initializing, throttled, unhealthy, total } = counts
  const { inProgress, headQueuedAtMs } = queue
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
      inQueue: waitingCount(queue),
      inProgress,
      oldestQueuedAt: headQueuedAtMs === null ? null : new Date(headQueuedAtMs).toISOString(),
    },
    rate: { ...rate, failingShare, points: [...rate.points] },
    why: why === null ? null : { cause: why.cause, summary: why.summary, sinceMs: why.sinceMs },
    attention,
    rollout: rollout === 'COMPLETE' ? null : { state: rollout, canary },
  }
}
