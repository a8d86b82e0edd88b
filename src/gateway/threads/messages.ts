/** Messages between the deciding thread and the threads that read HTTP. All of one turn travel together. */
import type { ApiKey, Caller } from '../../core/accounts/permission.ts'
import type { AppTarget } from '../../core/apps/app.ts'
import type { Affinity } from '../../core/balancing/balance.ts'
import type { RequestOutcome } from '../../core/balancing/outlier-ejection.ts'
import { AppError, type ErrorCode } from '../../core/errors.ts'
import type { EndpointId, KeyId, OwnerId, WorkerId } from '../../core/ids.ts'
import type { KeyDecision } from '../../core/key-limits.ts'
import type { ServedAt } from '../../core/workers/socket-address.ts'
import type { KeyFailure } from '../../events.ts'
import type { Topic } from '../../ports/notifier.ts'
import { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import type { AdmissibleEndpoint } from '../entrance/admission.ts'
import type { SharedEndpoint } from './queue-sharing.ts'
import type { WorkerSlot } from './worker-slots.ts'

/** An endpoint as threads need it to admit requests. */
export interface AdmittedEndpoint extends AdmissibleEndpoint {
  /** The address of its job operations. */
  readonly queueAddress: string
}

/** The questions to the deciding thread by their names: what they have, and the answer. */
export interface Questions {
  authenticate: { readonly asked: { readonly key: string }; readonly answer: Caller }
  key: { readonly asked: { readonly id: KeyId }; readonly answer: ApiKey | null }
  endpoint: { readonly asked: { readonly id: EndpointId }; readonly answer: AdmittedEndpoint | null }
  /** The endpoint at a place of an app. */
  target: { readonly asked: { readonly owner: OwnerId; readonly place: AppTarget }; readonly answer: EndpointId }
  /** Counts a request of a key that has limits. */
  limit: { readonly asked: { readonly caller: Caller }; readonly answer: KeyDecision }
  /** Counts failed keys of an address. The answer is the error for the client. */
  failed: {
    readonly asked: { readonly address: string; readonly error: PackedError; readonly count: number }
    readonly answer: PackedError
  }
}

/** A question with its name and its number. */
export type Question = {
  [Name in keyof Questions]: { readonly name: Name; readonly asked: Questions[Name]['asked'] }
}[keyof Questions]

/** A reservation that the deciding thread made. */
export interface SentReservation {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  readonly servedAt: ServedAt
  readonly waitedMs: number
  /** The slot that counts it; null if the deciding thread alone counts it. */
  readonly slot: WorkerSlot | null
}

/** A message to the deciding thread. Numbers are those of the thread that sends it. */
export type ThreadMessage =
  | {
      readonly kind: 'reserve'
      readonly id: number
      readonly endpointId: EndpointId
      readonly affinity: Affinity | null
      readonly avoid: readonly WorkerId[]
      readonly maxWaitMs: number | undefined
      readonly waitedMs: number | undefined
      readonly isAnonymous: boolean
    }
  /** The client of a request that waits is gone. */
  | { readonly kind: 'leave'; readonly id: number }
  /** A reservation without a slot is over. */
  | { readonly kind: 'release'; readonly id: number; readonly outcome: RequestOutcome }
  /** A reservation with a slot is over, and is counted no longer. */
  | {
      readonly kind: 'released'
      readonly endpointId: EndpointId
      readonly workerId: WorkerId
      readonly slot: WorkerSlot
      readonly outcome: RequestOutcome
    }
  | ({ readonly kind: 'ask'; readonly id: number } & Question)
  | { readonly kind: 'publish' | 'subscribe' | 'unsubscribe'; readonly topic: Topic }
  /** Names and fields of events as JSON, which takes a third of the time of a copy of the objects. */
  | { readonly kind: 'events'; readonly text: string }
  /** The answer to `settle`, after everything before. */
  | { readonly kind: 'settled' }
  /** The requests and sockets of an endpoint that pass through the thread now. */
  | { readonly kind: 'passing'; readonly id: EndpointId; readonly requests: number; readonly sockets: number }

/** The facts of a term that threads need from its begin. */
export interface ThreadTerm {
  /** Memory of {@link WorkerSlots}. */
  readonly slots: SharedArrayBuffer
  /** Memory of {@link WaitingWords}. */
  readonly waiting: SharedArrayBuffer
  /** One word, which grows with each change of a key or an endpoint. */
  readonly changes: SharedArrayBuffer
  /** Wall-clock time of the server at a time of the monotonic clock, which all threads have in common. */
  readonly nowMs: number
  readonly atMs: number
}

/** A message to a thread. */
export type DecidingMessage =
  | { readonly kind: 'begin'; readonly term: ThreadTerm }
  | { readonly kind: 'stopping' | 'end' | 'settle' }
  | { readonly kind: 'endpoint'; readonly id: EndpointId; readonly shared: SharedEndpoint | null }
  | { readonly kind: 'domains'; readonly domains: readonly (readonly [name: string, id: EndpointId])[] }
  | { readonly kind: 'topic'; readonly topic: Topic }
  | { readonly kind: 'reserved'; readonly id: number; readonly reservation: SentReservation }
  | { readonly kind: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'refused'; readonly id: number; readonly error: PackedError }

/** Messages in their order. Those of an earlier term are dropped. */
export interface MessagesOfTerm<Message> {
  readonly term: number
  readonly messages: readonly Message[]
}

/** The way of batches to one thread. */
export interface ThreadChannel {
  /** A thread finds it at its next request at the latest. */
  send(batch: MessagesOfTerm<DecidingMessage>): void
  /** Called with each batch of the thread, from now on. */
  receive(handle: (batch: MessagesOfTerm<ThreadMessage>) => void): void
}

/** An error in a message. */
export interface PackedError {
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds: number | undefined
  /** That of an invalid key; undefined for other errors. */
  readonly reason: KeyFailure | undefined
  /** The cause, for the log; undefined without one. */
  readonly problem: string | undefined
}

/** An error for {@link unpackError}. */
export function packError(error: AppError): PackedError {
  const { code, message, retryAfterSeconds, cause } = error
  const reason = error instanceof InvalidKeyError ? error.reason : undefined
  const problem = cause instanceof Error ? (cause.stack ?? cause.message) : undefined
  return { code, message, retryAfterSeconds, reason, problem }
}

/** The error that was packed. */
export function unpackError({ code, message, retryAfterSeconds, reason, problem }: PackedError): AppError {
  if (reason !== undefined) return new InvalidKeyError(reason, message)
  return new AppError(code, message, {
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    ...(problem !== undefined && { cause: problem }),
  })
}
