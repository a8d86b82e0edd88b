import { TRANSITIONS, type Transition } from '../../core/jobs/job.ts'

/** The condition on a job's state under which this transition may happen; from the one table in core/job. */
export function guard(transition: Transition): string {
  const from: readonly string[] = TRANSITIONS[transition].from
  const names = from.map(status => `'${status}'`)
  return names.length === 1 ? `status = ${names[0]}` : `status IN (${names.join(', ')})`
}

/** A job that a worker holds. Written like the partial indexes, so that they serve it. */
export const RUNNING = `status = 'IN_PROGRESS'`

/**
 * The queue of suspects, see core/job: those of the endpoint that wait, or run, alone. Other jobs wait in '' or that
 * of their batch.
 */
export const SUSPECT_QUEUE = 'alone'

/** A batch that takes turns in the queue of its endpoint. Written like the partial index, so that it serves it. */
export const TAKES_TURNS = `status = 'FINALIZED' AND finished_at_ms IS NULL`

/**
 * A job that the worker may have: one that it has yet to stop, though its client has queued it again, is left to
 * others until it has.
 */
export const mayHave = (worker: string) =>
  `NOT EXISTS (SELECT 1 FROM stops WHERE worker_id = ${worker} AND job_id = jobs.id)`

/** A worker that has not ended. Written like the partial indexes, so that they serve it. */
export const ALIVE = `state <> 'EXITED'`

/**
 * A job whose endpoint was not deleted. The rows of others are being removed, and nothing else may happen to them.
 */
export const ENDPOINT_EXISTS = 'EXISTS (SELECT 1 FROM endpoints WHERE id = jobs.endpoint_id)'

/** Changes of each step back into the queue. */
export const STEP_BACK = `status = 'IN_QUEUE', started_at_ms = NULL, deadline_ms = NULL, unbegun = NULL, paused_at_ms = NULL,
    paused_ms = 0, progress = NULL, progress_bytes = NULL`

/** A running job whose time counts. Written like the partial index, so that it serves it. */
export const UNPAUSED = `${RUNNING} AND paused_at_ms IS NULL`

/** The begin of the last attempt; null for a job that its worker has not begun. */
export const STARTED_AT = 'CASE WHEN unbegun = 1 THEN NULL ELSE started_at_ms END AS started_at_ms'
