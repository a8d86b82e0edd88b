import type { Notifier, Topic } from '../../ports/notifier.ts'

/** Options of {@link createNotifier}. */
export interface NotifierOptions {
  /** Receives the error of a listener; without it the error is dropped. */
  readonly onError?: (thrown: unknown) => void
}

/**
 * Notifications within one process. Those of one topic that arrive before its listeners ran count as one, and no
 * listener keeps another from being called.
 */
export function createNotifier({ onError }: NotifierOptions = {}): Notifier {
  const listeners = new Map<Topic, Set<{ call: () => void }>>()
  const pending = new Set<Topic>()

  function flush(topic: Topic): void {
    pending.delete(topic)
    for (const listener of [...(listeners.get(topic) ?? [])]) {
      // An earlier listener may have unsubscribed it.
      if (listeners.get(topic)?.has(listener) !== true) continue
      try {
        listener.call()
      } catch (thrown) {
        onError?.(thrown)
      }
    }
  }

  return {
    publish(topic) {
      if (pending.has(topic) || !listeners.has(topic)) return
      pending.add(topic)
      queueMicrotask(() => flush(topic))
    },
    subscribe(topic, listener) {
      // An object of its own, so that the same function can be subscribed twice.
      const entry = { call: listener }
      const entries = listeners.get(topic) ?? new Set()
      entries.add(entry)
      listeners.set(topic, entries)
      return () => {
        entries.delete(entry)
        // A set may keep its old capacity (core/slots).
        entry.call = () => {}
        if (entries.size === 0 && listeners.get(topic) === entries) listeners.delete(topic)
      }
    },
  }
}
