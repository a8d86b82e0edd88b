/** Statements and rows of the server's time. */
import type { KeptClock } from '../../ports/store/clock-store.ts'

export const findClock = `
  SELECT boot, since_boot_ms, now_ms, {{database_ms}} - database_ms AS database_ago_ms, step_since_ms, held_until_ms, accepted
  FROM server_clock WHERE id = 1`

/** $1 boot of the system, $2 milliseconds since it, $3 the time, $4 the instant of a step; null without one. */
export const keepClock = `
  INSERT INTO server_clock (id, boot, since_boot_ms, now_ms, database_ms, step_since_ms)
  VALUES (1, $1, CAST($2 AS {{integer}}), CAST($3 AS {{integer}}), {{database_ms}}, CAST($4 AS {{integer}}))
  ON CONFLICT (id) DO UPDATE SET boot = excluded.boot, since_boot_ms = excluded.since_boot_ms, now_ms = excluded.now_ms,
    database_ms = excluded.database_ms, step_since_ms = excluded.step_since_ms`

/** $1 end of the hold; null for no hold. */
export const setHold = 'UPDATE server_clock SET held_until_ms = CAST($1 AS {{integer}}) WHERE id = 1'

/** $1 1 to accept the machine's clock, else 0. */
export const setAccepted = 'UPDATE server_clock SET accepted = CAST($1 AS {{integer}}) WHERE id = 1'

/** The last job of a part of all, in the order of their ids: $1 the job before, $2 limit. */
export const lastOfPart = 'SELECT MAX(id) AS id FROM (SELECT id FROM jobs WHERE id > $1 ORDER BY id LIMIT $2) AS part'
/** The jobs of a part: $2 the job before, $3 the last one. */
const IN_PART = 'id > $2 AND id <= $3'

/** $1 earliest expiry that the jobs of a part get. */
export const holdJobs = `UPDATE jobs SET expires_at_ms = $1 WHERE expires_at_ms < $1 AND ${IN_PART}`

/** $1 earliest expiry that idempotency keys and batches get. */
export const holds = [
  'UPDATE idempotency_keys SET expires_at_ms = $1 WHERE expires_at_ms < $1',
  'UPDATE batches SET expires_at_ms = $1 WHERE expires_at_ms < $1',
]

const moved = (columns: string) =>
  columns
    .split(' ')
    .map(column => `${column} = ${column} + CAST($1 AS {{integer}})`)
    .join(', ')

/** Positions grow with the time (services/jobs/jobs.ts). */
const POSITION = 'position = position + CAST($1 AS {{integer}}) * 1024'
const WORKER_INSTANTS =
  'created_at_ms placed_at_ms download_started_at_ms download_ended_at_ms pull_started_at_ms pull_ended_at_ms started_at_ms ready_at_ms ' +
  'idle_since_ms frozen_at_ms thawed_at_ms asleep_at_ms paused_at_ms pausable_at_ms stop_requested_at_ms stopping_at_ms exited_at_ms problem_at_ms counted_until_ms'

const JOB_INSTANTS = 'queued_at_ms waiting_since_ms started_at_ms deadline_ms paused_at_ms expires_at_ms'

/** $1 shift of the waiting and running jobs of a part. */
export const moveJobs = `UPDATE jobs SET ${POSITION}, ${moved(JOB_INSTANTS)} WHERE finished_at_ms IS NULL AND ${IN_PART}`

/** $1 shift of the expiry of the final jobs of a part. */
export const moveFinalJobs = `UPDATE jobs SET ${moved('expires_at_ms')} WHERE finished_at_ms IS NOT NULL AND ${IN_PART}`

/** Of keys: looked up for each of them, which are fewer than jobs. */
const OF_UNFINISHED = 'EXISTS (SELECT 1 FROM jobs WHERE id = idempotency_keys.job_id AND finished_at_ms IS NULL)'

/** $1 shift. Moves all that waits or runs besides jobs: the rest of its limits stays as it is. */
export const moves = [
  `UPDATE idempotency_keys SET ${moved('expires_at_ms')} WHERE ${OF_UNFINISHED}`,
  `UPDATE batches SET ${POSITION}, ${moved('turn_at_ms created_at_ms finalized_at_ms expires_at_ms')} WHERE finished_at_ms IS NULL`,
  `UPDATE queued_workers SET ${moved('queued_at_ms download_started_at_ms download_ended_at_ms')}`,
  `UPDATE workers SET ${moved(WORKER_INSTANTS)} WHERE state <> 'EXITED'`,
  `UPDATE stops SET ${moved('since_ms')}`,
  `UPDATE webhook_deliveries SET ${moved('created_at_ms due_at_ms')} WHERE state = 'PENDING'`,
  'DELETE FROM rate_windows',
]

/** $1 shift, below zero. Rows that ended while the time was ahead do not stay longer for that. */
export const movesBack = [
  `UPDATE workers SET ${moved(WORKER_INSTANTS)} WHERE state = 'EXITED'`,
  `UPDATE idempotency_keys SET ${moved('expires_at_ms')} WHERE NOT ${OF_UNFINISHED}`,
  `UPDATE batches SET ${moved('expires_at_ms')} WHERE finished_at_ms IS NOT NULL`,
  `UPDATE webhook_deliveries SET ${moved('over_at_ms')} WHERE state <> 'PENDING'`,
  `UPDATE console_sessions SET ${moved('created_at_ms expires_at_ms')}`,
]

/** A row. */
export interface ClockRow {
  readonly boot: string
  readonly since_boot_ms: number
  readonly now_ms: number
  readonly database_ago_ms: number | null
  readonly step_since_ms: number | null
  readonly held_until_ms: number | null
  readonly accepted: 0 | 1
}

/** A row as what is kept. */
export function keptClockFromRow(row: ClockRow): KeptClock {
  return {
    boot: row.boot,
    sinceBootMs: row.since_boot_ms,
    nowMs: row.now_ms,
    databaseAgoMs: row.database_ago_ms,
    stepSinceMs: row.step_since_ms,
    heldUntilMs: row.held_until_ms,
    isAccepted: row.accepted === 1,
  }
}
