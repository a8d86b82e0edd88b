/** How large the jobs are that a worker could be handed. */
import { guard } from '../../tables/guards.ts'

/** $1 endpoint, $2 queue, $3 now, $4 how many. In the order in which they are claimed, and locked for the caller. Their texts are not read. */
export const headSizes = `
  SELECT input_bytes AS bytes FROM jobs
  WHERE endpoint_id = $1 AND ${guard('claim')} AND queue = $2 AND expires_at_ms > $3
  ORDER BY low_priority, position, id LIMIT $4 {{skip_locked}}`
