import { FULL_SCOPE } from '../../core/accounts/permission.ts'
import {
  type Compute,
  type Endpoint,
  type EndpointConfig,
  type EndpointType,
  type GpuShare,
  gpuShare,
  type Priority,
  SCALER_DEFAULTS,
  withDefaults,
} from '../../core/endpoints/endpoint.ts'
import { TEMPLATE_DEFAULTS, type Template } from '../../core/endpoints/template.ts'
import { AppError } from '../../core/errors.ts'
import { ANY_GPU, gpuChoice } from '../../core/hardware/gpu-choice.ts'
import { typesHere } from '../../core/hardware/inventory.ts'
import { type EndpointId, isEndpointId, type OwnerId } from '../../core/ids.ts'
import { currentBackoff } from '../../core/scaling/scale.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Driver } from '../../ports/driver.ts'
import type { Machine } from '../../ports/machine.ts'
import type { Store } from '../../ports/store/store.ts'
import type { Endpoints } from './endpoints.ts'
import type { Templates } from './templates.ts'

/** Dependencies of {@link ensureFolderEndpoint}. */
export interface FolderParts {
  readonly clock: Clock
  readonly store: Store
  readonly driver: Pick<Driver, 'check'>
  readonly machine: Machine
  readonly endpoints: Endpoints
  readonly templates: Templates
}

/** A folder whose handler or server runs in workers. */
export interface WorkerFolder {
  /** Name that the endpoint is named after. */
  readonly name: string
  /** Absolute path. */
  readonly path: string
  /** Name of the images that are built from it. */
  readonly repository: string
  /** Type of its endpoint. */
  readonly type: EndpointType
  /** Tag of the image that was built now; null to run the folder as it is, in processes. */
  readonly tag: string | null
  /** True for a new endpoint that runs on the CPU unless GPUs are requested. */
  readonly prefersCpu?: boolean
  readonly settings?: FolderSettings
}

/** Settings of the endpoint of a folder at a start. The endpoint keeps those that are left out. */
export interface FolderSettings {
  /**
   * GPUs in the words of core/hardware/gpu-choice, or `none`. A new endpoint gets those of the machine unless it is
   * given.
   */
  readonly gpu?: string | undefined
  /** GPUs of one worker; 1 for a new endpoint unless it is given. */
  readonly gpuCount?: number | undefined
  /** Share of the memory of one GPU for each worker, in GB; 0 for whole GPUs. */
  readonly gpuMemoryGb?: GpuShare | undefined
  readonly priority?: Priority | undefined
  /** True if its jobs may be paused; without an effect on a folder that serves requests. */
  readonly preemptible?: boolean | undefined
  readonly workersMax?: number | undefined
  /** The command of its workers. */
  readonly args?: string | undefined
}

/** A caller's endpoint with what it runs. */
interface FolderEndpoint {
  readonly endpoint: Endpoint | null
  readonly template: Template
}

/**
 * The endpoint that runs the handler or server in a folder. The first call creates a template and an endpoint, both
 * named after the folder; the id of the endpoint is the name's letters and digits where that id is free. Later calls
 * find them again by the path of the folder, with later changes kept; another image, type or setting makes a new
 * release, whose workers replace those of the old one. So does a release whose workers crashed, so that a person who
 * mended the folder and starts the server again does not wait for its next try.
 * @throws AppError `invalid` with what is wrong with the folder or the settings, `conflict` when it gets another type
 *   and has unfinished jobs
 */
export async function ensureFolderEndpoint(
  parts: FolderParts,
  owner: OwnerId,
  folder: WorkerFolder,
): Promise<Endpoint> {
  const { driver, endpoints, templates } = parts
  const { name, path, repository, type, tag, settings = {} } = folder
  // The person who starts the server is the operator, who may choose folders of the machine.
  const by = { owner, operator: true, scope: FULL_SCOPE }
  const image = tag === null ? `dir:${path}` : `${repository}:${tag}`
  const existing = await findFolderEndpoint(parts, owner, folder)
  const args = settings.args ?? existing?.template.args ?? ''
  const failure = tag === null ? await driver.check(`dir:${path}`, args, type) : null
  if (failure !== null) throw new WorkerStartError(failure)
  const compute = await chooseCompute(parts, folder, existing?.endpoint ?? null)
  if (existing?.endpoint != null) {
    const runs = {
      ...(existing.template.image === image ? {} : { image }),
      ...(existing.template.args === args ? {} : { args }),
    }
    const changes = endpointChanges(existing.endpoint, { type, compute, ...givenFields(folder) })
    if (Object.keys(runs).length > 0) await templates.save(by, { id: existing.template.id, changes: runs })
    const { id } = existing.endpoint
    if (Object.keys(changes).length > 0) return (await endpoints.save(by, { id, changes })).endpoint
    return (await waitsAfterCrashes(parts, id)) ? endpoints.restart(owner, id) : endpoints.find(owner, id)
  }
  const config = {
    ...TEMPLATE_DEFAULTS,
    name: existing?.template.name ?? (await freeName(templates, owner, name)),
    image,
    args,
    volumeGb: 0,
    diskGb: tag === null ? 1 : CONTAINER_DISK_GB,
    isServerless: true,
  }
  const template = existing?.template ?? (await templates.save(by, { config })).template
  if (existing !== null && (template.image !== image || template.args !== args))
    await templates.save(by, { id: template.id, changes: { image, args } })
  const endpointConfig = withDefaults({ name, compute, type, ...givenFields(folder) })
  return (await endpoints.save(by, { config: endpointConfig, runs: template.id, wantedId: idFromName(name) })).endpoint
}

/**
 * True if the next worker of an endpoint starts later because others of its release crashed. False where that cannot
 * be read: a start on a damaged database goes on, and says so later.
 */
async function waitsAfterCrashes({ store, clock }: FolderParts, id: EndpointId): Promise<boolean> {
  const snapshot = await store.endpoints.snapshot(id).catch(() => null)
  return snapshot !== null && currentBackoff(snapshot).untilMs > clock.now()
}

/**
 * The oldest endpoint that runs the folder, in processes or in containers, also one with an unlisted template of its
 * own, which it gets with the first change of its environment. Else a template for the folder, whose endpoint was
 * deleted.
 */
async function findFolderEndpoint(
  parts: FolderParts,
  owner: OwnerId,
  { path, repository }: WorkerFolder,
): Promise<FolderEndpoint | null> {
  const { store, endpoints } = parts
  const isOurs = ({ image, isServerless }: Template) =>
    isServerless && (image === `dir:${path}` || image.startsWith(`${repository}:`))
  const all = await store.endpoints.list(owner)
  const templateOf = await endpoints.readTemplates(all)
  for (const endpoint of all) {
    const template = templateOf.get(endpoint)
    if (template !== undefined && isOurs(template)) return { endpoint, template }
  }
  const template = (await store.templates.list(owner)).find(isOurs)
  return template === undefined ? null : { endpoint: null, template }
}

const CPU: Compute = { kind: 'cpu', configs: [{ flavor: 'cpu3g', vcpuCount: 2 }] }

/** @param existing the endpoint as it is; null for a new one */
async function chooseCompute(
  { machine }: FolderParts,
  { settings: { gpu, gpuCount, gpuMemoryGb } = {}, prefersCpu = false }: WorkerFolder,
  existing: Endpoint | null,
): Promise<Compute> {
  const previous = existing?.compute ?? null
  const share = gpuShare(gpuMemoryGb === 0 ? null : gpuMemoryGb, previous)
  if (gpu === undefined && previous !== null) {
    if (gpuCount === undefined && gpuMemoryGb === undefined) return previous
    if (previous.kind === 'gpu') {
      const { memoryGb: _, ...whole } = previous
      return { ...whole, count: gpuCount ?? previous.count, ...share }
    }
  }
  if (gpu === 'none') {
    const given = gpuCount !== undefined ? '--gpus' : gpuMemoryGb !== undefined ? '--gpu-memory' : null
    if (given !== null) throw new AppError('invalid', `${given} is given with --gpu none; leave one of them out`)
    return previous?.kind === 'cpu' ? previous : CPU
  }
  const isAsked = gpu !== undefined || gpuCount !== undefined || gpuMemoryGb !== undefined
  if (!isAsked && prefersCpu) return CPU
  const localTypes = typesHere(await machine.parts())
  if (!isAsked && localTypes.length === 0) return CPU
  const choice = gpuChoice(gpu ?? ANY_GPU, localTypes)
  if (typeof choice === 'string')
    throw new AppError(
      'invalid',
      `${gpu !== undefined ? '--gpu' : gpuCount !== undefined ? '--gpus' : '--gpu-memory'} ${choice}`,
    )
  const limits =
    previous?.kind === 'gpu'
      ? previous
      : { count: 1, allowedCudaVersions: [] as readonly string[], minCudaVersion: null }
  const { count, allowedCudaVersions, minCudaVersion } = limits
  return { kind: 'gpu', ...choice, count: gpuCount ?? count, allowedCudaVersions, minCudaVersion, ...share }
}

/** The fields of the endpoint that the settings of a folder name and that count at once. */
function givenFields({ type, settings = {} }: WorkerFolder): Partial<EndpointConfig> {
  const { workersMax, priority, preemptible } = settings
  return {
    ...(workersMax === undefined ? {} : { workersMax }),
    ...(priority === undefined ? {} : { priority }),
    ...(preemptible === undefined || type !== 'QUEUE' ? {} : { preemptible }),
  }
}

function endpointChanges(
  endpoint: Endpoint,
  { type, ...given }: Partial<EndpointConfig> & Pick<EndpointConfig, 'type'>,
): Partial<EndpointConfig> {
  const changed = Object.entries(given).filter(
    ([name, value]) => JSON.stringify(endpoint[name as keyof EndpointConfig]) !== JSON.stringify(value),
  )
  // Only a queue may have jobs that are paused.
  const more = type === 'QUEUE' || !endpoint.preemptible ? {} : { preemptible: false }
  return {
    ...(endpoint.type === type ? {} : { type, scaler: SCALER_DEFAULTS[type], ...more }),
    ...Object.fromEntries(changed),
  }
}

/** Disk of a container worker of a folder, in GB. */
const CONTAINER_DISK_GB = 10

async function freeName(templates: Templates, owner: OwnerId, name: string): Promise<string> {
  for (let number = 1; ; number += 1) {
    const candidate = number === 1 ? name : `${name}-${number}`
    if ((await templates.findByName(owner, candidate)) === null) return candidate
  }
}

function idFromName(name: string): EndpointId | undefined {
  const id = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
  return isEndpointId(id) ? id : undefined
}
