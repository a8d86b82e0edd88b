import type { Database } from '../store.ts'

/** Tables that must be empty once the retention of all jobs is over. */
const EMPTY = [
  ...['jobs', 'chunks', 'diagnostics', 'stops', 'idempotency_keys', 'batches', 'batch_requests'],
  ...['webhook_deliveries', 'webhook_tries'],
] as const

const OF_NO_ENDPOINT = `SELECT id, state FROM workers WHERE state <> 'EXITED'
  AND NOT EXISTS (SELECT 1 FROM endpoints WHERE id = workers.endpoint_id) ORDER BY id`

/** Running workers whose endpoint was removed. */
export function strayWorkers({ query }: Pick<Database, 'query'>): string[] {
  const rows = query<{ id: string; state: string }>(OF_NO_ENDPOINT)
  return rows.map(({ id, state }) => `worker ${id} is ${state}, and its endpoint was removed`)
}

/** Workers that wait for a placement. */
export function queuedWorkers({ query }: Pick<Database, 'query'>): string[] {
  const rows = query<{ id: string; reason: string }>('SELECT id, reason FROM queued_workers ORDER BY id')
  return rows.map(({ id, reason }) => `worker ${id} waits for a placement: ${reason}`)
}

/** The rows that are left once all retention is over. @param overByMs wall-clock time at which all work was done */
export function remainingRows({ query }: Pick<Database, 'query'>, overByMs: number): string[] {
  const counts = EMPTY.map(table => ({ table, left: query<{ n: number }>(`SELECT COUNT(*) AS n FROM ${table}`)[0]!.n }))
  const [exited] = query<{ n: number }>('SELECT COUNT(*) AS n FROM workers WHERE exited_at_ms <= ?', overByMs)
  const [deleted] = query<{ n: number }>('SELECT COUNT(*) AS n FROM endpoint_ids WHERE deleted_at_ms IS NOT NULL')
  return [...counts, { table: 'ended workers', left: exited!.n }, { table: 'deleted endpoints', left: deleted!.n }]
    .filter(({ left }) => left > 0)
    .map(({ table, left }) => `${left} rows are left in ${table}`)
}
