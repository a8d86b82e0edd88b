/** Days of the same load, in virtual time: what the server keeps stays the same, and so does the size of its file. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { sqliteStoreOn } from '../../../src/store/engines/sqlite.ts'
import { MAX_JOURNAL_BYTES, SqliteEngine } from '../../../src/store/engines/sqlite-engine.ts'
import { InlineHost } from '../../../src/store/engines/sqlite-inline.ts'
import { Rig } from '../../support/rig.ts'

const HOUR_MS = 3_600_000
const DAYS = 5
/**
 * The tables that grow by design, to a known size, each with its rows an hour at most: for 400 days, or for 7 and 90.
 */
const ROWS_AN_HOUR: Readonly<Record<string, number>> = { job_hours: 1, worker_hours: 1, metric_buckets: 61 }

async function openOnFile(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-steady-'))
  const file = join(folder, 'db')
  const engine = new SqliteEngine({ file })
  const store = sqliteStoreOn(new InlineHost(engine))
  const rig = new Rig(store, { jobRecords: { keptMs: 24 * HOUR_MS }, audit: { keptMs: 24 * HOUR_MS } })
  await rig.start()
  context.after(async () => {
    await rig.crash()
    await store.close()
    rmSync(folder, { recursive: true })
  })
  return { rig, engine, file }
}

const BODY = { input: { text: 'x'.repeat(6_000) } }

/** An hour in which a bit of everything happens. */
async function hour(rig: Rig, endpoint: EndpointId, n: number): Promise<void> {
  const submit = async (extra: object = {}) => rig.submit(endpoint, { ...BODY, ...extra })
  const run = `/v2/${endpoint}/run`
  const headers = { 'idempotency-key': `hour ${n}` }
  const idempotent = (await rig.ask('POST', run, { body: BODY, headers })).json.id
  const [hooked, streamed, failing, lost] = [
    await submit({ webhook: 'http://receiver.example/done' }),
    await submit(),
    await submit({ webhook: 'http://receiver.example/done' }),
    await submit(),
  ]
  const purged = await submit()
  await rig.clock.advance(100)
  const worker = rig.worker(-1)
  for (const id of [idempotent, hooked]) {
    assert.equal(await worker.takeJob(), id)
    await worker.done(id, { output: 'y'.repeat(9_000) })
  }
  assert.equal(await worker.takeJob(), streamed)
  for (let chunk = 0; chunk < 5; chunk += 1) await worker.chunk(streamed, { output: 'z'.repeat(2_000) })
  await worker.done(streamed)
  await worker.done(streamed)
  assert.equal(await worker.takeJob(), failing)
  await worker.done(failing, { error: 'broken' })
  assert.equal(await worker.takeJob(), lost)
  await rig.ask('POST', `/v2/${endpoint}/purge-queue`)
  assert.equal((await rig.status(endpoint, purged)).json.status, 'CANCELLED')
  await rig.ask('GET', `/v2/serverless/${endpoint}`)
  rig.print(worker.id, 'a line')
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(5_000)
  assert.equal(await rig.worker(-1).takeJob(), lost)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${lost}`)
  await rig.clock.advance(10_000)
  await rig.clock.leap(HOUR_MS - 25_000)
  await rig.clock.advance(9_000)
}

test('days of steady load leave neither more rows, nor more outputs of workers, nor a larger file', async t => {
  const { rig, engine, file } = await openOnFile(t)
  const rows = (sql: string) => engine.database.prepare(sql).all() as Record<string, number | string>[]
  const tables = rows(`SELECT name FROM sqlite_master WHERE type = 'table'`).map(({ name }) => String(name))
  const count = () => new Map(tables.map(name => [name, Number(rows(`SELECT COUNT(*) AS n FROM ${name}`)[0]!.n)]))
  const pages = () => Number(rows('PRAGMA page_count')[0]!.page_count)
  const endpoint = await rig.endpoint({ workersMin: 1, workersMax: 2 })
  await rig.clock.advance(100)
  const seen: { rows: Map<string, number>; pages: number; outputs: number }[] = []
  const before = (await rig.store.endpoints.snapshot(endpoint))!.counters
  for (let n = 0; n < DAYS * 24; n += 1) {
    await hour(rig, endpoint, n)
    if (n % 24 === 23) seen.push({ rows: count(), pages: pages(), outputs: rig.logs.workers().length })
  }
  const { completed, failed } = (await rig.store.endpoints.snapshot(endpoint))!.counters
  assert.deepEqual([completed - before.completed, failed - before.failed], [DAYS * 24 * 3, DAYS * 24])
  const [second, last] = [seen[1]!, seen.at(-1)!]
  for (const name of tables) {
    const [then, now] = [second.rows.get(name)!, last.rows.get(name)!]
    const most = (ROWS_AN_HOUR[name] ?? 0) * ((DAYS - 2) * 24 + 1)
    if (most > 0) assert.ok(now - then <= most, `${name}: ${then} rows, then ${now}`)
    else assert.ok(now <= then + 4, `${name}: ${then} rows after two days, ${now} after ${DAYS}`)
  }
  for (const name of [
    'jobs',
    'chunks',
    'diagnostics',
    'idempotency_keys',
    'workers',
    'webhook_deliveries',
    'job_hours',
    'job_records',
    'audit_entries',
    'metric_buckets',
  ]) {
    assert.ok(last.rows.get(name)! > 0 || ['jobs', 'chunks', 'diagnostics'].includes(name), `${name} was not tried`)
  }
  assert.ok(last.outputs <= second.outputs + 2, `${second.outputs} outputs of workers, then ${last.outputs}`)
  const sizes = seen.map(day => day.pages).join(', ')
  assert.ok(last.pages <= second.pages * 1.02 + 16, `pages after each day: ${sizes}`)
  assert.ok(statSync(`${file}-wal`).size <= MAX_JOURNAL_BYTES)
})
