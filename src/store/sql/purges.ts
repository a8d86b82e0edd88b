/** Statements that look for what a purge takes. */
import { guard } from './guards.ts'

/** $1 endpoint, $2 priority, $3 line. The place of the last job. */
export const tailOfPriority = `
  SELECT position, id FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND line = $3 AND low_priority = $2
  ORDER BY position DESC, id DESC LIMIT 1`

/** $1 endpoint. Batches whose requests may wait. */
export const batchesWithLines = `
  SELECT id FROM batches WHERE endpoint_id = $1 AND finished_at_ms IS NULL AND status <> 'DRAFT' ORDER BY position, id`

/** $1 endpoint, $2 line, $3 priority, $4 and $5 the place behind which they stand, $6 and $7 the last place, $8 how many. */
export const waitingJobs = `
  SELECT id, position, expires_at_ms, octet_length(input) AS bytes FROM jobs
  WHERE endpoint_id = $1 AND ${guard('purge')} AND line = $2 AND low_priority = $3
    AND (position, id) > ($4, $5) AND (position, id) <= ($6, $7)
    AND EXISTS (SELECT 1 FROM endpoints WHERE id = $1)
  ORDER BY position, id LIMIT $8 {{skip_locked}}`
