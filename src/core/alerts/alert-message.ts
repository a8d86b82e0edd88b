/** Messages about alerts, as receivers get them. */
import type { OwnerId, ReceiverId } from '../ids.ts'
import type { Alert } from './alert.ts'
import type { ReceiverKind } from './alert-receiver.ts'

/** The reason for a message. */
export type MessageReason = 'raised' | 'over' | 'test'

/** An endpoint that a message is about. */
export interface NamedAlert {
  readonly id: string
  readonly name: string
  readonly cause: string
  /** A clause. */
  readonly text: string
  /** Epoch milliseconds. */
  readonly sinceMs: number
}

/** The content of a message; the store keeps it until it was taken. */
export interface AlertContent {
  readonly reason: MessageReason
  /** Those that one look found together, at most {@link MAX_NAMED}; none in a test. */
  readonly endpoints: readonly NamedAlert[]
  /** Their number, with those that are not named. */
  readonly total: number
  readonly atMs: number
  /** Page of the console; null when the server has no address. */
  readonly url: string | null
}

/** A message for one receiver. */
export interface AlertMessage {
  /** The same in each attempt. */
  readonly id: string
  readonly owner: OwnerId
  readonly receiverId: ReceiverId
  readonly content: AlertContent
  /** Attempts so far. */
  readonly attempts: number
  readonly dueAtMs: number
}

/** Maximum endpoints that a message names: an engine that is away is one message, and not hundreds. */
export const MAX_NAMED = 20

/** Pauses after failed attempts, in milliseconds; after the last one the message is dropped. */
const PAUSES_MS = [10_000, 60_000, 300_000, 1_800_000, 7_200_000, 21_600_000]

/** Time of the next attempt; null after the last one. @param attempts failed ones, the present one among them */
export function nextAttemptMs(attempts: number, nowMs: number): number | null {
  const pauseMs = PAUSES_MS[attempts - 1]
  return pauseMs === undefined ? null : nowMs + pauseMs
}

/** A message in the form of its kind. */
export type WrittenMessage =
  | { readonly form: 'json'; readonly body: string }
  | { readonly form: 'mail'; readonly subject: string; readonly text: string }

/** The content about alerts that one look found. */
export function alertContent(
  reason: Exclude<MessageReason, 'test'>,
  alerts: readonly Alert[],
  atMs: number,
  url: string | null,
): AlertContent {
  const endpoints = alerts.slice(0, MAX_NAMED).map(({ endpointId, name, cause, text, firstSeenAtMs }) => ({
    id: endpointId,
    name,
    cause,
    text,
    sinceMs: firstSeenAtMs,
  }))
  return { reason, endpoints, total: alerts.length, atMs, url }
}

/** The content of a test. */
export function testContent(atMs: number, url: string | null): AlertContent {
  return { reason: 'test', endpoints: [], total: 0, atMs, url }
}

/** Writes a message. @param id the same in each attempt, so that a receiver can drop a second copy */
export function writeMessage(kind: ReceiverKind, id: string, content: AlertContent): WrittenMessage {
  if (kind === 'webhook') return { form: 'json', body: JSON.stringify(webhookBody(id, content)) }
  const { url } = content
  const title = messageTitle(content)
  const lines = messageLines(content)
  if (kind === 'slack') {
    const text = [
      `*${slackText(title)}*`,
      ...lines.map(slackText),
      ...(url === null ? [] : [`<${url}|Open the console>`]),
    ]
    return { form: 'json', body: JSON.stringify({ text: text.join('\n') }) }
  }
  const text = [...lines, '', ...(url === null ? [] : [url])].join('\n')
  return { form: 'mail', subject: title.replace(/[\r\n\t]/g, ' '), text: `${text}\n` }
}

function webhookBody(id: string, { reason, endpoints, total, atMs, url }: AlertContent) {
  return {
    id,
    type: `alert.${reason}`,
    at: new Date(atMs).toISOString(),
    endpoints: endpoints.map(({ sinceMs, ...endpoint }) => ({ ...endpoint, since: new Date(sinceMs).toISOString() })),
    total,
    url,
  }
}

function messageTitle({ reason, endpoints: [first], total }: AlertContent): string {
  if (reason === 'test' || first === undefined) return 'Runyard: a test'
  const subject = total === 1 ? first.name : `${total} endpoints`
  if (reason === 'raised') return `Runyard: ${subject} ${total === 1 ? 'needs' : 'need'} attention`
  return `Runyard: ${subject} ${total === 1 ? 'is' : 'are'} well again`
}

function messageLines({ reason, endpoints, total, atMs }: AlertContent): string[] {
  if (reason === 'test') return ['Alerts arrive here.']
  const end = reason === 'over' ? ` to ${new Date(atMs).toISOString()}` : ''
  const lines = endpoints.map(
    ({ name, text, sinceMs }) => `${name}: ${text} (since ${new Date(sinceMs).toISOString()}${end})`,
  )
  const more = total - endpoints.length
  return more > 0 ? [...lines, `and ${more} more`] : lines
}

/** Slack reads three characters as its own: https://docs.slack.dev/messaging/formatting-message-text. */
function slackText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
