/** A backup as the body of a response, for as long as its reader may have it and continues to read. */
import { AppError } from '../../core/errors.ts'
import type { Backup } from '../../ports/backups.ts'
import type { Clock } from '../../ports/clock.ts'

/**
 * Limits of a reader: only one backup runs at a time, so no reader may hold it for long. After the grace time a reader
 * must take at least this many bytes a second, and it must finish before the deadline.
 */
export const BACKUP_READING = { graceMs: 60_000, bytesPerSecond: 64 * 1024, deadlineMs: 6 * 60 * 60_000 }
const CHECK_MS = 1_000

/**
 * A stream of the pieces of a backup, at the speed of the client. It fails, and the backup is dropped, when the
 * signal aborts or the reader is too slow. An aborted backup has no end, so every reader recognizes it as incomplete.
 * @param ended aborts when the caller may no longer have it
 */
export function backupStream(backup: Backup, clock: Clock, ended: AbortSignal): ReadableStream<Uint8Array> {
  const iterator = backup.pieces[Symbol.asyncIterator]()
  const beganMs = clock.monotonic()
  let readBytes = 0
  let isOver = false
  let cancelCheck = () => {}

  const finish = async () => {
    isOver = true
    cancelCheck()
    // A piece that is being read comes first.
    await iterator.return?.()
    await backup.drop()
  }
  const refusal = (): unknown => {
    if (ended.aborted) return ended.reason
    const tookMs = clock.monotonic() - beganMs
    if (tookMs > BACKUP_READING.deadlineMs) return new AppError('unavailable', 'the backup took too long to read')
    const allowedMs = BACKUP_READING.graceMs + (readBytes / BACKUP_READING.bytesPerSecond) * 1_000
    return tookMs > allowedMs ? new AppError('unavailable', 'the backup was read too slowly') : null
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
        const { value, done } = await iterator.next()
        if (isOver) return
        if (done === true) {
          await finish()
          controller.close()
          return
        }
        readBytes += value.byteLength
        controller.enqueue(value)
      },
      cancel: finish,
    },
    { highWaterMark: 0 },
  )
}
