/** Flaws of a database and of rows that do not fit together, and their repair. Both databases are checked alike. */
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { CHAIN_BEGIN, type ChainPlace } from '../core/audit/entry.ts'
import type { Placement } from '../core/workers/placement.ts'
import { schemaAt, schemaIn } from './database-check.ts'
import { acceptChanges, type ChangeCount, changeCountIn, missingText, readChangeNote } from './engines/change-note.ts'
import { forSqlite } from './engines/dialect.ts'
import { assertion, type EpochFence } from './engines/postgres.ts'
import { answer, connectionConfig } from './engines/postgres-connection.ts'
import { errorFromPostgres } from './engines/postgres-errors.ts'
import { damageMessage, errorFromSqlite } from './engines/sqlite-errors.ts'
import { checkChain } from './operations/audit/audit-chain.ts'
import { awaitSteps, perform, query, runSteps, type Steps } from './operations/operation.ts'
import { COUNTS } from './schema/initial/queue-counts.ts'
import { newestSchema, type SchemaState, schemaProblem } from './schema/schema-state.ts'
import { type ChainPlaceRow, findAnchor, readWhole, type WholeEntryRow } from './tables/audit.ts'
import { ALIVE, STEP_BACK } from './tables/guards.ts'
import type { Row, Statement } from './tables/statement.ts'
import { readSummed } from './tables/summed-text.ts'

/** Something that is wrong. */
export interface Flaw {
  /** A sentence without a full stop. */
  readonly problem: string
  /** The step of a repair or of a person. */
  readonly remedy: string
  /** True where a repair fixes it. */
  readonly mends: boolean
}

/** The schema and the flaws of a database. */
export interface Audit {
  readonly schema: SchemaState | null
  readonly flaws: readonly Flaw[]
}

/** Limit of named things. */
const NAMED = 5

/**
 * Looks for flaws in the file of an embedded database, in one transaction beside a server that may be running.
 * @param repair true to fix the flaws that can be fixed, in the same transaction; no server may run on the file then
 * @param nowMs instant at which jobs that are given back begin to wait
 * @throws AppError `unavailable` when the file cannot be read
 */
export function auditFile(file: string, repair: boolean, nowMs: number): Audit {
  // Before the database, whose changes are noted once it has them.
  const noted = readChangeNote(file)
  try {
    using database = new DatabaseSync(file, { readOnly: !repair, timeout: 5_000 })
    const damage = damageIn(database)
    // The rows of a damaged file are not reliable.
    if (damage.length > 0) return { schema: null, flaws: damage }
    database.exec(repair ? 'PRAGMA foreign_keys = ON; BEGIN IMMEDIATE' : 'BEGIN')
    const schema = schemaIn(database)
    const refused = otherSchema(schema)
    if (refused !== null) return { schema, flaws: [refused] }
    const count = changeCountIn(database)
    const flaws = [
      ...lostChanges(noted, count),
      ...orphans(database, repair),
      ...runSteps(audits(repair, nowMs), each => runStatement(database, each)),
    ]
    database.exec('COMMIT')
    if (repair && count !== null) acceptChanges(file, count)
    return { schema, flaws }
  } catch (error) {
    throw errorFromSqlite(error)
  }
}

/**
 * As {@link auditFile}, for a PostgreSQL. PostgreSQL itself ensures that its rows refer to existing rows.
 * @param fence the epoch in which flaws are fixed; null to look only, beside a server that may be running
 * @throws AppError `unavailable` when it cannot be read
 */
export async function auditPostgres(url: string, fence: EpochFence | null, nowMs: number): Promise<Audit> {
  const { query_timeout: _, statement_timeout: __, ...config } = connectionConfig(url)
  // All jobs are counted, which may take long.
  const client = new Client({ ...config, application_name: 'runyard check' })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ${fence === null ? ' READ ONLY' : ''}`)
    if (fence !== null) await answer(client, assertion(fence))
    const schema = await schemaAt(client)
    const refused = otherSchema(schema)
    if (refused !== null) return { schema, flaws: [refused] }
    const flaws = await awaitSteps(audits(fence !== null, nowMs), each => answer(client, each))
    await client.query('COMMIT')
    return { schema, flaws }
  } catch (error) {
    throw errorFromPostgres(error)
  } finally {
    await client.end().catch(() => {})
  }
}

function runStatement(database: DatabaseSync, { sql, params }: Statement): readonly Row[] {
  return database.prepare(forSqlite(sql)).all(...(params as (string | number | null)[])) as unknown as readonly Row[]
}

/**
 * Changes that were on stable storage and are not in the database. Nothing brings them back but the files as they
 * were.
 */
function lostChanges(noted: ChangeCount | null, count: ChangeCount | null): Flaw[] {
  const problem = missingText(noted, count)
  return problem === null ? [] : [{ problem, remedy: 'go on with the changes that are left', mends: true }]
}

/** This program knows the rows of its own schema alone. */
function otherSchema(schema: SchemaState | null): Flaw | null {
  if (schema === null) return { problem: 'it has no schema yet', remedy: 'start a server on it', mends: false }
  const refusal = schemaProblem(schema)
  if (refusal !== null) return { problem: refusal, remedy: 'check it with that version', mends: false }
  if (schema.version === newestSchema()) return null
  const { version, writtenBy } = schema
  return {
    problem: `the database has schema ${version}, of Runyard ${writtenBy}, and this version knows ${newestSchema()}`,
    remedy: `check it with Runyard ${writtenBy}, or after the upgrade`,
    mends: false,
  }
}

function damageIn(database: DatabaseSync): Flaw[] {
  return checkIntegrity(database).map(text => ({
    problem: `the file is damaged: ${text}`,
    remedy: 'restore a backup into a new folder with runyard restore',
    mends: false,
  }))
}

function checkIntegrity(database: DatabaseSync): string[] {
  try {
    const rows = database.prepare(`PRAGMA integrity_check(${NAMED})`).all()
    return rows.map(row => String(row.integrity_check)).filter(text => text !== 'ok')
  } catch (error) {
    // The database cannot even look for faults.
    const damage = damageMessage(error)
    if (damage === null) throw error
    return [damage]
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

/** Flaws that are looked for in either database. */
function* audits(repair: boolean, nowMs: number): Steps<Flaw[]> {
  return [
    ...(yield* holders(repair, nowMs)),
    ...(yield* counts(repair)),
    ...(yield* releases()),
    ...(yield* sharedGpus()),
    ...(yield* brokenChain()),
    ...(yield* changedTexts()),
  ]
}

const HELD_BY_NOBODY = `status = 'IN_PROGRESS'
  AND NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = jobs.worker_id AND ${ALIVE})`

/** Jobs that run on workers that have ended or are not known. */
function* holders(repair: boolean, nowMs: number): Steps<Flaw[]> {
  const [row] = yield* query<{ held: number }>(`SELECT count(*) AS held FROM jobs WHERE ${HELD_BY_NOBODY}`)
  if (row?.held === 0) return []
  if (repair) {
    yield* perform(
      `UPDATE jobs SET ${STEP_BACK}, waiting_since_ms = $1,
        lost_attempts = CASE WHEN lost_attempts < attempt THEN lost_attempts + 1 ELSE attempt END WHERE ${HELD_BY_NOBODY}`,
      [nowMs],
    )
  }
  const problem = `${row?.held} jobs run on workers that have ended`
  return [{ problem, remedy: 'put them back into the queue', mends: true }]
}

const NAMES = Object.keys(COUNTS)
const COUNTED = `SELECT endpoint_id, ${Object.entries(COUNTS)
  .map(([name, condition]) => `count(*) FILTER (WHERE ${condition}) AS ${name}`)
  .join(', ')} FROM jobs GROUP BY endpoint_id`
const KEPT = `SELECT endpoint_id, ${NAMES.map(name => `sum(${name}) AS ${name}`).join(', ')} FROM queue_counts GROUP BY endpoint_id`
const DIFFERS = NAMES.map(name => `coalesce(kept.${name}, 0) <> coalesce(counted.${name}, 0)`).join(' OR ')
const WRONG_COUNTS = `SELECT endpoint_id FROM (${KEPT}) AS kept FULL JOIN (${COUNTED}) AS counted USING (endpoint_id)
  WHERE ${DIFFERS} ORDER BY endpoint_id`
const RECOUNT = `INSERT INTO queue_counts (endpoint_id, shard, owner, ${NAMES.join(', ')})
  SELECT counted.endpoint_id, 0, endpoint_ids.owner, ${NAMES.map(name => `counted.${name}`).join(', ')}
  FROM (${COUNTED}) AS counted JOIN endpoint_ids ON endpoint_ids.id = counted.endpoint_id WHERE counted.endpoint_id = $1`

/** Endpoints whose kept counts are not those of their jobs. */
function* counts(repair: boolean): Steps<Flaw[]> {
  const wrong = (yield* query<{ endpoint_id: string }>(WRONG_COUNTS)).map(row => row.endpoint_id)
  for (const id of repair ? wrong : []) {
    yield* perform('DELETE FROM queue_counts WHERE endpoint_id = $1', [id])
    yield* perform(RECOUNT, [id])
  }
  return wrong.map(id => ({
    problem: `the counts of waiting and running jobs of endpoint ${id} are wrong`,
    remedy: 'count them again',
    mends: true,
  }))
}

const WITHOUT_RELEASE = `SELECT id, version FROM endpoints
  WHERE NOT EXISTS (SELECT 1 FROM releases WHERE releases.endpoint_id = endpoints.id AND releases.version = endpoints.version)
  ORDER BY id`

/** Endpoints whose workers have no release to be started from. */
function* releases(): Steps<Flaw[]> {
  const rows = yield* query<{ id: string; version: number }>(WITHOUT_RELEASE)
  return rows.map(({ id, version }) => ({
    problem: `endpoint ${id} is at release ${version}, which is gone`,
    remedy: 'make a new release of it with any change of its image or variables',
    mends: false,
  }))
}

const PLACED = `SELECT id, placement FROM workers
  WHERE ${ALIVE} AND asleep_at_ms IS NULL AND placement IS NOT NULL AND platform IS NULL ORDER BY id`

/**
 * GPUs that several workers of this machine have, none of which sleeps, where not all have a share, or the shares are
 * larger than the GPU.
 */
function* sharedGpus(): Steps<Flaw[]> {
  const rows = yield* query<{ id: string; placement: string }>(PLACED)
  const heldGpus = rows.flatMap(({ id, placement }) =>
    (JSON.parse(placement) as Placement).gpus.map(({ index, memoryGb, shareMb }) => ({
      id,
      index,
      part: (shareMb ?? Number.POSITIVE_INFINITY) / (memoryGb * 1024),
    })),
  )
  const sharedGpus = [...Map.groupBy(heldGpus, ({ index }) => index)].filter(
    ([, holders]) => holders.length > 1 && holders.reduce((sum, { part }) => sum + part, 0) > 1,
  )
  return sharedGpus.map(([index, holders]) => ({
    problem: `GPU ${index} is held by ${holders.length} workers: ${holders
      .slice(0, NAMED)
      .map(({ id }) => id)
      .join(', ')}`,
    remedy: 'end all of them but one (runyard workers delete)',
    mends: false,
  }))
}

/** Texts that are read at once: where they are small, and where each may have megabytes. */
const SMALL_TEXTS = 500
const LARGE_TEXTS = 4

/** Texts with a checksum: their name, the statement for rows after a key, and the number of rows of one read. */
const SUMMED: readonly (readonly [what: string, sql: string, atOnce: number])[] = [
  ...(['input', 'output'] as const).flatMap(column => [
    [`${column}s of jobs`, selectTexts('jobs', 'id', column), SMALL_TEXTS] as const,
    [
      `large ${column}s of jobs`,
      selectTexts('job_payloads', 'job_id', 'text', `kind = '${column}'`),
      LARGE_TEXTS,
    ] as const,
    [`${column}s in the history`, selectTexts('job_records', 'id', column), LARGE_TEXTS] as const,
  ]),
  ['parts of large inputs and outputs of jobs', selectTexts('large_text_parts', 'id', 'text'), LARGE_TEXTS],
  ['inputs of batches', selectTexts('batch_requests', 'id', 'input'), LARGE_TEXTS],
]

function selectTexts(table: string, key: string, column: string, which = 'true'): string {
  return `SELECT ${key} AS key, ${column} AS text FROM ${table}
    WHERE ${key} > $1 AND ${column} IS NOT NULL AND ${which} ORDER BY ${key} LIMIT $2`
}

/** Inputs and results that changed since they were stored. */
function* changedTexts(): Steps<Flaw[]> {
  const flaws: Flaw[] = []
  for (const [texts, sql, atOnce] of SUMMED) {
    const changed: string[] = []
    let count = 0
    for (let after: string | null = ''; after !== null; ) {
      const rows: readonly { key: string; text: string }[] = yield* query<{ key: string; text: string }>(sql, [
        after,
        atOnce,
      ])
      for (const { key, text } of rows) {
        if (readSummed(text).isWhole) continue
        count += 1
        if (changed.length < NAMED) changed.push(key)
      }
      after = rows.length < atOnce ? null : rows.at(-1)!.key
    }
    if (count === 0) continue
    const problem = `${count} ${texts} are not what was stored: ${changed.join(', ')}${count > NAMED ? ', ...' : ''}`
    flaws.push({ problem, remedy: 'submit these jobs again, and look at the disk', mends: false })
  }
  return flaws
}

/** Entries of the audit log that are read at once. */
const ENTRIES = 1_000

/**
 * Entries of the audit log that changed since they were written. Their original text is unknown, so no repair fixes
 * them.
 */
function* brokenChain(): Steps<Flaw[]> {
  const [anchor] = yield* query<ChainPlaceRow>(findAnchor)
  let at: ChainPlace = anchor === undefined ? CHAIN_BEGIN : { sequence: anchor.sequence, hash: anchor.hash }
  for (;;) {
    const rows = yield* query<WholeEntryRow>(readWhole, [at.sequence, ENTRIES])
    const { last, broken } = checkChain(at, rows)
    if (broken !== null) {
      const problem = `the audit log is broken: ${broken.problem}`
      return [{ problem, remedy: 'compare it with an export or a backup', mends: false }]
    }
    if (rows.length < ENTRIES) return []
    at = last
  }
}
