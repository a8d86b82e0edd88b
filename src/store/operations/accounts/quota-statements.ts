/** Statements on what an account has. */

/** $1 owner. Templates that belong to one endpoint alone count with it. */
export const countObjects = `
  SELECT (SELECT COUNT(*) FROM endpoints WHERE owner = $1) AS endpoints,
    (SELECT COUNT(*) FROM templates WHERE owner = $1 AND listed = 1) AS templates,
    (SELECT COUNT(*) FROM secrets WHERE owner = $1) AS secrets,
    (SELECT COUNT(*) FROM registries WHERE owner = $1) AS registries,
    (SELECT COUNT(*) FROM network_volumes WHERE owner = $1) AS volumes,
    (SELECT COALESCE(SUM(workers_min), 0) FROM endpoints WHERE owner = $1) AS workers_min`

/** $1 owner, $2 one secret. */
export const secretBytes = `
  SELECT COALESCE(SUM(octet_length(sealed) + COALESCE(octet_length(description), 0)), 0) AS bytes,
    COALESCE(SUM(CASE WHEN id = $2 THEN octet_length(sealed) ELSE 0 END), 0) AS sealed,
    COALESCE(SUM(CASE WHEN id = $2 THEN COALESCE(octet_length(description), 0) ELSE 0 END), 0) AS description
  FROM secrets WHERE owner = $1`

/** $1 endpoint. Requests of drafts, which wait too. */
export const heldByDrafts = `
  SELECT COUNT(*) AS requests, COALESCE(SUM(bytes), 0) AS bytes FROM batch_requests
  WHERE batch_id IN (SELECT id FROM batches WHERE endpoint_id = $1 AND finished_at_ms IS NULL)`

/** $1 endpoint. */
export const heldByDeliveries = `
  SELECT COALESCE(SUM(octet_length(payload)), 0) AS bytes FROM webhook_deliveries
  WHERE endpoint_id = $1 AND state = 'PENDING'`

/** $1 endpoint, $2 and $3 the instant and the id after which they come, $4 how many. */
export const heldByJobs = `
  SELECT status, queued_at_ms, id, input_bytes, COALESCE(output_bytes, 0) AS output_bytes,
    COALESCE((SELECT total_bytes FROM chunks WHERE job_id = jobs.id ORDER BY seq DESC LIMIT 1), 0) AS stream_bytes
  FROM jobs WHERE endpoint_id = $1 AND (queued_at_ms, id) > ($2, $3) ORDER BY queued_at_ms, id LIMIT $4`
