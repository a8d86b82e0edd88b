/** Deliveries of webhooks as people ask for them. */
import type { WebhookDeliveryPage } from '../../client/api-types.d.ts'

/** One delivery, with each try. */
export type Delivery = WebhookDeliveryPage['deliveries'][number]

/** How often a receiver is called. */
const TRIES = 3

/** What became of a delivery, as a word. */
export function deliveryState({ state, tries }: Pick<Delivery, 'state' | 'tries'>): {
  readonly tone: 'good' | 'bad' | 'wait'
  readonly word: string
} {
  if (state === 'DELIVERED') return { tone: 'good', word: 'delivered' }
  if (state === 'FAILED') return { tone: 'bad', word: 'given up' }
  return tries.length === 0
    ? { tone: 'wait', word: 'waits' }
    : { tone: 'wait', word: `tried ${tries.length} of ${TRIES}` }
}

/** True for a status of a receiver that has the message. */
export function hasMessage(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status < 300
}

/** What a try had for an answer: a status, or why there was none. */
export function tryResult({ status, error }: Delivery['tries'][number]): string {
  if (status === undefined) return error ?? 'no answer'
  return `the receiver answered ${status}${hasMessage(status) ? '' : '; only 200 to 299 count'}`
}

/** What the last try had for an answer; nothing before the first. */
export function lastResult({ tries }: Pick<Delivery, 'tries'>): string {
  const last = tries.at(-1)
  return last === undefined ? '' : tryResult(last)
}
