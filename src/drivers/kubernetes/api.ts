/** The calls that the driver makes of the API of Kubernetes, and the parts of its objects that it reads. */
import type { ByteSource } from '../base/byte-source.ts'

/** One call of the API. */
export interface KubernetesCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** As `/api/v1/namespaces/default/pods`. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  /** An object, sent as JSON; the body of a `PATCH` is a merge patch. */
  readonly body?: unknown
  /** Asks for the metadata alone, without their content, of one object or of a list. */
  readonly metadataOnly?: 'one' | 'list'
  readonly signal?: AbortSignal
}

/** A response that goes on. */
export type ByteStream = ByteSource & { destroy(): void }

/** The API of one cluster. A call ends within seconds; one that changes something within {@link CHANGE_MS}. */
export interface KubernetesApi {
  /** @throws KubernetesError */
  call<Result>(call: KubernetesCall): Promise<Result>
  /** Calls for a response that goes on until the signal. Resolves with its head. @throws KubernetesError */
  stream(call: KubernetesCall): Promise<ByteStream>
}

/** Deadline of calls that change something: within it a server notices that it is no longer the active one. */
export const CHANGE_MS = 4_000

/** A call of the API that failed. */
export class KubernetesError extends Error {
  /** The HTTP status of the response; null when none came. */
  readonly status: number | null
  /** The API's word for it, as `AlreadyExists`; empty for none. */
  readonly reason: string
  /** The wait that the API asks for; 0 where it asks for none. */
  readonly retryAfterMs: number

  constructor(message: string, status: number | null, extras: { reason?: string; retryAfterMs?: number } = {}) {
    super(message)
    this.name = 'KubernetesError'
    this.status = status
    this.reason = extras.reason ?? ''
    this.retryAfterMs = extras.retryAfterMs ?? 0
  }

  /** True where the same call may succeed soon: nobody answered, or the API is overloaded or not ready. */
  get isPassing(): boolean {
    const { status } = this
    return status === null || status === 408 || status === 429 || status >= 500
  }
}

/** Whatever a call has thrown, as an error of the API. */
export function kubernetesError(thrown: unknown): KubernetesError {
  if (thrown instanceof KubernetesError) return thrown
  const { code = '', message = String(thrown) } = (thrown ?? {}) as { code?: string; message?: string }
  return new KubernetesError(PROBLEMS[code] ?? message, null)
}

/** Words for the codes of sockets and of TLS. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens at its address',
  ECONNRESET: 'the connection was reset',
  ENOTFOUND: 'its host name does not resolve',
  EAI_AGAIN: 'its host name cannot be looked up now',
  EHOSTUNREACH: 'its host cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
  ETIMEDOUT: 'its host does not answer',
  EPIPE: 'the connection was cut off',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is not signed by the authority of the configuration',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is not signed by the authority of the configuration',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate is not signed by the authority of the configuration',
  CERT_HAS_EXPIRED: 'its certificate has expired',
}

/** Fields of all objects. */
export interface ObjectMeta {
  readonly name: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/** An object of which the metadata matter. */
export interface KubernetesObject {
  readonly metadata: ObjectMeta
}

/** A page of a list. */
export interface ObjectList<Item> {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items?: readonly Item[]
}

/** State of a container of a pod. */
export interface ContainerStatus {
  readonly name?: string
  readonly imageID?: string
  readonly state?: ContainerState
}

/** One of the three. */
export interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string }
  readonly running?: { readonly startedAt?: string }
  readonly terminated?: {
    readonly exitCode?: number
    readonly signal?: number
    readonly reason?: string
    readonly message?: string
    readonly startedAt?: string
  }
}

/** A condition of a pod. */
export interface PodCondition {
  readonly type?: string
  readonly status?: string
  readonly reason?: string
  readonly message?: string
}

/** A pod. */
export interface PodObject extends KubernetesObject {
  readonly spec?: {
    readonly nodeName?: string
    readonly containers?: readonly {
      readonly name?: string
      readonly resources?: { readonly limits?: Readonly<Record<string, string>> }
    }[]
  }
  readonly status?: {
    readonly phase?: string
    readonly reason?: string
    readonly message?: string
    readonly podIP?: string
    readonly conditions?: readonly PodCondition[]
    readonly containerStatuses?: readonly ContainerStatus[]
  }
}

/** Something that happened to an object, as its cluster reports it. */
export interface EventObject extends KubernetesObject {
  readonly reason?: string
  readonly message?: string
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
}
