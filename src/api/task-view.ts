/** Tasks as clients of pods see them. */
import { clientTaskId, shownTaskEnv } from '../core/endpoints/task.ts'
import { AppError } from '../core/errors.ts'
import { countGpus } from '../core/workers/placement.ts'
import { type TaskStatus, taskStatus } from '../core/workers/task-status.ts'
import type { Task } from '../services/endpoints/tasks.ts'
import type { Addresses } from './addresses.ts'
import { jobsOrigin } from './client-variables.ts'

/** The parts of a task that all dialects show. */
export interface ShownTask {
  readonly id: string
  readonly name: string
  readonly status: TaskStatus
  readonly image: string
  readonly args: string
  readonly diskGb: number
  readonly env: Readonly<Record<string, string>>
  readonly gpuCount: number
  readonly gpuType: string | null
  readonly vcpus: number | null
  readonly memoryGb: number | null
  readonly volumeId: string | null
  /** Network volumes and global ones. */
  readonly volumeIds: readonly string[]
  readonly createdAt: string
  readonly startedAt: string | null
  readonly workerId: string | null
  /** The endpoint or task whose function started it; null for none. */
  readonly startedBy: string | null
}

/** A task with its short id. */
export function shownTask({ endpoint, template, worker }: Task): ShownTask {
  const { compute } = endpoint
  const placement = worker?.placement ?? null
  const gpuCount = compute.kind === 'gpu' ? compute.count : 0
  return {
    id: endpoint.id,
    name: endpoint.name,
    status: taskStatus(endpoint.workersMax, worker),
    image: template.image,
    args: template.args,
    diskGb: template.diskGb,
    env: shownTaskEnv(template.env),
    gpuCount: placement === null ? gpuCount : countGpus(placement),
    gpuType: placement?.gpus[0]?.type ?? null,
    vcpus: placement?.vcpus ?? null,
    memoryGb: placement?.memoryMb == null ? null : Math.floor(placement.memoryMb / 1024),
    volumeId: endpoint.networkVolumeIds[0] ?? null,
    volumeIds: endpoint.networkVolumeIds,
    createdAt: new Date(endpoint.createdAtMs).toISOString(),
    startedAt: worker?.startedAtMs == null ? null : new Date(worker.startedAtMs).toISOString(),
    workerId: worker?.id ?? null,
    startedBy: endpoint.starters.at(-1) ?? null,
  }
}

/**
 * The id of a new task for its client, which makes the address of its program of it.
 * @throws AppError `invalid` where clients reach the server without TLS: they would ask for ten minutes in vain
 */
export function addressableTaskId(addresses: Addresses, { endpoint }: Task): string {
  return clientTaskId(new URL(jobsOrigin(addresses)).host, endpoint.id)
}

/** @throws AppError `invalid` as {@link addressableTaskId} */
export function requireTaskAddress(addresses: Addresses): void {
  if (new URL(jobsOrigin(addresses)).protocol === 'https:') return
  throw new AppError(
    'invalid',
    'clients reach tasks over HTTPS alone: start the server with --tls-self-signed or a certificate, or give its HTTPS address with --queue-url',
  )
}
