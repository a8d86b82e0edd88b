/** The counts of jobs that wait and run, kept by triggers. */
import { SUSPECT_QUEUE } from '../../tables/guards.ts'
import type { DialectStatements } from '../../tables/statement.ts'

/** Counts of the jobs of an endpoint, each with the condition on the columns of its jobs. */
export const COUNTS = {
  queued: `status = 'IN_QUEUE' AND low_priority = 0`,
  queued_low_priority: `status = 'IN_QUEUE' AND low_priority = 1`,
  queued_of_batches: `status = 'IN_QUEUE' AND queue NOT IN ('', '${SUSPECT_QUEUE}')`,
  suspects_queued: `status = 'IN_QUEUE' AND queue = '${SUSPECT_QUEUE}' AND low_priority = 0`,
  in_progress: `status = 'IN_PROGRESS'`,
  suspects_in_progress: `status = 'IN_PROGRESS' AND queue = '${SUSPECT_QUEUE}'`,
} as const

const NAMES = Object.keys(COUNTS)
const COLUMNS = `endpoint_id, shard, owner, ${NAMES.join(', ')}`

/** The condition on the old or the new row of a trigger: 0 or 1 in SQLite. */
const rowCondition = (row: 'OLD' | 'NEW', condition: string) =>
  `(${condition.replace(/\b(?:status|low_priority|queue)\b/g, column => `${row}.${column}`)})`

/** Adds to the counts of an endpoint. @param of SQL of the number that is added for the jobs of a condition */
const addChange = (of: (condition: string) => string, id: string) =>
  `UPDATE queue_counts SET ${Object.entries(COUNTS)
    .map(([name, condition]) => `${name} = ${name} + ${of(condition)}`)
    .join(', ')} WHERE endpoint_id = ${id} AND shard = 0;`

const added = NAMES.map(name => `${name} = queue_counts.${name} + excluded.${name}`).join(', ')

/**
 * One writer, so one row for an endpoint. Steps of a job that leave it where it is (progress, chunks, expiry) run no
 * trigger.
 */
const sqlite = [
  `CREATE TRIGGER jobs_counted_insert AFTER INSERT ON jobs BEGIN
    INSERT INTO queue_counts (${COLUMNS})
    VALUES (NEW.endpoint_id, 0, NEW.owner, ${Object.values(COUNTS)
      .map(condition => rowCondition('NEW', condition))
      .join(', ')})
    ON CONFLICT (endpoint_id, shard) DO UPDATE SET ${added};
  END`,
  `CREATE TRIGGER jobs_counted_update AFTER UPDATE OF status, queue, low_priority ON jobs BEGIN
    ${addChange(condition => `${rowCondition('NEW', condition)} - ${rowCondition('OLD', condition)}`, 'NEW.endpoint_id')}
  END`,
  `CREATE TRIGGER jobs_counted_delete AFTER DELETE ON jobs WHEN OLD.status IN ('IN_QUEUE', 'IN_PROGRESS') BEGIN
    ${addChange(condition => `0 - ${rowCondition('OLD', condition)}`, 'OLD.endpoint_id')}
  END`,
]

const signed = (rows: string, sign: number) =>
  `SELECT endpoint_id, owner, status, queue, low_priority, ${sign} AS sign FROM ${rows}`
const sums = Object.values(COUNTS)
  .map(condition => `COALESCE(SUM(sign) FILTER (WHERE ${condition}), 0)`)
  .join(', ')
/** Counts what a statement has changed, in the row of its connection: see `takeShard` in postgres-connection.ts. */
const countRows = (changed: string) => `
    INSERT INTO queue_counts (${COLUMNS})
    SELECT endpoint_id, {{shard}}, MAX(owner), ${sums}
    FROM (${changed}) AS changed GROUP BY endpoint_id
    HAVING ${Object.values(COUNTS)
      .map(condition => `COALESCE(SUM(sign) FILTER (WHERE ${condition}), 0) <> 0`)
      .join(' OR ')}
    ORDER BY endpoint_id
    ON CONFLICT (endpoint_id, shard) DO UPDATE SET ${added};`

/** A trigger for each statement: an insert of a hundred jobs counts once. */
const postgres = [
  `CREATE FUNCTION count_jobs() RETURNS trigger LANGUAGE plpgsql AS $count$ BEGIN
    IF TG_OP = 'INSERT' THEN ${countRows(signed('new_jobs', 1))}
    ELSIF TG_OP = 'DELETE' THEN ${countRows(signed('old_jobs', -1))}
    ELSE ${countRows(`${signed('new_jobs', 1)} UNION ALL ${signed('old_jobs', -1)}`)}
    END IF;
    RETURN NULL;
  END $count$`,
  `CREATE TRIGGER jobs_counted_insert AFTER INSERT ON jobs
    REFERENCING NEW TABLE AS new_jobs FOR EACH STATEMENT EXECUTE FUNCTION count_jobs()`,
  `CREATE TRIGGER jobs_counted_update AFTER UPDATE ON jobs
    REFERENCING OLD TABLE AS old_jobs NEW TABLE AS new_jobs FOR EACH STATEMENT EXECUTE FUNCTION count_jobs()`,
  `CREATE TRIGGER jobs_counted_delete AFTER DELETE ON jobs
    REFERENCING OLD TABLE AS old_jobs FOR EACH STATEMENT EXECUTE FUNCTION count_jobs()`,
]

/**
 * Numbers of jobs of each endpoint that wait and run: the sum of its rows. Triggers keep them, so that no statement
 * can move a job without a count, and nothing has to count rows of `jobs`, of which there may be a million. In
 * PostgreSQL each connection adds to a row of its own, so that two that end jobs of one endpoint do not wait for each
 * other; a single one of these rows may be negative.
 */
export const queueCounts: readonly (string | DialectStatements)[] = [
  `CREATE TABLE queue_counts (
    endpoint_id TEXT NOT NULL REFERENCES endpoint_ids (id) ON DELETE CASCADE,
    shard {{integer}} NOT NULL,
    owner TEXT NOT NULL,
    ${NAMES.map(name => `${name} {{integer}} NOT NULL`).join(',\n    ')},
    PRIMARY KEY (endpoint_id, shard)
  ) {{strict}}`,
  { sqlite, postgres },
]
