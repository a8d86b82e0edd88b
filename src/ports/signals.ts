/** A signal that aborts with the first of several. */
export interface JoinedSignal extends Disposable {
  readonly signal: AbortSignal
}

/**
 * Joins signals for the time of a call: `using both = joinSignals(late, stopping)`. Node keeps the signal of
 * `AbortSignal.any`, with all that has waited for it, as long as one of the joined signals exists; this one goes with
 * the call.
 */
export function joinSignals(...signals: readonly AbortSignal[]): JoinedSignal {
  const controller = new AbortController()
  const leave = () => {
    for (const signal of signals) signal.removeEventListener('abort', abort)
  }
  const abort = () => {
    leave()
    controller.abort(signals.find(({ aborted }) => aborted)?.reason)
  }
  for (const signal of signals) signal.addEventListener('abort', abort)
  if (signals.some(({ aborted }) => aborted)) abort()
  return { signal: controller.signal, [Symbol.dispose]: leave }
}
