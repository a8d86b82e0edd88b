import { z } from '@hono/zod-openapi'

/** Error body of REST: a problem document (RFC 9457). */
export const Problem = z
  .object({ title: z.string(), status: z.int(), detail: z.string(), errors: z.array(z.string()).optional() })
  .openapi('ErrorResponse')

const Uri = z.string().openapi({ format: 'uri' })

const QueueRequestUrls = z
  .strictObject({
    ...{ run: Uri, runSync: Uri, status: Uri, stream: Uri, cancel: Uri, retry: Uri, purgeQueue: Uri, health: Uri },
  })
  .openapi('QueueBasedRequestUrls')

const LoadBalancingRequestUrls = z.strictObject({ base: Uri, health: Uri }).openapi('LoadBalancingRequestUrls')

const Gpu = z.object({
  pools: z.array(z.string()).min(1),
  excludedTypes: z.array(z.string()).optional(),
  count: z.int().min(1),
  allowedCudaVersions: z.array(z.string()),
  minCudaVersion: z.string().nullable(),
})

const Cpu = z.object({ id: z.string().min(1), vcpuCount: z.int(), memory: z.int().min(1) })

const Workers = z.strictObject({
  min: z.int().min(0),
  max: z.int().min(0),
  idleTimeout: z.int().min(1).max(3600).optional(),
})

const Scaling = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('QUEUE_DELAY'), queueDelay: z.number().min(0.5) }),
  z.strictObject({ type: z.literal('REQUEST_COUNT'), requestCount: z.int().min(1) }),
])

/** An endpoint as REST shows it. */
export const EndpointBody = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(['QUEUE', 'LOAD_BALANCER']),
    requestUrls: z.union([QueueRequestUrls, LoadBalancingRequestUrls]),
    gpu: Gpu.nullable().optional(),
    cpu: z.array(Cpu).min(1).optional(),
    workers: Workers,
    scaling: Scaling,
    dataCenterIds: z.array(z.string()),
    networkVolumes: z.array(z.string()),
    timeout: z.int(),
    flashboot: z.enum(['OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT']),
    createdAt: z.string().openapi({ format: 'date-time' }),
    args: z.string(),
    disk: z.int().min(1),
    env: z.record(z.string(), z.string()),
    image: z.string(),
    ports: z.array(z.string()),
    registry: z.string().nullable(),
  })
  .openapi('Endpoint')

/** The shape of {@link EndpointBody}. */
export type EndpointBody = z.infer<typeof EndpointBody>
