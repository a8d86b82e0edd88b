import { z } from '@hono/zod-openapi'
import { ENDPOINT_STATES } from '../../../core/observing/endpoint-state.ts'
import { WAIT_CAUSES } from '../../../core/observing/explanation.ts'
import { DateTime, PageQuery, Pagination, pageLimit } from './common.ts'

const Count = z.int().min(0)

/** Query of the overview. */
export const OverviewQuery = {
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
      errorShare: z.number().nullable(),
      points: z.array(Count),
    }),
    why: z
      .object({ cause: z.enum(WAIT_CAUSES), summary: z.string(), sinceMs: z.int().nullable() })
      .openapi('EndpointWhy')
      .nullable(),
    rollout: z.object({ state: z.enum(['IN_PROGRESS', 'STOPPED', 'CANARY']) }).nullable(),
  })
  .openapi('EndpointOverview')

/** The endpoints of an account, a row each. */
export const OverviewBody = z
  .object({ endpoints: z.array(Row), unexplained: Count, pagination: Pagination })
  .openapi('Overview')
/** See {@link OverviewBody}. */
export type OverviewBody = z.infer<typeof OverviewBody>
