/** Receivers of alerts. */
import { type FieldProblem, fieldProblem, nameProblems } from '../field-problem.ts'
import type { OwnerId, ReceiverId } from '../ids.ts'

/** Kinds of receivers. */
export const RECEIVER_KINDS = ['webhook', 'slack', 'email'] as const

/** One of {@link RECEIVER_KINDS}. */
export type ReceiverKind = (typeof RECEIVER_KINDS)[number]

/** A receiver of the alerts of an account. Its address is stored sealed: that of a Slack channel is a password. */
export interface AlertReceiver {
  readonly id: ReceiverId
  readonly owner: OwnerId
  /** Name for people; not unique. */
  readonly name: string
  readonly kind: ReceiverKind
  /** The part of its address that people may see. */
  readonly shown: string
  readonly createdAtMs: number
  /** Time of the last message that it took; null before the first one. */
  readonly sentAtMs: number | null
  /** Reason why the last message was not taken; null without one. */
  readonly problem: string | null
}

/** Fields of a receiver that a caller sets. */
export interface ReceiverInput {
  readonly name: string
  readonly kind: ReceiverKind
  readonly address: string
}

/** Maximum receivers of an account: each alert goes to all of them. */
export const MAX_RECEIVERS = 10

const MAX_ADDRESS = 2_048

/** All problems of a receiver. */
export function receiverProblems({ name, kind, address }: ReceiverInput): FieldProblem[] {
  const problems = nameProblems(name)
  const wrong = (problem: string) => problems.push(fieldProblem('address', problem))
  if (address.length > MAX_ADDRESS) wrong(`must have at most ${MAX_ADDRESS} characters`)
  else if (kind === 'email') {
    if (!/^[^\s@,;<>"]{1,64}@[^\s@,;<>"]{1,255}$/.test(address)) wrong('must be one e-mail address')
  } else if (!/^https?:\/\//.test(address) || !URL.canParse(address)) wrong('must be an http or https address')
  return problems
}

/** The part of an address that people may see: no path, query or password of a URL. */
export function shownAddress(kind: ReceiverKind, address: string): string {
  return kind === 'email' ? address : new URL(address).origin
}
