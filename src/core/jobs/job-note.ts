/** Texts of the notes in the story of a job: one module writes and reads them, so that both agree. */
import type { JobStatus } from './job.ts'

/** Longest error in a note. */
const NOTED_ERROR = 500

/** The subjects of notes: an attempt that was lost, a retry by a client, or anything else. */
export const JOB_NOTE_KINDS = ['lost', 'retried', 'other'] as const
/** One of {@link JOB_NOTE_KINDS}. */
export type JobNoteKind = (typeof JOB_NOTE_KINDS)[number]

/** The note on an attempt that was lost. */
export function lossNote(attempt: number, cause: string): string {
  return `attempt ${attempt} was lost: ${cause}`
}

/** The note on a retry, with the status and the error before it. */
export function retryNote(attempt: number, status: JobStatus, error: string | null): string {
  return `attempt ${attempt} was ${status}, and a client queued the job again; ${(error ?? 'it had no error').slice(0, NOTED_ERROR)}`
}

/**
 * The note on a pause that is over.
 * @param pausedMs its duration
 * @param by name of the endpoint that had the room; null for one of another account, or one that is deleted
 */
export function pauseNote(attempt: number, pausedMs: number, by: string | null): string {
  const seconds = Math.round(pausedMs / 1_000)
  return `attempt ${attempt} went on after a pause of ${seconds} s, in which ${namedUrgent(by)} had its room`
}

/** An endpoint of higher priority in a text for people. @param name null for one that is not named */
export function namedUrgent(name: string | null): string {
  return name === null ? 'another endpoint of higher priority' : `endpoint ${name} of higher priority`
}

/** The subject of a note, and the number of the attempt in it; null without one. */
export function noteKind(text: string): { readonly kind: JobNoteKind; readonly attempt: number | null } {
  const [, attempt, lost] = /^attempt (\d+) was (lost: |[A-Z_]+, and a client queued the job again; )/.exec(text) ?? []
  if (attempt === undefined) return { kind: 'other', attempt: null }
  return { kind: lost === 'lost: ' ? 'lost' : 'retried', attempt: Number(attempt) }
}
