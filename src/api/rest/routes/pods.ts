import { z } from '@hono/zod-openapi'
import { toAppError } from '../../../core/errors.ts'
import { isAppWorker } from '../../../services/accounts/app-worker-keys.ts'
import type { TaskReader } from '../../../services/endpoints/tasks.ts'
import type { LogScope } from '../../../services/observing/log-finder.ts'
import type { ApiParts } from '../../parts.ts'
import { shownTask } from '../../task-view.ts'
import { type RestRoute, route } from '../route.ts'
import { DateTime, EVENT_STREAM, IdParam, PageQuery, Pagination, pagination } from '../schemas/common.ts'
import { LastEventId, LogQuery } from '../schemas/logs.ts'
import { followedLog } from './worker-logs.ts'

/** A task. Its variables are without its token and the key of its program. */
const PodBody = z
  .object({
    id: z.string(),
    name: z.string(),
    status: z.enum(['RUNNING', 'EXITED']).openapi({ description: 'RUNNING also while it waits for a place' }),
    image: z.string(),
    args: z.string(),
    disk: z.int(),
    env: z.record(z.string(), z.string()),
    gpu: z.object({ count: z.int(), type: z.string().nullable() }),
    vcpus: z.number().nullable(),
    memoryGb: z.int().nullable(),
    networkVolumeId: z.string().nullable(),
    networkVolumes: z.array(z.string()).openapi({ description: 'its volumes, global ones as well' }),
    createdAt: DateTime,
    startedAt: DateTime.nullable(),
    workerId: z.string().nullable().openapi({ description: 'null while it waits for a place' }),
    startedBy: z.string().nullable().openapi({
      description: 'the endpoint or task whose function started it; null for one that a key of the account started',
    }),
  })
  .openapi('Pod')

const PodList = z.object({ pods: z.array(PodBody), pagination: Pagination }).openapi('PodList')

/** Tasks of apps, which clients call pods. */
export function podRoutes(parts: ApiParts): RestRoute[] {
  const { tasks } = parts
  const tag = 'Pods'
  return [
    route(
      {
        method: 'get',
        path: '/v2/pods',
        operationId: 'listPods',
        tag,
        level: 'read',
        summary: 'Tasks of apps (@app.task): workers that run one function and end; there are no other pods',
        query: PageQuery,
        success: { status: 200, schema: PodList },
        problems: [400],
      },
      async ({ caller, query }) => {
        const { items, nextCursor } = await tasks.list(caller.owner, query)
        return { pods: items.map(podBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'get',
        path: '/v2/pods/{id}',
        operationId: 'getPod',
        tag,
        level: 'read',
        forApps: true,
        summary: 'One task, in whatever state',
        params: IdParam,
        success: { status: 200, schema: PodBody },
        problems: [404],
      },
      async ({ caller, params }) => podBody(await tasks.find(caller, params.id)),
    ),
    route(
      {
        method: 'delete',
        path: '/v2/pods/{id}',
        operationId: 'deletePod',
        tag,
        level: 'write',
        forApps: true,
        summary: 'Ends a task, in whatever state, and forgets it',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404],
      },
      async ({ caller, params }) => tasks.end(caller, params.id),
    ),
    route(
      {
        method: 'get',
        path: '/v2/pods/{id}/logs',
        operationId: 'getPodLogs',
        tag,
        level: 'read',
        forApps: true,
        summary:
          'What a task or a worker prints, and what is done with it, as server-sent events that go on until it has ended',
        params: IdParam,
        query: LogQuery,
        headers: { 'Last-Event-ID': LastEventId },
        success: EVENT_STREAM,
        problems: [400, 404],
      },
      async call => {
        const { caller, params } = call
        return followedLog(parts, await podLogs(parts, caller, params.id), call)
      },
    ),
  ]
}

/**
 * The logs of a task, which are those of its worker, also of one that starts later; or of a worker of an endpoint,
 * whose id clients give in place of that of a pod. A worker of an app reads those of the tasks that it may find, and
 * no other ones.
 * @throws AppError `not_found`, also for those of other accounts
 */
export async function podLogs({ tasks, logs }: ApiParts, by: TaskReader, id: string): Promise<LogScope> {
  try {
    const { endpoint, worker } = await tasks.find(by, id)
    if (worker === null) return { kind: 'endpoint', id: endpoint.id }
    return { kind: 'worker', id: worker.id, endpointId: endpoint.id }
  } catch (error) {
    if (isAppWorker(by) || toAppError(error).code !== 'not_found') throw error
    return logs.findOwnWorker(by.owner, id).catch(missing => {
      throw toAppError(missing).code === 'not_found' ? error : missing
    })
  }
}

function podBody(task: Parameters<typeof shownTask>[0]): z.output<typeof PodBody> {
  const {
    diskGb: disk,
    gpuCount: count,
    gpuType: type,
    volumeId: networkVolumeId,
    volumeIds,
    ...shown
  } = shownTask(task)
  return { ...shown, disk, gpu: { count, type }, networkVolumeId, networkVolumes: [...volumeIds] }
}
