import type { BatchId, EndpointId, JobId, WorkerId } from '../src/core/ids.ts'
import type { JobStatus } from '../src/core/jobs/job.ts'

/** Change of one job by a commit, recorded by triggers of the database. */
export interface Change {
  /** Grows with each change. */
  readonly n: number
  readonly kind: 'insert' | 'update' | 'delete'
  readonly job: JobId
  readonly endpoint: EndpointId
  /** Null for a new job. */
  readonly was: JobStatus | null
  /** Null for a job that is removed. */
  readonly now: JobStatus | null
  readonly was_worker: WorkerId | null
  readonly worker: WorkerId | null
  readonly was_attempt: number
  readonly attempt: number
  readonly was_lost: number
  readonly lost: number
  readonly low: 0 | 1
  readonly queued_at_ms: number
  readonly expires_at_ms: number
  readonly webhook: string | null
  readonly input: string
  readonly output: string | null
  readonly error: string | null
  /** The batch of its request; null for a job that was submitted alone. */
  readonly batch: BatchId | null
  /** The batch whose queue it is in; empty for the queue of the endpoint. */
  readonly queue: BatchId | ''
  /** 1 if the endpoint of the job still existed. */
  readonly endpoint_there: 0 | 1
}

/** One commit that changed jobs. */
export interface Commit {
  readonly changes: readonly Change[]
  /** True if the server received its success. Otherwise it publishes no events for it. */
  readonly acknowledged: boolean
}

const COLUMNS = `kind, job, endpoint, was, now, was_worker, worker, was_attempt, attempt, was_lost, lost, low,
  queued_at_ms, expires_at_ms, webhook, input, output, error, batch, queue, endpoint_there`

const rest = (row: 'NEW' | 'OLD') => `${row}.low_priority, ${row}.queued_at_ms, ${row}.expires_at_ms, ${row}.webhook,
  ${row}.input, ${row}.output, ${row}.error, ${row}.batch_id, ${row}.queue,
  (SELECT COUNT(*) FROM endpoints WHERE id = ${row}.endpoint_id)`

/**
 * A journal that triggers of the database write, independent of the code under test. It is rolled back with
 * the changes that it records.
 */
export const LEDGER = `
  CREATE TEMP TABLE ledger (n INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, job TEXT, endpoint TEXT, was TEXT, now TEXT,
    was_worker TEXT, worker TEXT, was_attempt INTEGER, attempt INTEGER, was_lost INTEGER, lost INTEGER, low INTEGER,
    queued_at_ms INTEGER, expires_at_ms INTEGER, webhook TEXT, input TEXT, output TEXT, error TEXT, batch TEXT, queue TEXT,
    endpoint_there INTEGER);
  CREATE TEMP TRIGGER job_added AFTER INSERT ON main.jobs BEGIN
    INSERT INTO ledger (${COLUMNS})
    VALUES ('insert', NEW.id, NEW.endpoint_id, NULL, NEW.status, NULL, NEW.worker_id, 0, NEW.attempt, 0,
      NEW.lost_attempts, ${rest('NEW')});
  END;
  CREATE TEMP TRIGGER job_changed AFTER UPDATE ON main.jobs
  WHEN OLD.status <> NEW.status OR OLD.attempt <> NEW.attempt OR OLD.expires_at_ms <> NEW.expires_at_ms
    OR OLD.worker_id IS NOT NEW.worker_id BEGIN
    INSERT INTO ledger (${COLUMNS})
    VALUES ('update', NEW.id, NEW.endpoint_id, OLD.status, NEW.status, OLD.worker_id, NEW.worker_id, OLD.attempt,
      NEW.attempt, OLD.lost_attempts, NEW.lost_attempts, ${rest('NEW')});
  END;
  CREATE TEMP TRIGGER job_removed AFTER DELETE ON main.jobs BEGIN
    INSERT INTO ledger (${COLUMNS})
    VALUES ('delete', OLD.id, OLD.endpoint_id, OLD.status, NULL, OLD.worker_id, OLD.worker_id, OLD.attempt, OLD.attempt,
      OLD.lost_attempts, OLD.lost_attempts, ${rest('OLD')});
  END`

/** Selects the changes after a given one. */
export const UNREAD = 'SELECT * FROM temp.ledger WHERE n > ? ORDER BY n'
