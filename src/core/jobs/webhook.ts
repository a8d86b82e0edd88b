import type { DeliveryId, EndpointId, JobId } from '../ids.ts'
import type { JobStatus } from './job.ts'

/** Limits of the delivery of webhooks; times are in milliseconds. */
export const WEBHOOK = {
  /** Limit of tries of a delivery. */
  tries: 3,
  /** Time from the end of one try to the start of the next. */
  pauseMs: 10_000,
  /** Time limit of a receiver's response. */
  timeoutMs: 10_000,
  /** Longest delay of a due try, because the server was stopped or the receiver is too slow for its messages. */
  overdueMs: 7 * 24 * 60 * 60_000,
  /** Maximum size of an input in a message, in bytes. Receivers often accept only a few MB. */
  inputBytes: 1_048_576,
  /** Maximum characters of a message that is kept after its last try has failed: it can be sent again. */
  keptCharacters: 65_536,
  /** Limit of tries of a delivery, with those that a person asked for. */
  triesAgain: 20,
  /** Retention of a finished delivery. */
  retentionMs: 24 * 60 * 60_000,
} as const

/** Receiver of a delivery with a sealed URL, until it is opened. */
export const UNKNOWN_RECEIVER = -1

const RECEIVERS = 65_536

/**
 * Number of the receiver at a URL, from 0 to 65,535, from its host and port. Receivers with equal numbers share
 * their turns. The number is small so that it does not reveal the host of a sealed URL.
 */
export function receiverNumber(url: string): number {
  const { protocol, hostname, port } = URL.parse(url) ?? { protocol: '', hostname: url, port: '' }
  const name = `${hostname.replace(/\.$/, '')}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`
  // FNV-1a.
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return ((hash >>> 16) ^ hash) & (RECEIVERS - 1)
}

/**
 * The only text that accounts other than the operator's get about a receiver that has no public address and did
 * not accept a message.
 */
export const HIDDEN_PROBLEM = 'not delivered: the receiver has no public address, or did not take the message'

/** States of a delivery: PENDING until the receiver responded with 2xx or the last try failed. */
export const DELIVERY_STATES = ['PENDING', 'DELIVERED', 'FAILED'] as const
/** One of {@link DELIVERY_STATES}. */
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** One call of a receiver. */
export interface WebhookTry {
  /** From 1. */
  readonly number: number
  readonly atMs: number
  readonly tookMs: number
  /** Status of the response; null without one. */
  readonly status: number | null
  /** Reason for a missing response, as a phrase; null with one. */
  readonly error: string | null
}

/** A message to the receiver that a job named, about one end of the job. A job that was retried has several. */
export interface WebhookDelivery {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly jobId: JobId
  /** The final state of the job in the message. */
  readonly jobStatus: JobStatus
  readonly state: DeliveryState
  /** The URL that the job named; null where it is sealed with a key that is not known. */
  readonly url: string | null
  readonly createdAtMs: number
  /** Instant of the next try; null after the last. */
  readonly dueAtMs: number | null
  readonly tries: readonly WebhookTry[]
}

/**
 * Body of a message about a job: the response of `status` at its end, the input, and the called URL without a name
 * and a password.
 * @param payload a JSON object
 * @param input as it was sent; null omits it
 */
export function messageBody(payload: string, { input, url }: { input: string | null; url: string }): string {
  const members = input === null ? '' : `,"input":${input}`
  return `${payload.slice(0, -1)}${members},"webhook":${JSON.stringify(withoutPassword(url))}}`
}

/** Result of a wish to send a delivery again: it is due, or why it cannot be. */
export type SentAgain = 'due' | 'delivered' | 'not_kept' | 'tried_often'

/** Length in characters up to which the beginning of a path is shown whole, and what is shown of a longer one. */
const SHOWN_PATH = { whole: 8, cut: 4 } as const

/**
 * A URL for people: its origin and the beginning of its path. The rest may be secret and is hidden: the path of a
 * channel in a chat is its password, as are a query, a name and a password.
 */
export function shownAddress(url: string): string {
  const { protocol, host = '', pathname = '', search = '' } = URL.parse(url) ?? {}
  if (protocol === undefined) return '?'
  const path = shownPath(pathname)
  return `${protocol}//${host}${path}${search === '' || path.endsWith('…') ? '' : '?…'}`
}

function shownPath(path: string): string {
  const [first = '', ...others] = path.slice(1).split('/')
  if (first.length > SHOWN_PATH.whole) return `/${first.slice(0, SHOWN_PATH.cut)}…`
  return others.some(part => part !== '') ? `/${first}/…` : path
}

/** A URL as it was given; with a name or a password, the normalized URL without these. */
function withoutPassword(text: string): string {
  const url = URL.parse(text)
  if (url === null || (url.username === '' && url.password === '')) return text
  url.username = ''
  url.password = ''
  return url.href
}

/** True for a status that counts as delivered. Redirects are not followed. @param status null without a response */
export function hasMessage(status: number | null): boolean {
  return status !== null && status >= 200 && status < 300
}

/** State of a delivery after a try: over, or due again. */
export function afterTry(entry: WebhookTry): { state: DeliveryState; dueAtMs: number | null } {
  if (hasMessage(entry.status)) return { state: 'DELIVERED', dueAtMs: null }
  if (entry.number >= WEBHOOK.tries) return { state: 'FAILED', dueAtMs: null }
  return { state: 'PENDING', dueAtMs: entry.atMs + entry.tookMs + WEBHOOK.pauseMs }
}
