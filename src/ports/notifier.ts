/** What a topic is about. `queue:` has new jobs, `job:` became final or changed, `worker:` changed, `fleet` anything of workers. */
export type Topic = `queue:${string}` | `job:${string}` | `worker:${string}` | 'endpoints' | 'fleet'

/** Wakes whoever waits. A notification carries nothing and may be lost or doubled: subscribe, then read, then wait. */
export interface Notifier {
  publish(topic: Topic): void
  /**
   * Calls `listener` at each notification until the returned function is called.
   * The listener must not throw; it runs soon after `publish`, never inside it.
   */
  subscribe(topic: Topic, listener: () => void): () => void
}
