/** The texts of notes that stories are made of: written and read here, so that both stay one. */
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

/** The note on a retry, about the job as it was before. */
export function retryNote(attempt: number, status: JobStatus, error: string | null): string {
  return `attempt ${attempt} was ${status}, and a client queued the job again; ${(error ?? 'it had no error').slice(0, NOTED_ERROR)}`
}

/** What a note is about, and the number of the attempt that it names; null where it names none. */
export function noteKind(text: string): { readonly kind: JobNoteKind; readonly attempt: number | null } {
  const [, attempt, lost] = /^attempt (\d+) was (lost: |[A-Z_]+, and a client queued the job again; )/.exec(text) ?? []
  if (attempt === undefined) return { kind: 'other', attempt: null }
  return { kind: lost === 'lost: ' ? 'lost' : 'retried', attempt: Number(attempt) }
}
