import { z } from '@hono/zod-openapi'
import type { WorkerId } from '../../../core/ids.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, route } from '../route.ts'
import { IdParam } from '../schemas/common.ts'
import { WorkerDetail, WorkerList } from '../schemas/worker.ts'
import { workerDetail, workerList } from '../worker-view.ts'
import { endpointId } from './serverless.ts'

const ALL = '/v2/serverless/{id}/workers'

/**
 * The workers of an endpoint, and one worker. The single worker and ended workers are
 * additions to the public contract.
 */
export function workerRoutes({ ports, workers }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: ALL,
        operationId: 'listEndpointWorkers',
        tag: 'Serverless',
        level: 'read',
        summary: 'The workers of an endpoint that have not ended; with ended=true also those that have',
        params: IdParam,
        query: { ended: z.enum(['true', 'false']).default('false') },
        success: { status: 200, schema: WorkerList },
        problems: [400, 404],
      },
      async ({ caller, params, query }) => {
        const withEnded = query.ended === 'true'
        const report = await workers.ofEndpoint(caller.owner, endpointId(params.id), withEnded)
        return workerList(report, withEnded, ports.clock.now())
      },
    ),
    route(
      {
        method: 'get',
        path: `${ALL}/{workerId}`,
        operationId: 'getEndpointWorker',
        tag: 'Serverless',
        level: 'read',
        summary: 'One worker with its time line, its jobs and how it ended',
        params: { ...IdParam, workerId: IdParam.id },
        success: { status: 200, schema: WorkerDetail },
        problems: [404],
      },
      async ({ caller, params }) => {
        const id = endpointId(params.id)
        const { worker, jobs } = await workers.one(caller.owner, id, params.workerId as WorkerId)
        return workerDetail(id, worker, jobs, ports.clock.now())
      },
    ),
  ]
}
