/** A server that makes backups by itself, and PostgreSQL that comes back from the commands that are printed. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, statusOf, submit, whenFinal } from '../support/client.ts'
import { noPostgresPrograms, startPostgres } from '../support/postgres.ts'
import { killAll } from '../support/processes.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { root, runCommand, type Server, startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const passphrase = 'a passphrase of tests'
const env = { RUNYARD_BACKUP_PASSPHRASE: passphrase }
const programs = process.env.RUNYARD_TEST_POSTGRES_BIN ?? ''

const madeBy = (server: Server, count = 1) =>
  until('a backup', () => {
    const made = server.events('backup.made')
    return made.length >= count ? String(made.at(-1)!.file) : undefined
  })

test('a server makes a backup at once, no backup at a restart, and the next one when it is due; remains of a crash are removed', async () => {
  const dataDir = temporaryFolder()
  const folder = temporaryFolder()
  const args = ['--backup-folder', folder, '--backup-every', '1', '--backup-keep', '1']
  const server = await startServer({ dataDir, args, env })
  const first = await madeBy(server)
  assert.equal(statSync(first).mode & 0o777, 0o600)
  const { id: endpoint } = await silentEndpoint(server)
  const job = await submit(server, endpoint, {})
  const text = await (
    await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.apiKey}` } })
  ).text()
  assert.match(text, /^runyard_backup_interval_seconds 3600$/m)
  assert.match(text, new RegExp(`^runyard_backup_bytes ${statSync(first).size}$`, 'm'))
  await server.kill9()

  const half = ['runyard-scheduled-00ff.new', 'runyard-scheduled-01.new'].map(name => join(folder, name))
  for (const file of half) writeFileSync(file, 'half')
  mkdirSync(join(dataDir, 'backup'))
  writeFileSync(join(dataDir, 'backup', 'runyard.sqlite'), 'half')
  const again = await startServer({ dataDir, args, env })
  const [scheduled] = await until('the schedule', () => {
    const said = again.events('backup.scheduled')
    return said.length > 0 ? said : undefined
  })
  assert.equal(scheduled?.bytes, statSync(first).size)
  assert.deepEqual([readdirSync(folder), again.events('backup.made')], [[basename(first)], []])
  assert.ok(!existsSync(join(dataDir, 'backup')))
  await again.kill9()

  renameSync(first, join(folder, 'runyard-20200101T000000Z.backup'))
  const late = await startServer({ dataDir, args, env })
  const second = await madeBy(late)
  assert.deepEqual(readdirSync(folder), [basename(second)], 'the old one went')
  const findings = (await ask(late, '/v2/machine/diagnosis')).json.findings as { check: string; state: string }[]
  assert.equal(findings.find(({ check }) => check === 'backups')?.state, 'ok')
  await late.kill9()

  const restored = join(temporaryFolder(), 'restored')
  assert.equal((await runCommand(['restore', second, '--data-dir', restored], env)).code, 0)
  const back = await startServer({ dataDir: restored })
  assert.equal((await statusOf(back, endpoint, job)).status, 'IN_QUEUE')
})

test('without a passphrase it does not start, and a folder that is gone is said while the server goes on', async () => {
  const refused = await runCommand(['serve', '--port', '0', '--data-dir', temporaryFolder(), '--backup-folder', '/x'])
  assert.equal(refused.code, 64)
  assert.match(refused.stderr, /--backup-folder needs a passphrase for the keys/)
  const folder = temporaryFolder()
  rmSync(folder, { recursive: true })
  const server = await startServer({ args: ['--backup-folder', folder, '--backup-without-keys'] })
  const [failed] = await until('the failure', () => {
    const said = server.events('backup.failed')
    return said.length > 0 ? said : undefined
  })
  assert.equal(failed?.problem, `there is no folder ${folder}; make it, or mount what belongs there`)
  assert.equal((await ask(server, '/readyz')).status, 200)
  assert.deepEqual(await server.stop(), { code: 0, signal: null })
})

/** Runs a command as it was printed, with the programs of the tests, as a person would paste it. */
const paste = (command: string) =>
  promisify(execFile)('/bin/sh', ['-c', command.trim()], { env: { PATH: `${programs}:/bin:/usr/bin` } })

describe('backups of a PostgreSQL', { skip: noPostgresPrograms, concurrency: 2 }, () => {
  const load = async (server: Server) => {
    const settings = { workersMin: 2, workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
    const endpoint = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings })
    const acknowledged: string[] = []
    let over = false
    const client = async () => {
      while (!over) {
        acknowledged.push(await submit(server, endpoint, { name: `job ${acknowledged.length}` }))
        // All of them have to be done on the restored server.
        await sleep(100)
      }
    }
    const clients = Array.from({ length: 2 }, client)
    const end = async () => {
      over = true
      await Promise.all(clients)
    }
    const completed = () => server.events('job.moved').filter(({ to }) => to === 'COMPLETED')
    await until('some results', () => completed().length > 30)
    return { endpoint, acknowledged, end }
  }

  /** Every job exists with its result, on an empty database and an empty folder. */
  async function drill(file: string, restore: (empty: string) => Promise<unknown>, endpoint: string, before: string[]) {
    const empty = await startPostgres()
    await restore(empty.url)
    const dataDir = join(temporaryFolder(), 'restored')
    const result = await runCommand(['restore', file, '--data-dir', dataDir], env)
    assert.equal(result.code, 0, result.stderr)
    assert.match(result.stdout, /Its database is PostgreSQL at .*: restore it with pg_restore into an empty one\n/)
    assert.ok(result.stdout.includes(` '${file}.dump'\nand start with the address of that one in RUNYARD_DATABASE`))
    const checked = await runCommand(['check', '--data-dir', dataDir], { RUNYARD_DATABASE: empty.url })
    assert.equal(checked.code, 0, checked.stdout)
    const server = await startServer({ dataDir, env: { RUNYARD_DATABASE: empty.url } })
    for (const id of before) {
      const job = await whenFinal(server, endpoint, id, 60_000)
      assert.deepEqual([job.status, job.output !== undefined], ['COMPLETED', true], JSON.stringify(job))
    }
    await server.stop()
  }

  test('every job that was acknowledged before is there after exactly the commands that runyard backup prints', async () => {
    const postgres = await startPostgres()
    const server = await startServer({ env: { RUNYARD_DATABASE: postgres.url } })
    const { endpoint, acknowledged, end } = await load(server)
    const before = [...acknowledged]
    const file = join(temporaryFolder(), 'nightly.backup')
    const made = await runCommand(['backup', file, '--data-dir', server.dataDir], env)
    assert.equal(made.code, 0, made.stderr)
    const [dump, restore] = made.stdout.split('\n').filter(line => /^ {2}pg_/.test(line))
    await paste(dump!)
    await end()
    assert.ok(acknowledged.length > before.length, 'clients were served meanwhile')
    await server.kill9()
    killAll(server.dataDir)
    await postgres.kill9()
    await drill(file, url => paste(restore!.replace(postgres.url, url)), endpoint, before)
  })

  test('with --backup-pg-dump the server makes both, and every job that was acknowledged before is there', async () => {
    const postgres = await startPostgres()
    const folder = temporaryFolder()
    const dataDir = temporaryFolder()
    const settings = { ...env, RUNYARD_DATABASE: postgres.url }
    const server = await startServer({ dataDir, env: settings })
    const { endpoint, acknowledged, end } = await load(server)
    await end()
    await server.kill9()
    const args = ['--backup-folder', folder, '--backup-pg-dump', join(programs, 'pg_dump')]
    const next = await startServer({ dataDir, args, env: settings })
    const file = await madeBy(next)
    assert.deepEqual(readdirSync(folder).sort(), [basename(file), `${basename(file)}.dump`])
    assert.equal(statSync(`${file}.dump`).mode & 0o777, 0o600)
    await next.kill9()
    killAll(dataDir)
    await postgres.kill9()
    const restore = (url: string) =>
      paste(`pg_restore --single-transaction --no-owner --dbname='${url}' '${file}.dump'`)
    await drill(file, restore, endpoint, acknowledged)
  })

  test('without pg_dump the server reports that no backup has the database, and prints the command', async () => {
    const postgres = await startPostgres()
    const folder = temporaryFolder()
    const args = ['--backup-folder', folder, '--backup-without-keys']
    const server = await startServer({ args, env: { RUNYARD_DATABASE: postgres.url } })
    atEnd(() => server.kill9())
    const file = await madeBy(server)
    const said = server.lines.find(line => line.includes('the scheduled backups have no database')) ?? ''
    await paste((JSON.parse(said) as { command: string }).command)
    assert.deepEqual(readdirSync(folder).sort(), ['database.dump', basename(file)])
  })
})
