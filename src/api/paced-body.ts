import type { Clock } from '../ports/clock.ts'
import { type BodyRequest, incomingBody } from './body.ts'

/** Time in which a body has to bring {@link PACE_BYTES}, so that an upload cannot be held open for nothing. */
const PACE_MS = 30_000
const PACE_BYTES = 65_536

/** The errors of a body that passes to a file. */
export interface PaceErrors {
  /** Too slow. */
  readonly slow: () => Error
  /** Cut off. */
  readonly cut: (cause: unknown) => Error
  /** The right to send it has ended. */
  readonly over: () => Error
}

/**
 * The pieces of a body as they arrive, for a call that passes them on to a file.
 * @param ended aborts when the right to send them ends
 * @throws one of the given errors
 */
export async function* pacedPieces(
  call: BodyRequest,
  clock: Clock,
  ended: AbortSignal,
  errors: PaceErrors,
): AsyncGenerator<Uint8Array> {
  const body = incomingBody(call)
  if (body === null) return
  const pieces = body.pieces()[Symbol.asyncIterator]()
  const slow = Promise.withResolvers<never>()
  // Between two pieces nobody waits for it.
  slow.promise.catch(() => {})
  const expected = new Set<unknown>()
  const end = (error: Error) => {
    expected.add(error)
    slow.reject(error)
  }
  const over = () => end(errors.over())
  if (ended.aborted) over()
  else ended.addEventListener('abort', over, { once: true })
  let bytes = 0
  let stop = () => {}
  const watch = (before: number) => {
    stop = clock.after(PACE_MS, () => {
      if (bytes - before < PACE_BYTES) end(errors.slow())
      else watch(bytes)
    })
  }
  watch(0)
  try {
    for (;;) {
      const next = await Promise.race([pieces.next(), slow.promise]).catch(error => {
        throw expected.has(error) ? error : errors.cut(error)
      })
      if (next.done === true) return
      bytes += next.value.length
      yield next.value
    }
  } finally {
    stop()
    // The rest of the body is read and dropped only after that: a client that still sends gets its response.
    void pieces.return?.().catch(() => {})
  }
}
