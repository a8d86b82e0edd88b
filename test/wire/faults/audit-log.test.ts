/** The audit log of a server that is killed: no change that was answered lacks its entry. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noPostgres, testDatabase } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { runCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

interface Entry {
  readonly sequence: number
  readonly operation: string
  readonly object: { readonly id: string } | null
  readonly outcome: string
  readonly begun: number | null
}

test('after a kill in the middle of changes each answered one is done in the log, and what began has ended', async () => {
  const dataDir = temporaryFolder()
  let server = await startServer({ dataDir })
  const answered = new Set<string>()
  let count = 0
  const change = async () => {
    for (;;) {
      count += 1
      const body = { name: `s${count}`, value: 'planted-value' }
      const { status, json } = await ask(server, '/v2/account/secrets', { body })
      assert.equal(status, 201)
      answered.add(json.id)
    }
  }
  // Each ends when the connection does.
  const clients = Array.from({ length: 8 }, () => change().catch(() => {}))
  await until('some changes', () => answered.size > 100)
  await server.kill9()
  await Promise.all(clients)

  server = await startServer({ dataDir })
  const file = join(temporaryFolder(), 'audit.jsonl')
  const written = await runCommand(['audit', '--export', file, '--data-dir', dataDir])
  assert.deepEqual([written.code, written.stderr], [0, ''])
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const text = readFileSync(file, 'utf8')
  assert.ok(!text.includes('planted-value'))
  const entries: Entry[] = text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line).entry)
  const done = new Set(entries.filter(({ outcome }) => outcome === 'done').map(({ object }) => object?.id))
  for (const id of answered) assert.ok(done.has(id), `${id} was answered and is not in the log`)
  const ended = new Set(entries.map(({ begun }) => begun))
  const open = entries.filter(({ outcome, sequence }) => outcome === 'begun' && !ended.has(sequence))
  assert.deepEqual(open, [])

  const verified = await runCommand(['audit', '--verify', '--data-dir', dataDir])
  assert.equal(verified.code, 0)
  const last = /"hash":"([\da-f]{64})"\}\n$/.exec(text)?.[1]
  assert.match(verified.stdout, new RegExp(`^entries 1 to \\d+ are whole; .* ${last}\\n$`))
  const checked = await runCommand(['check', '--data-dir', dataDir])
  assert.equal(checked.code, 0)
  assert.match(checked.stdout, /^the database is whole/)
})

test('two servers on one PostgreSQL continue one chain, and the second one ends what the first one had begun', {
  skip: noPostgres,
}, async () => {
  const database = await testDatabase()
  after(() => database.drop())
  const env = { RUNYARD_DATABASE: database.url, RUNYARD_MASTER_KEY: randomBytes(32).toString('base64') }
  const first = await startServer({ env })
  const second = await startServer({ dataDir: first.dataDir, env, mayStandBy: true })
  const answered: string[] = []
  const clients = Array.from({ length: 4 }, async (_, client) => {
    for (let at = 0; ; at += 1) {
      const { status, json } = await ask(first, '/v2/account/secrets', {
        body: { name: `s${client}-${at}`, value: 'v' },
      })
      if (status === 201) answered.push(json.id)
    }
  }).map(running => running.catch(() => {}))
  await until('some changes', () => answered.length > 40)
  await first.kill9()
  await Promise.all(clients)
  await until('the second one to act', async () => (await ask(second, '/readyz')).status === 200, 60_000)
  // Requests come in before the term has begun in full.
  await until('the second one to have begun', async () => {
    const { json } = await ask(second, '/v2/audit?operation=startServer')
    return json.entries.length === 2
  })
  const { text } = await ask(second, '/v2/audit?format=jsonl')
  const entries: Entry[] = text
    .trimEnd()
    .split('\n')
    .map((line: string) => JSON.parse(line).entry)
  const done = new Set(entries.filter(({ outcome }) => outcome === 'done').map(({ object }) => object?.id))
  for (const id of answered) assert.ok(done.has(id), `${id} was answered and is not in the log`)
  const ended = new Set(entries.map(({ begun }) => begun))
  assert.deepEqual(
    entries.filter(({ outcome, sequence }) => outcome === 'begun' && !ended.has(sequence)),
    [],
  )
  assert.equal((await ask(second, '/v2/audit/verification')).json.intact, true)
  await second.kill9()
})

test('the log says what a server was started with, and which commands changed something', async () => {
  const dataDir = temporaryFolder()
  const server = await startServer({ dataDir, env: { RUNYARD_CORS_ORIGIN: 'https://page.example' } })
  const made = await ask(server, '/v2/account/secrets', { body: { name: 'mine', value: 'v' } })
  const listed = await runCommand(['audit', '--data-dir', dataDir, '--json'])
  const entries = listed.stdout
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
  const start = entries.find(({ operation }) => operation === 'startServer')
  assert.match(start.detail.version, /^\d+\.\d+\.\d+/)
  assert.deepEqual(start.detail['--cors-origin'], ['https://page.example'])
  assert.ok(entries.some(({ operation }) => operation === 'setServerKey'))
  assert.ok(!listed.stdout.includes(server.apiKey))
  const { stdout } = await runCommand(['audit', '--object', made.json.id, '--since', '1h', '--data-dir', dataDir])
  assert.match(stdout, /createSecret +\w+ +done +name null -> mine; /)
  const none = await runCommand(['audit', '--operation', 'deleteEndpoint', '--data-dir', dataDir])
  assert.equal(none.code, 0)
  const wrong = await runCommand(['audit', '--since', 'yesterday', '--data-dir', dataDir])
  assert.equal(wrong.code, 64)
})
