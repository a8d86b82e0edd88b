/** The body of a response that takes long, for as long as its reader may have it and continues to read. */
import { AppError } from '../core/errors.ts'
import type { Clock } from '../ports/clock.ts'

/** The limits of a reader. */
export interface ReadingPace {
  readonly graceMs: number
  /** Bytes that a reader must take a second after the grace time. */
  readonly bytesPerSecond: number
  /** Time in which it must finish. */
  readonly deadlineMs: number
}

/** The content of a response. */
export interface PacedSource {
  readonly pieces: AsyncIterable<Uint8Array>
  /** Releases it; called once. */
  drop(): Promise<void>
}

const CHECK_MS = 1_000

/**
 * A stream of pieces at the speed of the client. It fails, and the source is dropped, when the signal aborts or the
 * reader is too slow. An aborted response has no end, so every reader recognizes it as incomplete.
 * @param what names the content in the error of a slow reader
 * @param ended aborts when the caller may no longer have it
 */
export function pacedStream(
  what: string,
  source: PacedSource,
  pace: ReadingPace,
  { clock, ended }: { readonly clock: Clock; readonly ended: AbortSignal },
): ReadableStream<Uint8Array> {
  const iterator = source.pieces[Symbol.asyncIterator]()
  const beganMs = clock.monotonic()
  let readBytes = 0
  let isOver = false
  let cancelCheck = () => {}

  const finish = async () => {
    isOver = true
    cancelCheck()
    // A piece that is being read comes first.
    await iterator.return?.()
    await source.drop()
  }
  const nextPiece = async () => {
    try {
      return await iterator.next()
    } catch (error) {
      if (!isOver) await finish()
      throw error
    }
  }
  const refusal = (): unknown => {
    if (ended.aborted) return ended.reason
    const tookMs = clock.monotonic() - beganMs
    if (tookMs > pace.deadlineMs) return new AppError('unavailable', `${what} took too long to read`)
    const allowedMs = pace.graceMs + (readBytes / pace.bytesPerSecond) * 1_000
    return tookMs > allowedMs ? new AppError('unavailable', `${what} was read too slowly`) : null
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const check = () => {
          if (isOver) return
          const problem = refusal()
          if (problem === null) {
            cancelCheck = clock.after(CHECK_MS, check)
            return
          }
          controller.error(problem)
          void finish().catch(() => {})
        }
        cancelCheck = clock.after(CHECK_MS, check)
        ended.addEventListener('abort', check, { once: true })
      },
      async pull(controller) {
        const next = await nextPiece()
        if (isOver) return
        if (next.done === true) {
          await finish()
          controller.close()
          return
        }
        readBytes += next.value.byteLength
        controller.enqueue(next.value)
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  )
}
