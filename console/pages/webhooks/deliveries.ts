/** Deliveries of webhooks for people. */
import type { WebhookDeliveryPage } from '../../client/api-types.d.ts'

/** One delivery, with each try. */
export type Delivery = WebhookDeliveryPage['deliveries'][number]

/** Limit of calls of a receiver for one delivery. */
const TRIES = 3

/** The state of a delivery, as a word. */
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

/** True for a status with which a receiver confirms the message. */
export function hasMessage(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status < 300
}

/** The result of a try: a status, or the reason of a failure. */
export function tryResult({ status, error }: Delivery['tries'][number]): string {
  if (status === undefined) return error ?? 'no answer'
  return `the receiver answered ${status}${hasMessage(status) ? '' : '; only 200 to 299 count'}`
}

/** The result of the last try; empty before the first. */
export function lastResult({ tries }: Pick<Delivery, 'tries'>): string {
  const last = tries.at(-1)
  return last === undefined ? '' : tryResult(last)
}
