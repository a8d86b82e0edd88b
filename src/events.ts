/**
 * The one stream of events. Logs, metrics, activity lists and the simulator's checkers read it; services and loops log nothing
 * else.
 */

import type { AccessLogEntry } from './core/balancing/access-log-entry.ts'
import type { JobUsage } from './core/billing/usage.ts'
import type { EndpointId, JobId, KeyId, OwnerId, TemplateId, WorkerId } from './core/ids.ts'
import type { JobStatus, Transition } from './core/jobs/job.ts'
import type { TracedJob, TracedTry } from './core/observing/job-spans.ts'
import type { RequestTrace } from './core/observing/request-trace.ts'
import type { StopReason, WorkerState } from './core/workers/worker.ts'
import type { ColdStartPhase } from './core/workers/worker-phase.ts'

/** A change that a caller made: what an audit record needs, without the values that were set. */
export interface Change {
  readonly surface: 'rest' | 'graphql' | 'jobs'
  /** The operation of the OpenAPI document, the mutation, or the path of the job operation. */
  readonly operation: string
  readonly object: string | null
  readonly account: OwnerId
  readonly by: KeyId
  /** Address of the caller; null when it is not known. */
  readonly address: string | null
  readonly requestId: string
}

/**
 * A right that a key lacked: on management, on the jobs of an endpoint, on the metrics of the server; all rights of the operator (`operator`), or
 * these with a key that has no end (`operator:lasting`).
 */
export type RefusedRight =
  | `${'management' | 'jobs'}:${'read' | 'write'}`
  | 'metrics:read'
  | 'operator'
  | 'operator:lasting'

/** Why a key failed: one of an account, or `worker_token` for the token of a worker. */
export type KeyFailure = 'unknown' | 'disabled' | 'expired' | 'worker_token'

/** What is said of a certificate of the server. */
export interface CertificateSaid {
  readonly subject: string
  readonly names: readonly string[]
  /** As in RFC 3339. */
  readonly expiresAt: string
  /** SHA-256 of it. */
  readonly fingerprint: string
}

/** Events by name, with their fields. */
export interface Events {
  'job.accepted': { endpointId: EndpointId; jobId: JobId }
  /** A job changed its status; see TRANSITIONS. */
  'job.moved': TracedJob & {
    transition: Transition
    from: JobStatus
    to: JobStatus
    workerId: WorkerId | null
    attempt: number
    reason?: string
    /** How long it waited for this attempt; only for a claim. */
    waitedMs?: number
    /** Its counted usage; for everything but a claim. */
    usage?: JobUsage
    /** Whether it never reached its worker; only for a release. */
    undelivered?: boolean
  }
  'job.expired': {
    endpointId: EndpointId
    jobId: JobId
    from: JobStatus
    workerId: WorkerId | null
    usage: JobUsage
    /** What its trace follows from; only for one that was not done. */
    undone?: TracedJob & { attempt: number }
  }
  /** A result came too late or from the wrong worker. It has no effect. */
  'job.result_ignored': { endpointId: EndpointId; jobId: JobId; workerId: WorkerId; reason: string }
  /** The relay dropped a body because servers died of it. If it was a result, its job has failed. */
  'job.body_dropped': {
    endpointId: EndpointId
    jobId: JobId
    workerId: WorkerId
    what: 'result' | 'chunk'
    bytes: number
    /** The file that it is kept in; null when there was no space. */
    file: string | null
  }
  /** A try of a webhook has ended. */
  'webhook.tried': TracedTry & { atMs: number; tookMs: number; status: number | null }
  /** A receiver answered with a status of 200 to 299 on this attempt. */
  'webhook.delivered': { endpointId: EndpointId; jobId: JobId; tries: number }
  /** The last attempt failed, or could not be made for too long. The webhook is given up. */
  /** `shown` is what its account may know of the problem. */
  'webhook.failed': { endpointId: EndpointId; jobId: JobId; tries: number; problem: string; shown: string }
  'worker.created': { endpointId: EndpointId; workerId: WorkerId; version: number }
  'worker.moved': {
    endpointId: EndpointId
    workerId: WorkerId
    from: WorkerState
    to: WorkerState
    reason: StopReason | null
    /** Time from its placement to its first request for jobs; only for the move that this request made. */
    coldStartMs?: number
    /** How long each phase of that took, in milliseconds. */
    phases?: Readonly<Record<ColdStartPhase, number>>
  }
  /** The error of an engine about a registry, where the account of the worker may not read it. */
  'image.download_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  'worker.start_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /** Something is wrong with a worker: it reports so itself, or a rule of core/workers/worker-liveness finds it. */
  'worker.problem': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /** A worker is ejected: too many requests failed in a row, and it gets none for a while as long as others are ready. */
  'worker.avoided': { endpointId: EndpointId; workerId: WorkerId; failures: number; forMs: number }
  /** A worker that was ejected serves requests again. */
  'worker.trusted': { endpointId: EndpointId; workerId: WorkerId }
  /** The health checks of a worker that serves requests begin to fail, or succeed again. */
  'worker.health': { endpointId: EndpointId; workerId: WorkerId; healthy: boolean; problem: string | null }
  'worker.exited': { endpointId: EndpointId; workerId: WorkerId; cause: string; asked: boolean }
  /** Workers of a new release crashed and none was ready, or it fails clearly more than the last good one: those of that one go on. */
  'rollout.stopped': {
    endpointId: EndpointId
    version: number
    crashes: number
    /** The release that workers are started of. */
    working: number
    cause: string
    /** The results of both releases, where it was stopped for failures. */
    failures?: Readonly<Record<'ended' | 'failed' | 'workingEnded' | 'workingFailed', number>>
  }
  /** What the platform that places a worker says of it has changed. */
  'worker.reported': { endpointId: EndpointId; workerId: WorkerId; what: 'waits' | 'placed' | 'leaves'; text: string }
  'worker.adopted': { endpointId: EndpointId; workerId: WorkerId }
  'endpoint.saved': { endpointId: EndpointId; owner: OwnerId; version: number; created: boolean }
  'endpoint.deleted': { endpointId: EndpointId; owner: OwnerId }
  'template.saved': { templateId: TemplateId }
  'template.deleted': { templateId: TemplateId }
  'key.created': { keyId: KeyId; owner: OwnerId; by: KeyId }
  'key.changed': { keyId: KeyId; owner: OwnerId; by: KeyId }
  'key.revoked': { keyId: KeyId; owner: OwnerId; by: KeyId }
  /** Somebody signed in to the console with a key, or with a link that was made with it; and signed out again. */
  'session.opened': { account: OwnerId; keyId: KeyId; by: 'key' | 'link'; address: string }
  'session.closed': { account: OwnerId; keyId: KeyId }
  /** Keys failed, this many from one address. The address is the first 64 bits of an IPv6 address. */
  'key.failed': { address: string; reason: KeyFailure; count: number }
  /** A valid key was refused because it lacks a right; `operation` is what it asked for, where that concerns the whole server or other accounts. */
  'right.refused': { account: OwnerId; keyId: KeyId; right: RefusedRight; operation?: string }
  /** A preflight request for a page of this origin was refused. */
  'page.refused': { origin: string; endpointId: EndpointId }
  /** A caller changed something of an account; `object` is the id or the name of what was changed. */
  'change.made': Change
  'account.created': { account: OwnerId; by: KeyId }
  'account.changed': { account: OwnerId; by: KeyId }
  /** What the machine has for workers, at the first reading and whenever it changes; `gpus` in words. */
  'machine.changed': { vcpus: number; memoryGb: number; gpus: string }
  /** GPUs cannot be read, or some of them are faulty. */
  'machine.problem': { problem: string }
  /** A worker gets less than its endpoint asks for, because the machine has less. */
  'worker.clamped': { endpointId: EndpointId; problem: string }
  /** A worker makes room for one of another endpoint. */
  'worker.evicted': { endpointId: EndpointId; workerId: WorkerId; for: EndpointId; afterJob: boolean }
  /** How many workers of an endpoint could not be placed, and why; 0 once all are placed. */
  'worker.unplaced': { endpointId: EndpointId; count: number; resource: string; reason: string }
  /** Models of an endpoint are on the machine; `bytes` counts what was there already. */
  'model.downloaded': { endpointId: EndpointId; models: string; bytes: number; ms: number }
  'model.failed': { endpointId: EndpointId; models: string; problem: string }
  'model.removed': { model: string; commit: string | null }
  /** A request or an upgraded connection of a load-balancing endpoint that was admitted has ended. */
  'gateway.request_finished': AccessLogEntry & { trace?: RequestTrace }
  /** The server makes backups here from now on; what it has found of the newest one is null where there is none. */
  'backup.scheduled': { folder: string; everyMs: number; newestAtMs: number | null; bytes: number | null }
  'backup.made': { file: string; atMs: number; bytes: number; tookMs: number }
  'backup.failed': { folder: string; problem: string }
  /** The database of an older version is about to be changed; `backup` is the copy that was made before, null for none. */
  'schema.changing': { from: number; to: number; writtenBy: string; version: string; backup: string | null }
  'schema.changed': { from: number; to: number; tookMs: number }
  /** The certificate with which the server has begun to speak HTTPS. */
  'tls.loaded': CertificateSaid
  /** Another certificate is in use from now on; connections that are open go on with the one before. */
  'tls.reloaded': CertificateSaid
  /** The files of the certificate have none that can be used now; this one stays in use. */
  'tls.problem': CertificateSaid & { problem: string }
  /** The machine's clock was set: it shows another time than the server, whose time goes on as before. Once for a step. */
  'clock.stepped': { byMs: number; nowMs: number; machineMs: number }
  /** Both show the same again. */
  'clock.agrees': Record<string, never>
  /** The server has taken the time of the machine's clock. */
  'clock.adopted': { byMs: number }
  /** The store could not move the time; it goes on as before, and the next start tries again. */
  'clock.not_adopted': { byMs: number; problem: string }
  /** More than a day had passed before this start: retention removes nothing until an instant of the server's time. */
  'clock.held': { gapMs: number; untilMs: number }
  /** Whether this server leads its database, and why not; see ports/leader.ts. */
  'leader.changed': { now: 'standby' | 'active' | 'unsure' | 'deposed'; problem: string | null; epoch: number | null }
  /** The database has said that it is damaged, for the first time since the server began. */
  'store.damaged': { where: string; problem: string }
  /** The store refuses changes because its disk is full, for the first time since it took one. */
  'store.full': { problem: string }
  'loop.failed': { loop: string; problem: string }
  /** A response began; `surface` is null when the path belongs to none. */
  'request.answered': { surface: string | null; status: number; tookMs: number }
  'request.failed': {
    surface: string
    method: string
    path: string
    /** Of the response, 500 or more. */
    status: number
    problem: string
    requestId: string
  }
}

/** A name of {@link Events}. */
export type EventName = keyof Events

/** Passes an event to all readers. Never throws and never waits. */
export type Emit = <Name extends EventName>(name: Name, fields: Events[Name]) => void

/** The stream itself: passes each event to all of its readers, in the order in which they were added. */
export class EventStream {
  #readers: readonly Emit[]

  constructor(readers: readonly Emit[] = []) {
    this.#readers = readers
  }

  readonly emit: Emit = (name, fields) => {
    for (const read of this.#readers) read(name, fields)
  }

  /** Adds a reader behind the others. @returns removes it */
  add(reader: Emit): () => void {
    this.#readers = [...this.#readers, reader]
    return () => {
      this.#readers = this.#readers.filter(other => other !== reader)
    }
  }
}
