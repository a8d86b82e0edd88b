/**
 * The subject of a notification. `queue:` an endpoint's queue has jobs to claim, `load:` its jobs or workers changed,
 * `job:` a job changed, `worker:` a worker changed, `key:` an API key changed or was removed, `endpoints` an endpoint
 * was saved or removed, `deleted:` this endpoint was removed, `fleet` processes of workers changed, `machine` the
 * machine changed, `webhooks` a delivery is due, `alerts`
 * a message of an alert is.
 */
export type Topic =
  | `${'queue' | 'load' | 'job' | 'worker' | 'deleted' | 'key'}:${string}`
  | 'endpoints'
  | 'fleet'
  | 'machine'
  | 'webhooks'
  | 'alerts'

/** Wakes waiters. A notification carries no data and may be lost or doubled: subscribe, then read, then wait. */
export interface Notifier {
  publish(topic: Topic): void
  /**
   * Calls `listener` at each notification until the returned function is called.
   * The listener must not throw; it runs soon after `publish`, never inside it.
   */
  subscribe(topic: Topic, listener: () => void): () => void
}
