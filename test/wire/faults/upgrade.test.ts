/**
 * A server of a later release takes over the data of an earlier one: it reports that, copies the data first, and
 * changes it wholly or not at all.
 */
import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { migrations } from '../../../src/store/schema/schema-state.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob, statusOf, submit } from '../support/client.ts'
import { workerProcesses } from '../support/processes.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { nextRelease, root, runCommand, type Server, startCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const from = migrations.at(-1)!.version
const to = from + 1
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string }
const step = (...statements: string[]) => ({ version: to, name: 'more', statements })
const MORE = 'CREATE TABLE more (id TEXT, owner TEXT)'
/** Takes longer than any test waits. */
const ENDLESS = `INSERT INTO more WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)
  SELECT hex(zeroblob(500)), 'me' FROM numbers LIMIT 2000000000`
const later = nextRelease('9.9.9', [step(MORE)])
const endless = nextRelease('9.9.9', [step(MORE, ENDLESS)])

const serve = (dataDir: string, env: Record<string, string> = {}, ...args: string[]) =>
  runCommand(['serve', '--port', '0', '--data-dir', dataDir, '--json', ...args], env)

function schemaOf(dataDir: string): object {
  using database = new DatabaseSync(join(dataDir, 'runyard.sqlite'), { readOnly: true })
  const more = database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'more'`).get() !== undefined
  const newest = database.prepare('SELECT version, program FROM migrations ORDER BY version DESC').get()
  return { ...newest, more }
}

/** A data directory of the present release, with a job that waits. */
async function ofPresent(): Promise<{ server: Server; dataDir: string; endpoint: string; job: string }> {
  const server = await startServer({ dataDir: temporaryFolder() })
  const { id: endpoint } = await silentEndpoint(server)
  const job = await submit(server, endpoint, { kept: true })
  return { server, dataDir: server.dataDir, endpoint, job }
}

test('a database of an earlier release is copied, then changed, and both are reported; the copy restores it', async () => {
  const { server, dataDir, endpoint, job } = await ofPresent()
  await server.kill9()
  const upgraded = await startServer({ dataDir, env: later })
  const [changing] = upgraded.events('schema.changing')
  const copy = String(changing?.backup)
  assert.deepEqual([changing?.from, changing?.to, changing?.writtenBy, changing?.version], [from, to, version, '9.9.9'])
  assert.equal(upgraded.events('schema.changed').length, 1)
  assert.match(copy, new RegExp(`^${dataDir}/backups/runyard-${version}-schema-${from}-\\d{8}T\\d{6}Z\\.sqlite$`))
  assert.equal(statSync(copy).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(join(dataDir, 'backups')).length, 1, 'nothing is left beside it')
  assert.equal((await statusOf(upgraded, endpoint, job)).status, 'IN_QUEUE')
  assert.deepEqual(schemaOf(dataDir), { version: to, program: '9.9.9', more: true })
  await upgraded.stop()

  const refused = await serve(dataDir)
  assert.equal(refused.code, 69)
  assert.match(refused.stderr, new RegExp(`made by a newer version of Runyard, 9\\.9\\.9 \\(its schema is ${to}`))
  assert.match(refused.stderr, /start Runyard 9\.9\.9, or restore a backup from before the upgrade/)
  const checked = await runCommand(['check', '--data-dir', dataDir])
  assert.equal(checked.code, 65)
  assert.match(checked.stdout, /made by a newer version of Runyard, 9\.9\.9.*to do: check it with that version/)
  assert.deepEqual(schemaOf(dataDir), { version: to, program: '9.9.9', more: true })

  // As docs/guides/upgrade.md says.
  for (const end of ['', '-wal', '-shm']) rmSync(join(dataDir, `runyard.sqlite${end}`), { force: true })
  cpSync(copy, join(dataDir, 'runyard.sqlite'))
  const back = await startServer({ dataDir })
  assert.equal((await statusOf(back, endpoint, job)).status, 'IN_QUEUE')
  assert.deepEqual([back.apiKey, back.events('schema.changing')], [server.apiKey, []])
})

test('a backup of a newer release is refused with its version, and one of an older release is restored and upgraded', async () => {
  const { server, dataDir, endpoint, job } = await ofPresent()
  const folder = temporaryFolder()
  const env = { RUNYARD_BACKUP_PASSPHRASE: 'a passphrase of tests' }
  const backup = async (of: string, name: string) => {
    const made = await runCommand(['backup', join(folder, name), '--data-dir', of], env)
    assert.equal(made.code, 0, made.stderr)
  }
  await backup(dataDir, 'old')
  await server.kill9()
  const upgraded = await startServer({ dataDir, env: later })
  await backup(dataDir, 'new')
  await upgraded.stop()
  const refused = await runCommand(['restore', join(folder, 'new'), '--data-dir', join(folder, 'nothing')], env)
  assert.equal(refused.code, 65)
  assert.match(refused.stderr, /made by a newer version of Runyard, 9\.9\.9/)
  assert.ok(!existsSync(join(folder, 'nothing/runyard.sqlite')))
  const fresh = join(folder, 'fresh')
  assert.equal((await runCommand(['restore', join(folder, 'old'), '--data-dir', fresh], env)).code, 0)
  const restored = await startServer({ dataDir: fresh, env: later })
  assert.equal((await statusOf(restored, endpoint, job)).status, 'IN_QUEUE')
  assert.deepEqual(schemaOf(fresh), { version: to, program: '9.9.9', more: true })
})

test('a server that is killed in the middle of a change has changed nothing', async () => {
  const { server, dataDir, endpoint, job } = await ofPresent()
  await server.kill9()
  const changing = startCommand(['serve', '--port', '0', '--data-dir', dataDir], endless)
  const wal = join(dataDir, 'runyard.sqlite-wal')
  // The change is written while it goes on, and is no more than that.
  await until(
    'the change to be in its middle',
    () => (statSync(wal, { throwIfNoEntry: false })?.size ?? 0) > 20_000_000,
  )
  await changing.kill9()
  const back = await startServer({ dataDir })
  assert.equal((await statusOf(back, endpoint, job)).status, 'IN_QUEUE')
  assert.deepEqual(schemaOf(dataDir), { version: from, program: version, more: false })
  assert.equal(readdirSync(join(dataDir, 'backups')).length, 1)
})

test('without a copy nothing is changed: it says why, and goes on when a person says so', async () => {
  const { server, dataDir, endpoint, job } = await ofPresent()
  await server.kill9()
  const backups = join(dataDir, 'backups')
  writeFileSync(backups, 'no folder')
  const refused = await serve(dataDir, later)
  assert.equal(refused.code, 69)
  assert.match(
    refused.stderr,
    new RegExp(`has schema ${from}, of Runyard ${version}, and this version changes it to schema ${to}`),
  )
  assert.match(refused.stderr, new RegExp(`no copy of it could be made before in ${backups}: .*; nothing was changed`))
  const gone = await serve(dataDir, later, '--backup-folder', join(dataDir, 'gone'), '--backup-without-keys')
  assert.match(gone.stderr, /no copy of it could be made before in .*gone: there is no folder/)
  assert.deepEqual(schemaOf(dataDir), { version: from, program: version, more: false })
  const doctor = await runCommand(['doctor', '--data-dir', dataDir, '--docker', 'off', '--json'], later)
  assert.match(doctor.stdout, new RegExp(`schema ${from} of Runyard ${version}, which the next start changes to ${to}`))
  const other = await serve(dataDir, { ...later, RUNYARD_MIGRATE_TO: String(to + 1) })
  assert.equal(other.code, 69, 'the permission is for one schema')
  const upgraded = await startServer({ dataDir, env: { ...later, RUNYARD_MIGRATE_TO: String(to) } })
  assert.equal(upgraded.events('schema.changing')[0]?.backup, null)
  assert.equal((await statusOf(upgraded, endpoint, job)).status, 'IN_QUEUE')
})

test('workers of the earlier release go on after the upgrade', async () => {
  const server = await startServer({ dataDir: temporaryFolder() })
  const { dataDir } = server
  const settings = { workersMin: 1, workersMax: 1 }
  const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings })
  const before = await runJob(server, endpoint, { name: 'before' })
  await server.kill9()
  const pids = workerProcesses(dataDir).map(({ pid }) => pid)
  assert.ok(pids.length > 0)
  const upgraded = await startServer({ dataDir, env: later })
  const after = await runJob(upgraded, endpoint, { name: 'after' })
  assert.deepEqual([after.status, after.workerId], ['COMPLETED', before.workerId])
  assert.deepEqual(
    workerProcesses(dataDir).map(({ pid }) => pid),
    pids,
  )
})
