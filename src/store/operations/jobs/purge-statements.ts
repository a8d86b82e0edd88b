/** Statements that find what a purge takes. */
import { guard } from '../../tables/guards.ts'

/** $1 endpoint, $2 and $3 the queue and the priority behind which it stands. The next queue in which a job waits. */
export const nextQueue = `
  SELECT queue, low_priority FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND (queue, low_priority) > ($2, $3)
  ORDER BY queue, low_priority LIMIT 1`

/** $1 endpoint, $2 queue, $3 priority. The place of the last job of a queue. */
export const tailOfPart = `
  SELECT position, id FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND queue = $2 AND low_priority = $3
  ORDER BY position DESC, id DESC LIMIT 1`

/** $1 endpoint, $2 queue, $3 priority, $4 and $5 the place behind which they stand, $6 and $7 the last place, $8 how many. */
export const waitingJobs = `
  SELECT id, position, expires_at_ms, input_bytes AS bytes FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND queue = $2 AND low_priority = $3
    AND (position, id) > ($4, $5) AND (position, id) <= ($6, $7)
    AND EXISTS (SELECT 1 FROM endpoints WHERE id = $1)
  ORDER BY position, id LIMIT $8 {{skip_locked}}`
