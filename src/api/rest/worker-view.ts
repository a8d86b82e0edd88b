import type { Endpoint } from '../../core/endpoint.ts'
import type { Template } from '../../core/template.ts'
import type { WorkerLoad } from '../../core/worker.ts'
import type { WorkerList } from './schemas/endpoint.ts'

type Status = WorkerList['workers'][number]['status']

/** The workers of an endpoint as REST shows them. @param loads those that have not ended */
export function workerList(
  endpoint: Endpoint,
  template: Template,
  loads: readonly WorkerLoad[],
  nowMs: number,
): WorkerList {
  const workers = loads.map(worker => ({
    ...{ id: worker.id, status: statusOf(worker), version: worker.version },
    isStale: worker.version !== endpoint.version,
    gpuCount: 0,
    image: worker.version === endpoint.version ? template.image : null,
    uptimeSeconds: worker.startedAtMs === null ? null : Math.max(0, Math.floor((nowMs - worker.startedAtMs) / 1000)),
    gpuTypeId: null,
    dataCenterId: null,
    startedAt: worker.startedAtMs === null ? null : new Date(worker.startedAtMs).toISOString(),
  }))
  const count = (status: Status) => workers.filter(worker => worker.status === status).length
  const summary = {
    ...{ running: count('RUNNING'), idle: count('IDLE'), initializing: count('INITIALIZING') },
    ...{ throttled: count('THROTTLED'), unhealthy: count('UNHEALTHY'), total: workers.length },
  }
  return { workers, summary, endpointVersion: endpoint.version }
}

function statusOf({ state, held }: WorkerLoad): Status {
  if (state === 'STARTING') return 'INITIALIZING'
  return held > 0 ? 'RUNNING' : 'IDLE'
}
