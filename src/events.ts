/**
 * Everything that happens and that somebody may want to know. Logs, metrics, activity lists and the simulator's
 * checkers read this one stream; nothing else is logged by services and loops.
 */

import type { AccessLogEntry } from './core/balancing/access-log-entry.ts'
import type { JobUsage } from './core/billing/usage.ts'
import type { EndpointId, JobId, KeyId, OwnerId, TemplateId, WorkerId } from './core/ids.ts'
import type { JobStatus, Transition } from './core/jobs/job.ts'
import type { StopReason, WorkerState } from './core/workers/worker.ts'
import type { ColdStartPhase } from './core/workers/worker-phase.ts'

/** A change that a caller made: all that a record of who changed what needs, and no value that was set. */
export interface Change {
  readonly surface: 'rest' | 'graphql' | 'jobs'
  /** The operation of the OpenAPI document, the mutation, or the path of the job operation. */
  readonly operation: string
  readonly object: string | null
  readonly account: OwnerId
  readonly by: KeyId
  /** Where the caller is; null where that is not known. */
  readonly address: string | null
}

/** A right that a key lacked: over management, or over the jobs of an endpoint. */
export type RefusedRight = `${'management' | 'jobs'}:${'read' | 'write'}`

/** Why a key failed: one of an account, or `worker_token` for the token of a worker. */
export type KeyFailure = 'unknown' | 'disabled' | 'expired' | 'worker_token'

/** Events by name, with their fields. */
export interface Events {
  'job.accepted': { endpointId: EndpointId; jobId: JobId }
  /** A job moved as the table of transitions says. */
  'job.moved': {
    endpointId: EndpointId
    jobId: JobId
    transition: Transition
    from: JobStatus
    to: JobStatus
    workerId: WorkerId | null
    attempt: number
    reason?: string
    /** How long it waited for this attempt; of a claim. */
    waitedMs?: number
    /** What was counted of it; of everything but a claim. */
    usage?: JobUsage
  }
  'job.expired': { endpointId: EndpointId; jobId: JobId; from: JobStatus; workerId: WorkerId | null; usage: JobUsage }
  /** A result that came too late or from the wrong worker; kept as a diagnostic, without effect. */
  'job.result_ignored': { endpointId: EndpointId; jobId: JobId; workerId: WorkerId; reason: string }
  /** A body of which servers have died, so that the relay did not pass it on; a result has failed its job. */
  'job.body_dropped': {
    endpointId: EndpointId
    jobId: JobId
    workerId: WorkerId
    what: 'result' | 'chunk'
    bytes: number
    /** Where it is kept; null where there was no room. */
    file: string | null
  }
  /** A receiver answered 200, at this try. */
  'webhook.delivered': { endpointId: EndpointId; jobId: JobId; tries: number }
  /** The last try failed, or was not made for too long; nobody is told any more. */
  'webhook.failed': { endpointId: EndpointId; jobId: JobId; tries: number; problem: string }
  'worker.created': { endpointId: EndpointId; workerId: WorkerId; version: number }
  'worker.moved': {
    endpointId: EndpointId
    workerId: WorkerId
    from: WorkerState
    to: WorkerState
    reason: StopReason | null
    /** From its place on the machine to its first request for jobs; where that is what moved it. */
    coldStartMs?: number
    /** How long each phase of that took, in milliseconds. */
    phases?: Readonly<Record<ColdStartPhase, number>>
  }
  'worker.start_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /** Something is wrong with a worker: it says so itself, or a rule of core/worker-watch does. */
  'worker.problem': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /** So many requests to it failed in a row, so that it gets none for a while, as long as others are ready. */
  'worker.avoided': { endpointId: EndpointId; workerId: WorkerId; failures: number; forMs: number }
  /** It was avoided, and has answered again. */
  'worker.trusted': { endpointId: EndpointId; workerId: WorkerId }
  /** A worker that serves requests goes out of rotation, and why; or it comes back. */
  'worker.health': { endpointId: EndpointId; workerId: WorkerId; healthy: boolean; problem: string | null }
  'worker.exited': { endpointId: EndpointId; workerId: WorkerId; cause: string; asked: boolean }
  'worker.adopted': { endpointId: EndpointId; workerId: WorkerId }
  'endpoint.saved': { endpointId: EndpointId; version: number; created: boolean }
  'endpoint.deleted': { endpointId: EndpointId }
  'template.saved': { templateId: TemplateId }
  'template.deleted': { templateId: TemplateId }
  'key.created': { keyId: KeyId; owner: OwnerId; by: KeyId }
  'key.changed': { keyId: KeyId; owner: OwnerId; by: KeyId }
  'key.revoked': { keyId: KeyId; owner: OwnerId; by: KeyId }
  /** So many keys of a request failed; the address is the first 64 bits of an IPv6 one. */
  'key.failed': { address: string; reason: KeyFailure; count: number }
  /** A valid key was refused for want of a right. */
  'right.refused': { account: OwnerId; keyId: KeyId; right: RefusedRight }
  /** A caller changed something of an account, with this operation; `object` is the id, or the name, of what was changed. */
  'change.made': Change
  'account.created': { account: OwnerId; by: KeyId }
  'account.changed': { account: OwnerId; by: KeyId }
  /** What the machine has for workers, at the first look and whenever it is other than before; `gpus` in words. */
  'machine.changed': { vcpus: number; memoryGb: number; gpus: string }
  /** GPUs cannot be read, or something is wrong with some. */
  'machine.problem': { problem: string }
  /** A worker gets less than its endpoint asks for, since the machine has not so much. */
  'worker.clamped': { endpointId: EndpointId; problem: string }
  /** A worker makes room for one of another endpoint. */
  'worker.evicted': { endpointId: EndpointId; workerId: WorkerId; for: EndpointId; afterJob: boolean }
  /** So many workers of an endpoint have no place, and why; 0 once all have one. */
  'worker.unplaced': { endpointId: EndpointId; count: number; resource: string; reason: string }
  /** A request or a socket of a load-balancing endpoint that was let in is over. */
  'gateway.request_finished': AccessLogEntry
  /** Whether this server leads its database, and why not; see ports/leader. */
  'leader.changed': { now: 'active' | 'unsure' | 'deposed'; problem: string | null }
  'loop.failed': { loop: string; problem: string }
  /** An answer began; `surface` is null where none is at the path. */
  'request.answered': { surface: string | null; status: number; tookMs: number }
  'request.failed': { surface: string; method: string; path: string; problem: string }
}

/** A name of {@link Events}. */
export type EventName = keyof Events

/** Tells all readers that something happened. Never throws and never waits. */
export type Emit = <Name extends EventName>(name: Name, fields: Events[Name]) => void
