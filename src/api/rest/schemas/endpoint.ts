import { z } from '@hono/zod-openapi'
import { ENDPOINT_FIELDS, MAX_IDLE_TIMEOUT_S, MAX_WORKERS } from '../../../core/endpoints/endpoint.ts'
import { namesWith, picked } from '../../../core/endpoints/field.ts'
import { CANARY_PERCENT } from '../../../core/endpoints/rollout-facts.ts'
import { MAX_CUDA_VERSIONS } from '../../../core/endpoints/template.ts'
import { CPU_FLAVORS, GPU_POOLS } from '../../../core/hardware/catalog-data.ts'
import { restShape } from '../../dialect.ts'
import { ENDPOINT_MEMBERS } from '../../endpoint-fields.ts'
import { CONTAINER_MEMBERS, EnvironmentChanges } from '../../template-fields.ts'
import { CudaVersion, DateTime, Id, IdParam, listed, Name, Pagination, Uri, UriTemplate } from './common.ts'

const QueueRequestUrls = z
  .strictObject({
    run: Uri,
    runSync: Uri,
    purgeQueue: Uri,
    health: Uri,
    status: UriTemplate,
    stream: UriTemplate,
    cancel: UriTemplate,
    retry: UriTemplate,
  })
  .openapi('QueueBasedRequestUrls')

const LoadBalancingRequestUrls = z.strictObject({ base: Uri, health: Uri }).openapi('LoadBalancingRequestUrls')

const EndpointType = z.enum(['QUEUE', 'LOAD_BALANCER']).openapi('EndpointType')

const QueueDelayScaling = z
  .strictObject({ type: z.literal('QUEUE_DELAY'), queueDelay: z.number().min(0.5).max(86_400) })
  .openapi('QueueDelayScaling')
const RequestCountScaling = z
  .strictObject({ type: z.literal('REQUEST_COUNT'), requestCount: z.int().min(1).max(1_000_000) })
  .openapi('RequestCountScaling')
const Scaling = z.discriminatedUnion('type', [QueueDelayScaling, RequestCountScaling]).openapi('EndpointScaling')

const Workers = z
  .strictObject({
    min: z.int().min(0).max(MAX_WORKERS).optional(),
    max: z.int().min(0).max(MAX_WORKERS).optional(),
    idleTimeout: z.int().min(1).max(MAX_IDLE_TIMEOUT_S).optional(),
  })
  .openapi('EndpointWorkers')

/** Defaults of omitted members. The idle timeout does not apply to a queue that scales on requestCount. */
const WorkersCreated = z.strictObject({
  min: z.int().min(0).max(MAX_WORKERS).optional().openapi({ default: 0 }),
  max: z.int().min(0).max(MAX_WORKERS).optional().openapi({ default: 3 }),
  idleTimeout: z.int().min(1).max(MAX_IDLE_TIMEOUT_S).optional().openapi({ default: 10 }),
})

const WorkersShown = z.strictObject({
  min: z.int().min(0),
  max: z.int().min(0),
  idleTimeout: z.int().min(1).max(MAX_IDLE_TIMEOUT_S).optional(),
})

const CpuInput = z
  .strictObject({
    id: listed(CPU_FLAVORS.map(({ id }) => id)),
    // One vCPU is refused by a rule, unless the endpoint has it.
    vcpuCount: z
      .int()
      .min(1)
      .openapi({ minimum: 2, enum: [2, 4, 8, 16, 32] }),
  })
  .openapi('CreateCpuConfig')
/** GraphQL also creates workers with one vCPU. */
const CpuShown = z
  .object({ id: z.string().min(1), vcpuCount: z.int().min(1), memory: z.int().min(1) })
  .openapi('CpuConfig')
const CpuList = z.array(CpuInput).min(1).max(20).openapi({ uniqueItems: true })

const ExcludedTypes = z
  .array(
    z
      .string()
      .regex(/^\s*[^-\s]/, 'must not be empty or start with a hyphen')
      .trim(),
  )
  .max(100)
  .openapi({ uniqueItems: true })
const Pools = z
  .array(listed(GPU_POOLS.map(({ id }) => id)))
  .min(1)
  .max(50)
const GpuCount = z.int().min(1).max(64)
const CudaVersions = z.array(CudaVersion).max(MAX_CUDA_VERSIONS)
/** Null for whole GPUs. */
const GpuMemoryGb = z
  .union([z.number().min(0.5).max(1_024), z.literal('auto')], 'must be a number of GB, or auto')
  .nullable()

const GpuCreated = z
  .strictObject({
    pools: Pools,
    excludedTypes: ExcludedTypes.optional(),
    count: GpuCount.default(1),
    allowedCudaVersions: CudaVersions.optional(),
    minCudaVersion: CudaVersion.nullable().optional(),
    memoryGb: GpuMemoryGb.optional(),
  })
  .openapi('CreateEndpointGpuConfig')

const GpuChanged = z
  .strictObject({
    pools: Pools.optional(),
    excludedTypes: ExcludedTypes.optional(),
    count: GpuCount.optional(),
    allowedCudaVersions: CudaVersions.optional(),
    minCudaVersion: z
      .string()
      .regex(/^$|^\d+\.\d+$/, 'must be of the form major.minor, or empty')
      .nullable()
      .optional(),
    memoryGb: GpuMemoryGb.optional(),
  })
  .openapi('UpdateEndpointGpuConfig')

const GpuShown = z
  .object({
    pools: z.array(z.string()).min(1),
    excludedTypes: ExcludedTypes.optional(),
    count: z.int().min(1).openapi({ default: 1 }),
    allowedCudaVersions: z.array(z.string()),
    minCudaVersion: z.string().nullable(),
    memoryGb: z.union([z.number(), z.literal('auto')]).optional(),
  })
  .openapi('EndpointGpuConfig')

/** The members of a container configuration in a request. */
export const ContainerShape = restShape(CONTAINER_MEMBERS, 'created')

/** The members of a change of a container configuration. */
export const ChangedContainerShape = { ...ContainerShape, envChanges: EnvironmentChanges.optional() }

/** The members of a container configuration in a response. */
export const ContainerShown = restShape(CONTAINER_MEMBERS, 'shown')

/** The fields of an endpoint that a release has. */
export const RELEASED_MEMBERS = picked(ENDPOINT_MEMBERS, namesWith(ENDPOINT_FIELDS, ['release', 'kept']))

/** Body that creates an endpoint. */
export const CreateEndpoint = {
  ...ContainerShape,
  name: Name,
  type: EndpointType,
  scaling: Scaling,
  gpu: GpuCreated.optional(),
  cpu: CpuList.optional(),
  workers: WorkersCreated.optional(),
  ...restShape(ENDPOINT_MEMBERS, 'created'),
  templateId: Id.optional(),
}

/** Rollout of a change that workers see. */
const RolloutInput = z
  .strictObject({ canary: z.int().min(CANARY_PERCENT.least).max(CANARY_PERCENT.most) })
  .openapi('EndpointRollout')

/** Body that changes an endpoint. Omitted members are kept. */
export const UpdateEndpoint = {
  ...ChangedContainerShape,
  name: Name.optional(),
  scaling: Scaling.optional(),
  gpu: GpuChanged.optional(),
  cpu: CpuList.optional(),
  workers: Workers.optional(),
  ...restShape(ENDPOINT_MEMBERS, 'changed'),
  templateId: Id.optional(),
  rollout: RolloutInput.optional(),
}

// Members that are named here have another place in the document than in the table.
const { domain, timeout, flashboot, ...others } = restShape(ENDPOINT_MEMBERS, 'shown')

/** An endpoint as REST shows it. */
export const EndpointBody = z
  .object({
    id: z.string(),
    name: z.string(),
    type: EndpointType,
    requestUrls: z.union([QueueRequestUrls, LoadBalancingRequestUrls]).openapi('EndpointRequestUrls'),
    /**
     * An addition to the public contract, as `domain`, of load-balancing endpoints: their
     * own origin; null without one.
     */
    browserUrl: Uri.nullable().optional(),
    domain,
    gpu: GpuShown.nullable().optional(),
    cpu: z.array(CpuShown).min(1).optional(),
    workers: WorkersShown,
    pausedFrom: z
      .object({ min: z.int().min(0), max: z.int().min(1) })
      .optional()
      .openapi({ description: 'the numbers of workers before workers.max became 0, while it is 0' }),
    scaling: Scaling,
    ...others,
    timeout,
    flashboot,
    createdAt: DateTime,
    ...ContainerShown,
  })
  .openapi('Endpoint')

/** The shape of {@link EndpointBody}. */
export type EndpointBody = z.infer<typeof EndpointBody>

/** A page of endpoints. */
export const EndpointList = z
  .object({ endpoints: z.array(EndpointBody), pagination: Pagination })
  .openapi('ListEndpointsResponse')

const Count = z.int().min(0)

const AnyJson = z
  .union([z.string(), z.number(), z.boolean(), z.array(z.unknown()), z.record(z.string(), z.unknown())])
  .nullable()

const Release = z
  .object({
    id: z.string(),
    version: z.int().nullable(),
    source: z.enum(['GIT_BUILD', 'MANUAL']).openapi('ReleaseSource'),
    buildId: z.string().nullable(),
    createdByUserId: z.string().nullable(),
    workerCount: Count,
    createdAt: DateTime,
    diff: z.array(z.object({ field: z.string(), old: AnyJson, new: AnyJson }).openapi('ReleaseDiffEntry')),
    restoredVersion: z.int().nullable(),
    exactImage: z.string().nullable(),
    canary: z.int().nullable(),
  })
  .openapi('Release')

const { flashboot: releasedFlashboot, ...otherReleased } = restShape(RELEASED_MEMBERS, 'shown')

/** The configuration of a release, in the words of an endpoint. Variables refer to secrets. */
const ReleaseConfiguration = z
  .object({
    type: EndpointType,
    gpu: GpuShown.optional(),
    cpu: z.array(CpuShown).min(1).optional(),
    ...otherReleased,
    flashboot: releasedFlashboot,
    ...ContainerShown,
  })
  .openapi('ReleaseConfiguration')

/** The shape of a release's configuration. */
export type ReleaseConfiguration = z.infer<typeof ReleaseConfiguration>

/** One release with its configuration. */
export const ReleaseBody = Release.extend({ configuration: ReleaseConfiguration.nullable() }).openapi(
  'ReleaseWithConfiguration',
)

/** Parameters of the path of a release. */
export const ReleaseParams = { ...IdParam, version: z.string().openapi({ pattern: '^[1-9][0-9]{0,8}$' }) }

/** The releases of an endpoint, newest first, with the progress of the newest. */
export const ReleaseList = z
  .object({
    endpointVersion: z.int().nullable(),
    rollout: z
      .object({
        inProgress: z.boolean(),
        workersOnLatest: Count,
        workersTotal: Count,
        percentOnLatest: z.int().min(0).max(100),
        state: z.enum(['IN_PROGRESS', 'STOPPED', 'CANARY', 'COMPLETE']).openapi('RolloutState'),
        reason: z.string().nullable(),
        workingVersion: z.int().nullable(),
        canary: z.int().nullable(),
        failures: z
          .object({ at: DateTime, ended: Count, failed: Count, workingEnded: Count, workingFailed: Count })
          .nullable()
          .openapi('ReleaseFailures'),
      })
      .openapi('RolloutSummary'),
    releases: z.array(Release),
  })
  .openapi('ListEndpointReleasesResponse')

/** A restarted endpoint, with the version of its new release. */
export const RestartBody = z.object({ id: z.string(), version: z.int() }).openapi('RestartedEndpoint')
/** See {@link RestartBody}. */
export type RestartBody = z.infer<typeof RestartBody>
