import type { DeliveryId, EndpointId, JobId } from '../ids.ts'
import type { JobStatus } from './job.ts'

/** Limits of the delivery of webhooks; times are in milliseconds. */
export const WEBHOOK = {
  /** Tries in all. */
  tries: 3,
  /** From the end of one try to the start of the next. */
  pauseMs: 10_000,
  /** How long a receiver may take to answer. */
  timeoutMs: 10_000,
  /** How long a try may be overdue, because the server was away or the receiver is too slow for all that it is sent. */
  overdueMs: 7 * 24 * 60 * 60_000,
  /** Maximum size of an input that a message has, in bytes. Receivers often take no more than a few MB. */
  inputBytes: 1_048_576,
  /** How long a delivery stays visible once it is over. */
  retentionMs: 24 * 60 * 60_000,
} as const

/** The receiver of a delivery whose URL is sealed, until it is opened. */
export const UNKNOWN_RECEIVER = -1

const RECEIVERS = 65_536

/**
 * The number of the receiver at a URL, from 0 to 65,535: host and port decide. Receivers whose numbers are equal share their turns. The number
 * is small so that it does not reveal the host of a URL that is sealed.
 */
export function receiverOf(url: string): number {
  const { protocol, hostname, port } = URL.parse(url) ?? { protocol: '', hostname: url, port: '' }
  const name = `${hostname.replace(/\.$/, '')}:${port === '' ? (protocol === 'https:' ? 443 : 80) : port}`
  // FNV-1a.
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return ((hash >>> 16) ^ hash) & (RECEIVERS - 1)
}

/** All that accounts other than the operator's learn of a receiver that has no public address and did not take a message. */
export const HIDDEN_PROBLEM = 'not delivered: the receiver has no public address, or did not take the message'

/** PENDING until the receiver has answered 2xx or the last try has failed. */
export const DELIVERY_STATES = ['PENDING', 'DELIVERED', 'FAILED'] as const
/** One of {@link DELIVERY_STATES}. */
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** One call of a receiver. */
export interface WebhookTry {
  /** From 1. */
  readonly number: number
  readonly atMs: number
  readonly tookMs: number
  /** What the receiver answered; null when it did not. */
  readonly status: number | null
  /** Why there is no answer, as a phrase; null when there is one. */
  readonly error: string | null
}

/** A message to the receiver that a job named, about one end of the job. A job that was retried has several. */
export interface WebhookDelivery {
  readonly id: DeliveryId
  readonly endpointId: EndpointId
  readonly jobId: JobId
  /** The final state that it reports. */
  readonly jobStatus: JobStatus
  readonly state: DeliveryState
  readonly createdAtMs: number
  /** When the next try is due; null when it is over. */
  readonly dueAtMs: number | null
  readonly tries: readonly WebhookTry[]
}

/**
 * The body of a message about a job: the response of `status` at its end, the input, and the called URL without a name and a password.
 * @param payload a JSON object
 * @param input as it was sent; null leaves it out
 */
export function messageOf(payload: string, { input, url }: { input: string | null; url: string }): string {
  const members = input === null ? '' : `,"input":${input}`
  return `${payload.slice(0, -1)}${members},"webhook":${JSON.stringify(withoutPassword(url))}}`
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

/** What becomes of a delivery by a try: over, or due again. */
export function afterTry(entry: WebhookTry): { state: DeliveryState; dueAtMs: number | null } {
  if (hasMessage(entry.status)) return { state: 'DELIVERED', dueAtMs: null }
  if (entry.number >= WEBHOOK.tries) return { state: 'FAILED', dueAtMs: null }
  return { state: 'PENDING', dueAtMs: entry.atMs + entry.tookMs + WEBHOOK.pauseMs }
}
