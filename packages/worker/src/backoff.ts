/** Growing pauses between attempts: 0.25 s, doubled each time, with jitter. */
export class Backoff {
  #tries = 0
  readonly #capMs: number

  /** @param capMs the longest pause, in ms */
  constructor(capMs: number) {
    this.#capMs = capMs
  }

  /** The next pause, in ms. */
  next(): number {
    const full = Math.min(this.#capMs, 250 * 2 ** Math.min(this.#tries, 20))
    this.#tries += 1
    return full * (0.6 + 0.4 * Math.random())
  }

  /** Starts over with the shortest pause. */
  reset(): void {
    this.#tries = 0
  }
}

/** Waits `ms` milliseconds, or until the signal aborts if that is sooner. Never rejects. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done)
  })
}

/**
 * Pause that a Retry-After header (seconds or a date) asks for, in ms, five minutes at most;
 * undefined if it is malformed.
 */
export function retryAfterMs(header: string | undefined): number | undefined {
  if (!header) return undefined
  const ms = /^\s*[\d.]+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) ? Math.min(300_000, Math.max(0, ms)) : undefined
}
