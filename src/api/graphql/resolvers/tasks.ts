import { z } from '@hono/zod-openapi'
import type { Caller } from '../../../core/accounts/permission.ts'
import type { Compute } from '../../../core/endpoints/endpoint.ts'
import { parseInstanceId } from '../../../core/endpoints/instance-id.ts'
import { VOLUME_PATH, type WantedVolume } from '../../../core/endpoints/mounts.ts'
import { TASK_TOKEN } from '../../../core/endpoints/runtime-image.ts'
import { AppError, invalidRequest } from '../../../core/errors.ts'
import { poolsFromTypes, typesFromPools } from '../../../core/hardware/catalog.ts'
import type { RegistryId, VolumeId } from '../../../core/ids.ts'
import { isAppWorker } from '../../../services/accounts/app-worker-keys.ts'
import { type NewTask, NO_GENERAL_PODS, type Task } from '../../../services/endpoints/tasks.ts'
import type { ApiParts } from '../../parts.ts'
import { addressableTaskId, requireTaskAddress, shownTask } from '../../task-view.ts'
import type { GraphqlContext, Writing } from '../context.ts'
import { unsupported } from '../errors.ts'

const Text = z.string().max(65_536)
const Name = z.string().max(191)
/** The input of clients for a task. Data centers and public addresses mean nothing on one machine. */
const PodInput = z.object({
  name: Name,
  imageName: Text,
  dockerArgs: Text.nullish(),
  env: z
    .array(z.object({ key: Name, value: Text }))
    .max(200)
    .nullish(),
  containerDiskInGb: z.int().min(1).max(100_000).nullish(),
  containerRegistryAuthId: Name.nullish(),
  instanceId: Name.nullish(),
  gpuTypeId: Name.nullish(),
  gpuTypeIdList: z.array(Name).max(100).nullish(),
  gpuCount: z.int().min(1).max(64).nullish(),
  allowedCudaVersions: z.array(z.string().max(20)).max(100).nullish(),
  networkVolumeId: Name.nullish(),
  volumeMounts: z
    .array(z.object({ volumeId: Name, volumeType: z.string().max(50), mountPath: z.string().max(1_000).nullish() }))
    .max(10)
    .nullish(),
})

type PodFields = z.infer<typeof PodInput>

interface Given {
  readonly input?: unknown
}

/** A task as GraphQL shows it. @param id that of clients */
function podView(task: Task, id: string) {
  const shown = shownTask(task)
  return {
    id,
    name: shown.name,
    desiredStatus: shown.status,
    imageName: shown.image,
    dockerArgs: shown.args,
    env: Object.entries(shown.env).map(([name, value]) => `${name}=${value}`),
    gpuCount: shown.gpuCount,
    vcpuCount: shown.vcpus ?? 0,
    memoryInGb: shown.memoryGb ?? 0,
    containerDiskInGb: shown.diskGb,
    volumeInGb: 0,
    costPerHr: 0,
    machineType: shown.gpuType,
    lastStatusChange: shown.startedAt ?? shown.createdAt,
    ports: '8080/http',
    networkVolumeId: shown.volumeId,
  }
}

/** The tasks of an account as its pods. */
export async function podsOf({ tasks, addresses }: ApiParts, { owner }: Pick<Caller, 'owner'>) {
  const { items } = await tasks.list(owner)
  return items.map(task => podView(task, addressableTaskId(addresses, task)))
}

/** Queries of pods. Null for one that does not exist. */
export function taskQueries({ tasks, addresses, access }: ApiParts) {
  return {
    pod: async (_: unknown, { input }: Given, { caller }: GraphqlContext) => {
      if (caller === null) return null
      if (!isAppWorker(caller)) access.requireManagement(caller, 'read')
      const task = await tasks.find(caller, podId(input)).catch((error: unknown) => {
        if (error instanceof AppError && error.code === 'not_found') return null
        throw error
      })
      return task === null ? null : podView(task, addressableTaskId(addresses, task))
    },
  }
}

/** Mutations of pods, which start and end tasks. Functions may call them with the token of their worker. */
export function taskMutations({ tasks, addresses }: ApiParts, writing: Writing) {
  const deploy = writing(
    async (caller, { input }: Given) => {
      requireTask(input)
      requireTaskAddress(addresses)
      const task = await tasks.create(caller, readTask(input))
      return podView(task, addressableTaskId(addresses, task))
    },
    null,
    'for apps',
  )
  const end = async (caller: Caller, { input }: Given) => {
    await tasks.end(caller, podId(input))
    return null
  }
  return {
    deployCpuPod: deploy,
    podFindAndDeployOnDemand: deploy,
    podTerminate: writing(end, null, 'for apps'),
  }
}

/** Most fields of a general pod mean nothing here, so that it is refused as a whole. */
function requireTask(input: unknown): void {
  const env: unknown = Object(input).env
  const isTask = Array.isArray(env) && env.some(variable => Object(variable).key === TASK_TOKEN)
  if (!isTask) unsupported(NO_GENERAL_PODS)
}

function podId(input: unknown): string {
  const reading = z.object({ podId: z.string().max(1_000) }).safeParse(input)
  if (!reading.success) throw invalidRequest(['input.podId is needed'])
  return reading.data.podId
}

function readTask(input: unknown): NewTask {
  const reading = PodInput.safeParse(input)
  if (!reading.success) {
    throw invalidRequest(reading.error.issues.map(({ path, message }) => `input.${path.join('.')}: ${message}`))
  }
  const { data } = reading
  return {
    name: data.name,
    image: data.imageName,
    args: data.dockerArgs ?? '',
    env: Object.fromEntries((data.env ?? []).map(({ key, value }) => [key, value])),
    diskGb: data.containerDiskInGb ?? 10,
    registry: (data.containerRegistryAuthId || null) as RegistryId | null,
    compute: readCompute(data),
    volumes: readVolumes(data),
  }
}

/** A GPU by the names of types, as pools without their other types; else a CPU configuration. */
function readCompute({ instanceId, gpuTypeId, gpuTypeIdList, gpuCount, allowedCudaVersions }: PodFields): Compute {
  const types = gpuTypeIdList?.length ? gpuTypeIdList : gpuTypeId ? [gpuTypeId] : []
  if (types.length === 0) {
    const config = parseInstanceId(instanceId ?? '')
    if (config !== null) return { kind: 'cpu', configs: [config] }
    throw invalidRequest(['input.instanceId (such as cpu3g-4-16) or input.gpuTypeIdList is needed'])
  }
  const { pools } = poolsFromTypes(types)
  if (pools.length === 0) throw invalidRequest([`input.gpuTypeIdList: ${types.join(', ')} is no GPU type of a pool`])
  return {
    kind: 'gpu',
    pools,
    excludedTypes: typesFromPools(pools).filter(type => !types.includes(type)),
    count: gpuCount ?? 1,
    allowedCudaVersions: allowedCudaVersions ?? [],
    minCudaVersion: null,
  }
}

/** The network volume first: it is that of RUNPOD_VOLUME_ID. */
function readVolumes({ networkVolumeId, volumeMounts }: PodFields): WantedVolume[] {
  const mounts = volumeMounts ?? []
  if (mounts.length === 0 && networkVolumeId) {
    return [{ id: networkVolumeId as VolumeId, at: VOLUME_PATH, kind: 'network' }]
  }
  return mounts
    .toSorted((a, b) => Number(isGlobal(a)) - Number(isGlobal(b)))
    .map(mount => ({
      id: mount.volumeId as VolumeId,
      at: mount.mountPath ?? VOLUME_PATH,
      kind: isGlobal(mount) ? 'global' : 'network',
    }))
}

function isGlobal({ volumeType }: { readonly volumeType: string }): boolean {
  return volumeType === 'OBJECT_STORE_VOLUME'
}
