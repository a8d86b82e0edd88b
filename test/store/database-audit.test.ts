/** The check of an embedded database: a whole one passes, each flaw is named, and a repair leaves no flaw. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { auditFile } from '../../src/store/database-audit.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-audit-'))
after(() => rmSync(root, { recursive: true, force: true }))

const NOW = 5_000
const JOB = `INSERT INTO jobs (id, owner, endpoint_id, kind, status, low_priority, position, execution_timeout_ms, ttl_ms, retention_ms,
  queued_at_ms, started_at_ms, deadline_ms, expires_at_ms, attempt, lost_attempts, streamed_seq, worker_id, input_bytes)
  VALUES (?, 'me', 'e', 'run', ?, 0, 1, 1, 1, 1, 1, ?, ?, 9, 1, 0, 0, ?, 0)`

/** A database with a job that waits and one that runs on a worker that is not known. */
async function makeDatabase(name: string): Promise<{ file: string; change(statement: string): void }> {
  const file = join(root, `${name}.sqlite`)
  await (await openSqliteStore({ file, host: 'inline' })).close()
  const change = (statement: string) => {
    using database = new DatabaseSync(file, { enableForeignKeyConstraints: false })
    database.exec(statement)
  }
  change(`INSERT INTO endpoint_ids (id, owner) VALUES ('e', 'me')`)
  using database = new DatabaseSync(file)
  database.prepare(JOB).run('waits', 'IN_QUEUE', null, null, null)
  return { file, change }
}

const problems = (file: string, repair = false) => auditFile(file, repair, NOW).flaws.map(({ problem }) => problem)

test('a database that is whole has no flaws', async () => {
  const { file } = await makeDatabase('whole')
  assert.deepEqual(problems(file), [])
})

test('wrong counts, orphans and jobs of ended workers are named, and repaired only on request', async () => {
  const { file, change } = await makeDatabase('flawed')
  {
    using database = new DatabaseSync(file)
    database.prepare(JOB).run('runs', 'IN_PROGRESS', 2, 3, 'ended')
  }
  change(`UPDATE queue_counts SET queued = 7;
    INSERT INTO chunks (job_id, seq, owner, total_bytes, chunk) VALUES ('gone', 1, 'me', 1, '1')`)
  const expected = [
    '1 rows of chunks belong to rows of jobs that are gone',
    '1 jobs run on workers that have ended',
    'the counts of waiting and running jobs of endpoint e are wrong',
  ]
  assert.deepEqual(problems(file), expected)
  assert.deepEqual(problems(file), expected, 'a check changes nothing')
  assert.deepEqual(problems(file, true), expected)
  assert.deepEqual(problems(file), [])
  using database = new DatabaseSync(file)
  const job = database.prepare(`SELECT status, lost_attempts, waiting_since_ms FROM jobs WHERE id = 'runs'`).get()
  assert.deepEqual({ ...job }, { status: 'IN_QUEUE', lost_attempts: 1, waiting_since_ms: NOW })
  assert.equal(database.prepare('SELECT queued FROM queue_counts').get()?.queued, 2)
})

test('a damaged file is named, and no repair touches it', async () => {
  const { file } = await makeDatabase('damaged')
  const bytes = readFileSync(file)
  bytes.fill(0xff, bytes.length - 8_192)
  writeFileSync(file, bytes)
  const [flaw] = auditFile(file, true, NOW).flaws
  assert.match(flaw?.problem ?? '', /the file is damaged/)
  assert.deepEqual([flaw?.mends, flaw?.remedy], [false, 'restore a backup into a new folder with runyard restore'])
  assert.deepEqual(readFileSync(file), bytes)
})
