/**
 * Whoever reads the database, a copy of it or a backup, reads no input, no variable and no URL of a webhook
 * where payloads are sealed.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { noPostgres, testSchema } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, changeEndpoint, makeEndpoint, runJob, submit, whenFinal } from '../support/client.ts'
import { fixture, runCommand, type Server, startServer } from '../support/server.ts'

/** Planted secrets, by their names. */
type Planted = ReadonlyMap<string, string>
/** The texts of all rows of a database. */
type Dump = () => Promise<string>

const random = () => `planted-${randomBytes(12).toString('hex')}`
const NOT_RUNNING = { workersMin: 0, workersMax: 0 }
const NOBODY = 'http://127.0.0.1:9'

function found(planted: Planted, text: string): string[] {
  return [...planted].flatMap(([what, value]) => (text.includes(value) ? [what] : []))
}

async function variablesOf(server: Server, endpoint: string): Promise<Record<string, string>> {
  return (await ask(server, `/v2/serverless/${endpoint}`)).json.env
}

/** Everything of a life: plain at first, sealed, with another key, and plain again. */
async function live(start: (flags: string[]) => Promise<Server>, rotate: () => Promise<void>, dump: Dump) {
  const [early, earlyUrl] = [random(), `${NOBODY}/${random()}`]
  const first = await start([])
  const folder = fixture('node-everyday')
  const endpoint = await makeEndpoint(first, { folder, env: { EARLY: early }, settings: NOT_RUNNING })
  const waiting = await submit(first, endpoint, { word: 'early' }, { webhook: earlyUrl })
  assert.match(await dump(), new RegExp(early))
  await first.stop()

  const second = await start(['--seal-payloads'])
  const [variable, word, drafted] = [random(), random(), random()]
  const [url, batchUrl] = [`${NOBODY}/${random()}`, `${NOBODY}/${random()}`]
  assert.deepEqual(await variablesOf(second, endpoint), { EARLY: early })
  const env = { EARLY: early, LATER: variable }
  const patched = await ask(second, `/v2/serverless/${endpoint}`, { method: 'PATCH', body: { env } })
  assert.equal(patched.status, 200, patched.text)
  const other = await makeEndpoint(second, { folder, env: { OTHER: variable } })
  await runJob(second, other, { n: 0 })
  const told = await submit(second, other, { n: 0 }, { webhook: url })
  await whenFinal(second, other, told)
  const sealed = await submit(second, endpoint, { word }, { webhook: url })
  const requests = [{ input: { word: drafted }, webhook: url }]
  const batch = await ask(second, `/v2/${endpoint}/batch`, { body: { requests, webhook: batchUrl } })
  assert.ok(batch.status < 300, batch.text)
  assert.deepEqual(await variablesOf(second, endpoint), env)
  const planted: Planted = new Map([
    ...([
      ['the early variable', early],
      ['the early URL', earlyUrl],
      ['the variable', variable],
      ['the input', word],
    ] as const),
    ...([
      ['the input of a draft', drafted],
      ['the URL', url],
      ['the URL of a batch', batchUrl],
    ] as const),
  ])
  assert.deepEqual(found(planted, await dump()), [])
  const made = new Map([...planted].filter(([what]) => !what.includes('early')))
  assert.deepEqual(found(made, second.lines.join('\n')), [])
  return { second, endpoint, waiting, sealed, env, planted: made, end: () => goOn(start, rotate, dump) }

  async function goOn(again: typeof start, turn: typeof rotate, look: Dump): Promise<void> {
    await second.stop()
    await turn()
    const third = await again([])
    assert.deepEqual(await variablesOf(third, endpoint), env)
    const body = { env: { ...env, LATER: 'plain again' } }
    assert.equal((await ask(third, `/v2/serverless/${endpoint}`, { method: 'PATCH', body })).status, 200)
    assert.match(await look(), /plain again/)
    await changeEndpoint(third, endpoint, { workersMin: 0, workersMax: 1 })
    assert.deepEqual((await whenFinal(third, endpoint, waiting)).output, { echo: { word: 'early' } })
    assert.deepEqual((await whenFinal(third, endpoint, sealed)).output, { echo: { word } })
    await third.stop()
  }
}

test('on SQLite', async () => {
  const dataDir = temporaryFolder()
  const file = join(dataDir, 'runyard.sqlite')
  const rotate = async () => {
    const { code, stderr } = await runCommand(['master-key', 'rotate', '--data-dir', dataDir])
    assert.equal(code, 0, stderr)
  }
  const dump = async () => {
    const database = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all()
    const rows = tables.flatMap(({ name }) => database.prepare(`SELECT * FROM "${name}"`).all())
    database.close()
    return rows.map(row => JSON.stringify(row)).join('\n')
  }
  const { planted, end } = await live(args => startServer({ dataDir, args }), rotate, dump)
  for (const name of ['', '-wal', '-shm']) {
    assert.deepEqual(found(planted, readFileSync(`${file}${name}`, 'latin1')), [], `runyard.sqlite${name}`)
  }
  await end()
})

test('on PostgreSQL', { skip: noPostgres }, async () => {
  const schema = await testSchema()
  try {
    const dataDir = temporaryFolder()
    const env = { RUNYARD_DATABASE: schema.url }
    const rotate = async () => {
      const { code, stderr } = await runCommand(['master-key', 'rotate', '--data-dir', dataDir], env)
      assert.equal(code, 0, stderr)
    }
    const dump = async () => {
      const tables = await schema.query('SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()')
      const all = await Promise.all(
        tables.map(({ name }) => schema.query(`SELECT t::text AS line FROM "${name}" AS t`)),
      )
      return all.flatMap(rows => rows.map(({ line }) => String(line))).join('\n')
    }
    const { end } = await live(args => startServer({ dataDir, args, env }), rotate, dump)
    await end()
  } finally {
    await schema.drop()
  }
})
