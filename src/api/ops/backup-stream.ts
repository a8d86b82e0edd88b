/** A backup as the body of a response. */
import type { Backup } from '../../ports/backups.ts'
import type { Clock } from '../../ports/clock.ts'
import { pacedStream, type ReadingPace } from '../paced-stream.ts'

/** Limits of a reader: only one backup runs at a time, so no reader may hold it for long. */
export const BACKUP_READING: ReadingPace = { graceMs: 60_000, bytesPerSecond: 64 * 1024, deadlineMs: 6 * 60 * 60_000 }

/**
 * A stream of the pieces of a backup. It fails, and the backup is dropped, when the signal aborts or the reader is too
 * slow.
 * @param ended aborts when the caller may no longer have it
 */
export function backupStream(backup: Backup, clock: Clock, ended: AbortSignal): ReadableStream<Uint8Array> {
  return pacedStream('the backup', backup, BACKUP_READING, { clock, ended })
}
