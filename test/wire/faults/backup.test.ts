/** A server that is lost with its machine comes back from a backup that was made while it worked. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, submit, whenFinal } from '../support/client.ts'
import { killAll } from '../support/processes.ts'
import { root, runCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`
const WHOLE = /^the database is whole \(schema 1, of Runyard \S+\)\n$/
const PASSPHRASE = 'a passphrase of tests'
const env = { RUNYARD_BACKUP_PASSPHRASE: PASSPHRASE }

test('every job that was acknowledged before a backup began is there after its restore, with its result', async () => {
  const dataDir = temporaryFolder()
  const server = await startServer({ dataDir })
  const settings = { workersMin: 2, workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 1 }
  const endpoint = await makeEndpoint(server, { folder, settings })
  const acknowledged: string[] = []
  let over = false
  const client = async () => {
    while (!over) acknowledged.push(await submit(server, endpoint, { name: `job ${acknowledged.length}` }))
  }
  const clients = Array.from({ length: 4 }, client)
  const completed = () => server.events('job.moved').filter(({ to }) => to === 'COMPLETED')
  await until('some results', () => completed().length > 100)

  const before = [...acknowledged]
  const done = new Set(completed().map(({ jobId }) => String(jobId)))
  const backups = temporaryFolder()
  const file = join(backups, 'first.backup')
  const made = await runCommand(['backup', file, '--with-logs', '--data-dir', dataDir], env)
  assert.deepEqual([made.code, made.stderr], [0, ''])
  assert.match(made.stdout, /has the server as of/)
  assert.ok(acknowledged.length > before.length, 'clients were served meanwhile')
  over = true
  await Promise.all(clients)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const key = readFileSync(join(dataDir, 'encryption-key'))
  const bytes = readFileSync(file)
  assert.ok(!bytes.includes(server.apiKey) && !bytes.includes(key), 'no key is in it that anybody can read')
  assert.ok(!existsSync(join(dataDir, 'backup')), 'nothing is left over')
  const again = await runCommand(['backup', file, '--data-dir', dataDir], env)
  assert.equal(again.code, 64)
  await server.kill9()
  killAll(dataDir)

  const restored = join(backups, 'restored')
  const wrong = await runCommand(['restore', file, '--data-dir', restored], {
    RUNYARD_BACKUP_PASSPHRASE: 'not this one',
  })
  assert.equal(wrong.code, 65)
  assert.match(wrong.stderr, /the passphrase is another one/)
  assert.ok(!existsSync(join(restored, 'runyard.sqlite')))
  const fresh = restored
  const result = await runCommand(['restore', file, '--data-dir', fresh], env)
  assert.deepEqual([result.code, result.stderr], [0, ''])
  assert.ok(!existsSync(join(fresh, 'installation')), 'it is no owner of the containers of the server')

  const checked = await runCommand(['check', '--data-dir', fresh])
  assert.equal(checked.code, 0)
  assert.match(checked.stdout, WHOLE)
  const second = await startServer({ dataDir: fresh })
  assert.equal(second.apiKey, server.apiKey)
  assert.ok(done.size > 100 && before.length > done.size)
  for (const id of done) assert.equal((await ask(second, `/v2/${endpoint}/status/${id}`)).json.status, 'COMPLETED')
  for (const id of before) {
    const job = await whenFinal(second, endpoint, id, 60_000)
    assert.equal(job.status, 'COMPLETED', JSON.stringify(job))
    assert.ok(job.output !== undefined, 'with its result')
  }
})

test('a backup is for the operator alone, and a restore takes neither a full folder nor a damaged file', async () => {
  const dataDir = temporaryFolder()
  const server = await startServer({ dataDir })
  const backups = temporaryFolder()
  const file = join(backups, 'plain.backup')
  const checked = await runCommand(['check', '--data-dir', dataDir])
  assert.equal(checked.code, 0)
  assert.match(checked.stdout, WHOLE)
  const repair = await runCommand(['check', '--repair', '--data-dir', dataDir])
  assert.match(repair.stderr, /is in use by the server with pid/)
  const without = await runCommand(['backup', file, '--data-dir', dataDir])
  assert.equal(without.code, 64)
  assert.match(without.stderr, /the keys need a passphrase/)
  const short = await runCommand(['backup', file, '--data-dir', dataDir], { RUNYARD_BACKUP_PASSPHRASE: 'short' })
  assert.match(short.stderr, /12 to 1024 characters/)
  assert.ok(!existsSync(file))
  const stranger = await fetch(`${server.url}/ops/backup`, { method: 'POST', body: '{"passphrase":null}' })
  assert.equal(stranger.status, 401)
  const account = (await ask(server, '/v2/account/accounts', { body: { name: 'another' } })).json.id
  const { key } = (await ask(server, '/v2/account/keys', { body: { name: 'k', account } })).json
  const other = await ask({ url: server.url, apiKey: key }, '/ops/backup', { body: { passphrase: null } })
  assert.equal(other.status, 403)
  for (const body of [{}, { passphrase: 1 }, { passphrase: null, more: 1 }, '[]']) {
    assert.equal((await ask(server, '/ops/backup', { body })).status, 400)
  }

  const made = await runCommand(['backup', file, '--without-keys', '--data-dir', dataDir, '--json'])
  assert.deepEqual(made.code, 0, made.stderr)
  const header = JSON.parse(made.stdout)
  assert.deepEqual([header.keys, header.postgres, header.schema], ['left out', null, 1])

  const logged = (await ask(server, '/v2/audit?operation=makeBackup')).json.entries
  assert.deepEqual(
    // Refused attempts are collected for ten seconds, so those of above may be there or not.
    logged.map(({ outcome }: { outcome: string }) => outcome).filter((outcome: string) => outcome !== 'refused'),
    ['done'],
  )

  const nightly = temporaryFolder()
  const eachNight = ['backup', nightly, '--without-keys', '--keep', '1', '--data-dir', dataDir]
  writeFileSync(join(nightly, 'runyard-20200101T000000Z.backup'), 'an old one')
  assert.match((await runCommand(eachNight)).stdout, /1 older backups were removed/)
  assert.equal(readdirSync(nightly).length, 1)

  const nowhere = await runCommand(['backup', '/nowhere/a.backup', '--without-keys', '--data-dir', dataDir])
  assert.equal(nowhere.code, 64)
  assert.match(nowhere.stderr, /there is no folder \/nowhere/)

  const full = await runCommand(['restore', file, '--data-dir', dataDir])
  assert.equal(full.code, 65)
  assert.match(full.stderr, /is not empty/)
  const bytes = readFileSync(file)
  const cut = join(backups, 'cut.backup')
  writeFileSync(cut, bytes.subarray(0, bytes.length - 1_000))
  const empty = join(backups, 'empty')
  mkdirSync(empty)
  const damaged = await runCommand(['restore', cut, '--data-dir', empty])
  assert.equal(damaged.code, 65)
  assert.match(damaged.stderr, /it is cut off/)

  writeFileSync(join(empty, 'restore-unfinished'), '')
  for (const command of ['check', 'doctor', 'serve']) {
    const unfinished = await runCommand([command, '--data-dir', empty])
    assert.equal(unfinished.code, 69, command)
    assert.match(unfinished.stderr, /the restore of a backup into .* is not finished; let it end, or repeat it with/)
  }

  const fresh = join(backups, 'fresh')
  const restored = await runCommand(['restore', file, '--data-dir', fresh])
  assert.deepEqual(restored.code, 0, restored.stderr)
  assert.match(restored.stdout, /put encryption-key of the server into/)
  const refused = await runCommand(['serve', '--port', '0', '--data-dir', fresh])
  assert.match(refused.stderr, /sealed with another encryption key/)
  writeFileSync(join(fresh, 'encryption-key'), readFileSync(join(dataDir, 'encryption-key')), { mode: 0o600 })
  const second = await startServer({ dataDir: fresh })
  assert.notEqual(second.apiKey, server.apiKey, 'it made a new API key')
})
