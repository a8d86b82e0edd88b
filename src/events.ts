/**
 * The one stream of events. Logs, metrics, activity lists and the simulator's checkers read it; services and loops
 * log nothing else.
 */

import type { ReceiverKind } from './core/alerts/alert-receiver.ts'
import type { AccessLogEntry } from './core/balancing/access-log-entry.ts'
import type { JobUsage } from './core/billing/usage.ts'
import type { AppId, BuildId, EndpointId, JobId, KeyId, OwnerId, ReceiverId, TemplateId, WorkerId } from './core/ids.ts'
import type { JobStatus, Transition } from './core/jobs/job.ts'
import type { TracedJob, TracedTry } from './core/observing/job-spans.ts'
import type { RequestTrace } from './core/observing/request-trace.ts'
import type { TokenUsage } from './core/openai/token-usage.ts'
import type { EndReason } from './core/placement/leaving.ts'
import type { StopReason, WorkerState } from './core/workers/worker.ts'
import type { ColdStartPhase } from './core/workers/worker-phase.ts'

/** A change that a caller made: the facts of an audit record, without the new values. */
export interface Change {
  readonly surface: 'rest' | 'graphql' | 'jobs'
  /** The operation of the OpenAPI document, the mutation, or the path of the job operation. */
  readonly operation: string
  readonly object: string | null
  readonly account: OwnerId
  readonly by: KeyId
  /** Address of the caller; null if unknown. */
  readonly address: string | null
  readonly requestId: string
}

/**
 * A right that a key lacked: on management, on the jobs of an endpoint, on the metrics of the server; all rights
 * of the operator (`operator`), or these with a key that never expires (`operator:lasting`).
 */
export type RefusedRight =
  | `${'management' | 'jobs' | 'files'}:${'read' | 'write'}`
  | 'metrics:read'
  | 'operator'
  | 'operator:lasting'

/**
 * Reason for the failure of a key: one of an account, `signature` for a wrong one over S3, or `worker_token` for the
 * token of a worker.
 */
export type KeyFailure = 'unknown' | 'disabled' | 'expired' | 'signature' | 'worker_token'

/** Facts of a certificate of the server. */
export interface CertificateSummary {
  readonly subject: string
  readonly names: readonly string[]
  /** An instant of RFC 3339. */
  readonly expiresAt: string
  /** Its SHA-256. */
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
    /** Wait for this attempt; only for a claim of a job that begins with it. */
    waitedMs?: number
    /** Its counted usage; for everything but a claim. */
    usage?: JobUsage
    /** True if it never reached its worker; only for a release. */
    undelivered?: boolean
    /** True if its worker had not begun it; only for a claim and a release. */
    unbegun?: boolean
  }
  /** A worker has begun a job that it got behind others. */
  'job.begun': TracedJob & {
    workerId: WorkerId
    attempt: number
    /** Wait for this attempt. */
    waitedMs: number
  }
  'job.expired': {
    endpointId: EndpointId
    jobId: JobId
    from: JobStatus
    workerId: WorkerId | null
    usage: JobUsage
    /** The fields from which its trace is derived; only for a job that was not done. */
    undone?: TracedJob & { attempt: number }
  }
  /** A result came too late or from the wrong worker. It has no effect. */
  'job.result_ignored': { endpointId: EndpointId; jobId: JobId; workerId: WorkerId; reason: string }
  /** The relay dropped a body that killed servers. If it was a result, its job has failed. */
  'job.body_dropped': {
    endpointId: EndpointId
    jobId: JobId
    workerId: WorkerId
    what: 'result' | 'chunk'
    bytes: number
    /** The file with the body; null if the disk had no room. */
    file: string | null
  }
  /** A try of a webhook has ended. */
  'webhook.tried': TracedTry & { atMs: number; tookMs: number; status: number | null }
  /** A receiver answered with a status of 200 to 299 on this attempt. */
  'webhook.delivered': { endpointId: EndpointId; jobId: JobId; tries: number }
  /**
   * The last try failed, or could not be made for too long, so the webhook is not tried again. `shown` is the part
   * of the problem that its account may know.
   */
  'webhook.failed': { endpointId: EndpointId; jobId: JobId; tries: number; problem: string; shown: string }
  /** An endpoint has needed attention for a while: its account's receivers get a message. */
  'alert.raised': { owner: OwnerId; endpointId: EndpointId; cause: string; text: string }
  /** An endpoint of such a message has been well for a while. */
  'alert.over': { owner: OwnerId; endpointId: EndpointId; cause: string }
  /** A receiver was called; `problem` is null when it took the message. */
  'alert.sent': { owner: OwnerId; receiverId: ReceiverId; kind: ReceiverKind; problem: string | null }
  'worker.created': { endpointId: EndpointId; workerId: WorkerId; version: number }
  'worker.moved': {
    endpointId: EndpointId
    workerId: WorkerId
    from: WorkerState
    to: WorkerState
    reason: StopReason | null
    /** Time from its placement to its first request for jobs; only for the move by this request. */
    coldStartMs?: number
    /** Duration of each phase of that time, in milliseconds. */
    phases?: Readonly<Record<ColdStartPhase, number>>
  }
  /** The error of an engine about a registry, if the account of the worker may not read it. */
  'image.download_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  'worker.start_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /** A worker has a problem: it reports one itself, or a rule of core/workers/worker-liveness finds it. */
  'worker.problem': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /**
   * A worker is ejected: too many requests failed in a row, and it gets no requests for a while if others are
   * ready.
   */
  'worker.avoided': { endpointId: EndpointId; workerId: WorkerId; failures: number; forMs: number }
  /** A worker that was ejected serves requests again. */
  'worker.trusted': { endpointId: EndpointId; workerId: WorkerId }
  /** The health checks of a worker that serves requests begin to fail, or succeed again. */
  'worker.health': { endpointId: EndpointId; workerId: WorkerId; healthy: boolean; problem: string | null }
  /**
   * The driver of its card suspended a worker: its card is free. `unheld` is the reason why its threads were not held
   * in the meantime; null when they were.
   */
  'worker.suspended': {
    endpointId: EndpointId
    workerId: WorkerId
    bytes: number
    tookMs: number
    unheld: string | null
  }
  /** A worker could not be suspended, and is frozen with its memory on its card. */
  'worker.suspend_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  /** A suspended worker has its memory on its card again. */
  'worker.resumed': { endpointId: EndpointId; workerId: WorkerId; restoreMs: number }
  /** A worker of an endpoint with `gpu.memoryGb: auto` has the learned share of its GPU from now on, in MiB. */
  'worker.share_learned': {
    endpointId: EndpointId
    workerId: WorkerId
    gpu: number
    shareMb: number
    usedMb: number
  }
  /** A worker uses more memory of its GPU than its share, in MiB. */
  'worker.over_share': { endpointId: EndpointId; workerId: WorkerId; gpu: number; shareMb: number; usedMb: number }
  /** A worker is paused in the middle of its jobs, so that an endpoint of higher priority gets its room. */
  'worker.paused': { endpointId: EndpointId; workerId: WorkerId; for: EndpointId }
  /** A paused worker goes on with its jobs. */
  'worker.pause_ended': { endpointId: EndpointId; workerId: WorkerId; pausedMs: number; jobs: number }
  /** A worker could not be paused, and works on. */
  'worker.pause_failed': { endpointId: EndpointId; workerId: WorkerId; problem: string }
  'worker.exited': { endpointId: EndpointId; workerId: WorkerId; cause: string; asked: boolean }
  /**
   * Workers of a new release crashed and none was ready, or it fails clearly more than the last good one, whose
   * workers continue.
   */
  'rollout.stopped': {
    endpointId: EndpointId
    version: number
    crashes: number
    /** The release whose workers are started. */
    working: number
    cause: string
    /** The results of both releases, if it was stopped for failures. */
    failures?: Readonly<Record<'ended' | 'failed' | 'workingEnded' | 'workingFailed', number>>
  }
  /** The report of the platform about a worker has changed. */
  'worker.reported': { endpointId: EndpointId; workerId: WorkerId; what: 'waits' | 'placed' | 'leaves'; text: string }
  'worker.adopted': { endpointId: EndpointId; workerId: WorkerId }
  'endpoint.saved': { endpointId: EndpointId; owner: OwnerId; version: number; created: boolean }
  'endpoint.deleted': { endpointId: EndpointId; owner: OwnerId }
  'build.made': { buildId: BuildId; appId: AppId; owner: OwnerId; bytes: number; unpackedBytes: number }
  'template.saved': { templateId: TemplateId }
  'template.deleted': { templateId: TemplateId }
  'key.created': { keyId: KeyId; owner: OwnerId; by: KeyId }
  'key.changed': { keyId: KeyId; owner: OwnerId; by: KeyId }
  'key.revoked': { keyId: KeyId; owner: OwnerId; by: KeyId }
  /** A person signed in to the console with a key, or with a link that was made with it; and signed out again. */
  'session.opened': { account: OwnerId; keyId: KeyId; by: 'key' | 'link'; address: string }
  'session.closed': { account: OwnerId; keyId: KeyId }
  /** Keys failed, `count` times from one address. The address is the first 64 bits of an IPv6 address. */
  'key.failed': { address: string; reason: KeyFailure; count: number }
  /**
   * A valid key was refused because it lacks a right; `operation` is the request, if it concerns the whole server
   * or other accounts.
   */
  'right.refused': { account: OwnerId; keyId: KeyId; right: RefusedRight; operation?: string }
  /** A preflight request for a page of this origin was refused. */
  'page.refused': { origin: string; endpointId: EndpointId | null }
  /** A caller changed an object of an account; `object` is its id or name. */
  'change.made': Change
  'account.created': { account: OwnerId; by: KeyId }
  'account.changed': { account: OwnerId; by: KeyId }
  /** Resources of the machine for workers, at the first reading and at each change; `gpus` in words. */
  'machine.changed': { vcpus: number; memoryGb: number; gpus: string }
  /** GPUs cannot be read, or some of them are faulty. */
  'machine.problem': { problem: string }
  /** A worker gets less than its endpoint asks for, because the machine has less. */
  'worker.clamped': { endpointId: EndpointId; problem: string }
  /** A worker makes room for one of another endpoint. */
  /** `notSuspended` is the reason why it ends, although it could be suspended; null for others. */
  'worker.evicted': {
    endpointId: EndpointId
    workerId: WorkerId
    for: EndpointId
    afterJob: boolean
    notSuspended: EndReason | null
  }
  /** Number of workers of an endpoint that could not be placed, with the reason; 0 once all are placed. */
  'worker.unplaced': { endpointId: EndpointId; count: number; resource: string; reason: string }
  /** Models of an endpoint are on the machine; `bytes` includes existing files. */
  'model.downloaded': { endpointId: EndpointId; models: string; bytes: number; ms: number }
  'model.failed': { endpointId: EndpointId; models: string; problem: string }
  'model.removed': { model: string; commit: string | null }
  /** An admitted request or upgraded connection of a load-balancing endpoint has ended. */
  'gateway.request_finished': AccessLogEntry & { trace?: RequestTrace }
  /**
   * A request of OpenAI's form was answered. `usage` is null if its answer reported no tokens, or was cut before it
   * did; `keyId` is null for a request without a key.
   */
  'tokens.used': { owner: OwnerId; endpointId: EndpointId; keyId: KeyId | null; usage: TokenUsage | null }
  /** The server makes backups here from now on; the facts of the newest one are null if none exists. */
  'backup.scheduled': { folder: string; everyMs: number; newestAtMs: number | null; bytes: number | null }
  'backup.made': { file: string; atMs: number; bytes: number; tookMs: number }
  'backup.failed': { folder: string; problem: string }
  /**
   * The database of an older version is about to be changed; `backup` is the copy that was made before, null
   * without one.
   */
  'schema.changing': { from: number; to: number; writtenBy: string; version: string; backup: string | null }
  'schema.changed': { from: number; to: number; tookMs: number }
  /** The server began to use HTTPS with this certificate. */
  'tls.loaded': CertificateSummary
  /** Another certificate is in use from now on; open connections continue with the previous one. */
  'tls.reloaded': CertificateSummary
  /** The files contain no usable certificate; this one stays in use. */
  'tls.problem': CertificateSummary & { problem: string }
  /**
   * The machine's clock was set: it shows another time than the server, whose time continues as before. Once for a
   * step.
   */
  'clock.stepped': { byMs: number; nowMs: number; machineMs: number }
  /** Both clocks show the same time again. */
  'clock.agrees': Record<string, never>
  /** The server has adopted the time of the machine's clock. */
  'clock.adopted': { byMs: number }
  /** The store could not move the time; it continues as before, and the next start tries again. */
  'clock.not_adopted': { byMs: number; problem: string }
  /** More than a day passed before this start: retention deletes nothing until an instant of the server's time. */
  'clock.held': { gapMs: number; untilMs: number }
  /** The server began or ceased to lead its database, with the problem; see ports/leader.ts. */
  'leader.changed': { now: 'standby' | 'active' | 'unsure' | 'deposed'; problem: string | null; epoch: number | null }
  /** The database reported damage for the first time since the server began. */
  'store.damaged': { where: string; problem: string }
  /** The store refuses changes because its disk is full, for the first time since it last accepted one. */
  'store.full': { problem: string }
  'loop.failed': { loop: string; problem: string }
  /** A response began; `surface` is null if the path belongs to no surface. */
  'request.answered': { surface: string | null; status: number; tookMs: number }
  'request.failed': {
    surface: string
    method: string
    path: string
    /** Status of the response, 500 or more. */
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

  /** Adds a reader behind the others. @returns a function that removes it */
  add(reader: Emit): () => void {
    this.#readers = [...this.#readers, reader]
    return () => {
      this.#readers = this.#readers.filter(other => other !== reader)
    }
  }
}
