import { z } from '@hono/zod-openapi'
import type { Task } from '../../services/endpoints/tasks.ts'
import type { ApiParts } from '../parts.ts'
import { type RestRoute, route } from '../rest/route.ts'
import { IdParam } from '../rest/schemas/common.ts'
import { shownTask } from '../task-view.ts'

const PLACEHOLDERS = { tag: 'v1', summary: '' } as const

/** Tasks of apps as pods. Tools list pods besides endpoints, and fail if that fails. */
export function podRoutes({ tasks }: ApiParts): RestRoute[] {
  const read = { method: 'get', level: 'read', success: { status: 200, schema: z.unknown() }, ...PLACEHOLDERS } as const
  const one = { path: '/v1/pods/{id}', params: IdParam } as const
  return [
    route({ ...read, path: '/v1/pods', operationId: 'v1 get /pods' }, async ({ caller }) =>
      (await tasks.list(caller.owner)).items.map(podView),
    ),
    route({ ...read, ...one, operationId: 'v1 get /pods/{id}' }, async ({ caller, params }) =>
      podView(await tasks.find(caller, params.id)),
    ),
    route(
      {
        ...PLACEHOLDERS,
        ...one,
        method: 'delete',
        level: 'write',
        operationId: 'v1 delete /pods/{id}',
        success: { status: 204, schema: null },
      },
      async ({ caller, params }) => tasks.end(caller, params.id),
    ),
  ]
}

function podView(task: Task) {
  const shown = shownTask(task)
  return {
    id: shown.id,
    name: shown.name,
    desiredStatus: shown.status,
    image: shown.image,
    dockerStartCmd: [],
    containerDiskInGb: shown.diskGb,
    env: shown.env,
    gpu: { id: shown.gpuType, count: shown.gpuCount },
    vcpuCount: shown.vcpus ?? 0,
    memoryInGb: shown.memoryGb ?? 0,
    networkVolumeId: shown.volumeId,
    ports: ['8080/http'],
    lastStartedAt: shown.startedAt,
    costPerHr: 0,
  }
}
