/** Plans of PostgreSQL for the statements of the store: tables that grow with the jobs are read by their indexes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from 'pg'
import { forPostgres } from '../../src/store/engines/dialect.ts'
import { openPostgresStore } from '../../src/store/engines/postgres.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'
import { GROWING, inOrder, OF_JOBS, SMALL_INDEXES, statements, WHOLE } from '../support/store-statements.ts'

const ROWS = 20_000
/** Rows of tables that do not grow with the jobs. */
const FEW_ROWS = 500
/** Statements that may sort: what they read is bounded by a page. */
const OF_A_PAGE: ReadonlySet<string> = new Set([
  ...statements.map(([name]) => name).filter(name => /^(?:list of|deliveries by) /.test(name)),
  'listBatches',
  'listBatchesBefore',
])

/** Statements for which PostgreSQL reads an index in its order where a table has as few rows as here. */
const OF_FEW_ROWS: ReadonlySet<string> = new Set([
  'templatesOfEndpoints',
  'judgedReleases',
  'queuedWorkersOfThese',
  'deleteBlocksOfAccount',
])

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Filter?: string
  readonly Plans?: readonly Plan[]
}

/** A node, and whether it is read only as far as a LIMIT goes. */
interface PlanNode {
  readonly plan: Plan
  readonly isLimited: boolean
}

function nodes(plan: Plan, isLimited = false): PlanNode[] {
  const below = (isLimited && plan['Node Type'] !== 'Sort') || plan['Node Type'] === 'Limit'
  return [{ plan, isLimited }, ...(plan.Plans ?? []).flatMap(child => nodes(child, below))]
}

/** Values of columns that statements choose by; of others each row has its own. */
const VALUES: Readonly<Record<string, string>> = {
  endpoint_id: `'e' || i % 50`,
  owner: `'o' || i % 3`,
  queue: `''`,
  low_priority: 'i % 2',
  'jobs.batch_id': `CASE WHEN i % 10 = 0 THEN 'b' || i % 100 END`,
  // Few jobs are paused at once.
  'jobs.paused_at_ms': 'NULL::bigint',
  'jobs.status': `(ARRAY['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'FAILED'])[1 + i % 4]`,
  'large_texts.job_id': `CASE WHEN i % 10 > 0 THEN 'x' || i END`,
  'large_texts.record_id': `CASE WHEN i % 10 > 1 THEN 'x' || i END`,
  'workers.state': `(ARRAY['READY', 'EXITED'])[1 + i % 2]`,
  'webhook_deliveries.state': `(ARRAY['PENDING', 'DELIVERED'])[1 + i % 2]`,
}

/** Reads of these tables from their begin to their end. */
function wholeReads(name: string, all: readonly PlanNode[], tables: readonly string[]): string[] {
  return all.flatMap(({ plan, isLimited }) => {
    const { 'Relation Name': table = '', 'Index Name': index = '', 'Index Cond': condition, Filter: filter } = plan
    if (!tables.includes(table) || SMALL_INDEXES.includes(index) || name in WHOLE) return []
    const isWhole = plan['Node Type'].startsWith('Index') && condition === undefined
    // Nearly all of them have not expired.
    const isNearlyWhole = condition?.includes('expires_at_ms >') === true
    const reads = isNearlyWhole || plan['Node Type'] === 'Seq Scan' || (isWhole && (!isLimited || filter !== undefined))
    return reads ? [`${name} reads all of ${table}: ${plan['Node Type']} ${index}, ${filter}`] : []
  })
}

/** Fills all tables with rows that no rule has to hold for. */
async function fill(client: Client): Promise<void> {
  const { rows: rules } = await client.query(
    `SELECT conrelid::regclass AS relation, conname FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
      WHERE contype IN ('c', 'f') AND relnamespace = current_schema()::regnamespace`,
  )
  for (const { relation, conname } of rules) await client.query(`ALTER TABLE ${relation} DROP CONSTRAINT ${conname}`)
  const { rows: columns } = await client.query(
    `SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema()`,
  )
  for (const table of new Set<string>(columns.map(({ table_name }) => table_name))) {
    const own = columns.filter(({ table_name }) => table_name === table)
    const values = own.map(({ column_name, data_type }) => {
      const chosen = VALUES[`${table}.${column_name}`] ?? VALUES[column_name]
      return chosen ?? (data_type === 'text' ? `'x' || i` : 'i')
    })
    const count = OF_JOBS.includes(table) ? ROWS : FEW_ROWS
    await client.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`)
    await client.query(
      `INSERT INTO ${table} (${own.map(({ column_name }) => column_name).join(', ')})
        SELECT ${values.join(', ')} FROM generate_series(1, ${count}) AS i ON CONFLICT DO NOTHING`,
    )
  }
  await client.query('ANALYZE')
}

test('no statement reads through a table that grows, and the head of a queue is found without sorting', {
  skip: noPostgres,
}, async context => {
  const schema = await testSchema()
  await (await openPostgresStore({ url: schema.url })).close()
  const client = new Client({ connectionString: schema.url })
  await client.connect()
  context.after(async () => {
    await client.end()
    await schema.drop()
  })
  await fill(client)
  await client.query('SET plan_cache_mode = force_generic_plan')
  const problems: string[] = []
  for (const [name, sql] of statements) {
    const text = forPostgres(sql)
    const params = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, number]) => Number(number)))
    const given = params === 0 ? '' : `(${Array.from({ length: params }, () => 'NULL').join(', ')})`
    const read = async (isWholeAllowed: boolean) => {
      for (const way of ['seqscan', 'mergejoin', 'hashjoin'])
        await client.query(`SET enable_${way} = ${isWholeAllowed ? 'on' : 'off'}`)
      await client.query(`PREPARE statement AS ${text}`)
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE statement${given}`)
      await client.query('DEALLOCATE statement')
      return nodes(rows[0]['QUERY PLAN'][0].Plan as Plan)
    }
    const all = await read(true)
    problems.push(...wholeReads(name, all, OF_JOBS))
    // The other tables have few rows here, which PostgreSQL would rather read all.
    if (!OF_FEW_ROWS.has(name)) problems.push(...wholeReads(name, await read(false), GROWING))
    if (inOrder.has(name) && !OF_A_PAGE.has(name) && all.some(({ plan }) => plan['Node Type'] === 'Sort'))
      problems.push(`${name} sorts`)
  }
  assert.deepEqual(problems, [])
})
