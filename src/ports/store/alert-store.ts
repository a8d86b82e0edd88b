import type { Alert } from '../../core/alerts/alert.ts'
import type { AlertMessage } from '../../core/alerts/alert-message.ts'
import type { AlertReceiver } from '../../core/alerts/alert-receiver.ts'
import type { OwnerId, ReceiverId } from '../../core/ids.ts'

/** Alerts, their receivers with sealed addresses, and the messages that were not taken. */
export interface AlertStore {
  insertReceiver(receiver: AlertReceiver, sealed: string): Promise<void>
  /** Those of an owner, oldest first, at most 1,000. */
  receivers(owner: OwnerId): Promise<AlertReceiver[]>
  findReceiver(owner: OwnerId, id: ReceiverId): Promise<AlertReceiver | null>
  /** Removes a receiver with its messages, and with the last one the alerts of its owner. False for an unknown one. */
  removeReceiver(owner: OwnerId, id: ReceiverId): Promise<boolean>
  /** Owners of receivers after an owner, in their order. */
  owners(after: string, limit: number): Promise<OwnerId[]>
  /** The alerts of an owner, by endpoint, at most 1,000. */
  open(owner: OwnerId): Promise<Alert[]>
  /** Replaces the alerts of an owner and adds messages; those whose receiver is gone are left out. */
  save(owner: OwnerId, alerts: readonly Alert[], messages: readonly AlertMessage[]): Promise<void>
  /** Adds messages; those whose receiver is gone are left out. */
  addMessages(messages: readonly AlertMessage[]): Promise<void>
  /** Due messages, the first one of each receiver, the first ones first, with the receiver and its sealed address. */
  due(nowMs: number, limit: number): Promise<DueMessage[]>
  /** Time of the next message; null without one. */
  nextDue(): Promise<number | null>
  /** Number of messages of a receiver that wait. */
  waiting(id: ReceiverId): Promise<number>
  /** Removes a message, and notes its outcome with the receiver: the time it was taken at, or the problem. */
  settle(message: AlertMessage, nowMs: number, problem: string | null): Promise<void>
  /** Puts off a message after a failed attempt, and notes the problem with the receiver. */
  putOff(message: AlertMessage, dueAtMs: number, problem: string): Promise<void>
}

/** A message with what its delivery needs. */
export interface DueMessage {
  readonly message: AlertMessage
  readonly receiver: AlertReceiver
  readonly sealed: string
}
