/** Whether an embedded database is whole and its rows fit together, and what mends it. */
import { DatabaseSync } from 'node:sqlite'
import { fromSqlite } from './engines/sqlite-errors.ts'
import { COUNTS } from './schema/initial/queue-counts.ts'
import { STEP_BACK } from './tables/guards.ts'

/** Something that is wrong. */
export interface Flaw {
  /** A sentence without a full stop. */
  readonly problem: string
  /** What a repair does, or what a person has to. */
  readonly remedy: string
  /** Whether a repair mends it. */
  readonly mends: boolean
}

/** How many faults of the file are named. */
const NAMED = 5
/** Results of SQLite for a file in which it cannot even look for faults. */
const DAMAGED = new Set([11, 26])

/**
 * Looks for flaws in one transaction, beside a server that may be running.
 * @param repair mends what can be mended, in the same transaction; no server may run on the file then
 * @param nowMs when jobs that are given back begin to wait
 * @throws AppError `unavailable` when the file cannot be read
 */
export function auditFile(file: string, repair: boolean, nowMs: number): Flaw[] {
  try {
    using database = new DatabaseSync(file, { readOnly: !repair, timeout: 5_000 })
    const damage = damageIn(database)
    // What the rows of a damaged file say means nothing.
    if (damage.length > 0) return damage
    database.exec(repair ? 'PRAGMA foreign_keys = ON; BEGIN IMMEDIATE' : 'BEGIN')
    const flaws = [orphans, holders, counts].flatMap(audit => audit(database, repair, nowMs))
    database.exec('COMMIT')
    return flaws
  } catch (error) {
    throw fromSqlite(error)
  }
}

function damageIn(database: DatabaseSync): Flaw[] {
  return integrityOf(database).map(text => ({
    problem: `the file is damaged: ${text}`,
    remedy: 'restore a backup',
    mends: false,
  }))
}

function integrityOf(database: DatabaseSync): string[] {
  try {
    const rows = database.prepare(`PRAGMA integrity_check(${NAMED})`).all()
    return rows.map(row => String(row.integrity_check)).filter(text => text !== 'ok')
  } catch (error) {
    const { errcode = 0, message } = error as Error & { errcode?: number }
    if (!DAMAGED.has(errcode & 0xff)) throw error
    return [message]
  }
}

/** Rows that refer to a row that is gone. Those that would have gone with it are removed. */
function orphans(database: DatabaseSync, repair: boolean): Flaw[] {
  const rows = database.prepare('PRAGMA foreign_key_check').all()
  const groups = Map.groupBy(rows, ({ table, parent, fkid }) => `${table} ${parent} ${fkid}`)
  return [...groups.values()].map(group => {
    const { table, parent, fkid } = group[0]!
    const keys = database.prepare(`PRAGMA foreign_key_list(${table})`).all()
    const mends = keys.some(key => key.id === fkid && key.on_delete === 'CASCADE')
    if (mends && repair) {
      const remove = database.prepare(`DELETE FROM ${table} WHERE rowid = ?`)
      for (const { rowid } of group) remove.run(rowid as number)
    }
    const problem = `${group.length} rows of ${table} belong to rows of ${parent} that are gone`
    return { problem, remedy: mends ? 'remove them' : 'restore a backup', mends }
  })
}

const HELD_BY_NOBODY = `status = 'IN_PROGRESS'
  AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = jobs.worker_id AND workers.state <> 'EXITED')`

/** Jobs that run on workers that have ended or are not known. */
function holders(database: DatabaseSync, repair: boolean, nowMs: number): Flaw[] {
  const row = database.prepare(`SELECT count(*) AS held FROM jobs WHERE ${HELD_BY_NOBODY}`).get()
  if (row?.held === 0) return []
  if (repair) {
    const give = `UPDATE jobs SET ${STEP_BACK}, lost_attempts = min(lost_attempts + 1, attempt), waiting_since_ms = ? WHERE ${HELD_BY_NOBODY}`
    database.prepare(give).run(nowMs)
  }
  const problem = `${row?.held} jobs run on workers that have ended`
  return [{ problem, remedy: 'put them back into the queue', mends: true }]
}

const NAMES = Object.keys(COUNTS)
const COUNTED = `SELECT endpoint_id, ${Object.entries(COUNTS)
  .map(([name, condition]) => `sum(${condition}) AS ${name}`)
  .join(', ')} FROM jobs GROUP BY endpoint_id`
const KEPT = `SELECT endpoint_id, ${NAMES.map(name => `sum(${name}) AS ${name}`).join(', ')} FROM queue_counts GROUP BY endpoint_id`

/** Endpoints whose kept counts are not those of their jobs. */
function counts(database: DatabaseSync, repair: boolean): Flaw[] {
  const differs = NAMES.map(name => `coalesce(kept.${name}, 0) <> coalesce(counted.${name}, 0)`).join(' OR ')
  const wrong = database
    .prepare(
      `SELECT endpoint_id FROM (${KEPT}) AS kept FULL JOIN (${COUNTED}) AS counted USING (endpoint_id) WHERE ${differs} ORDER BY endpoint_id`,
    )
    .all()
    .map(row => String(row.endpoint_id))
  if (repair) {
    const remove = database.prepare('DELETE FROM queue_counts WHERE endpoint_id = ?')
    const add = database.prepare(
      `INSERT INTO queue_counts (endpoint_id, shard, owner, ${NAMES.join(', ')})
       SELECT endpoint_id, 0, (SELECT owner FROM endpoint_ids WHERE id = endpoint_id), ${NAMES.join(', ')}
       FROM (${COUNTED}) WHERE endpoint_id = ?`,
    )
    for (const id of wrong) {
      remove.run(id)
      add.run(id)
    }
  }
  return wrong.map(id => ({
    problem: `the counts of waiting and running jobs of endpoint ${id} are wrong`,
    remedy: 'count them anew',
    mends: true,
  }))
}
