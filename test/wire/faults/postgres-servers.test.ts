/** Several servers on one PostgreSQL: one of them acts, and stops when its lease is over. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, rmSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Client } from 'pg'
import { makeCertificate, writePair } from '../../support/certificates.ts'
import { noPostgres, type TestSchema, testDatabase } from '../../support/postgres-database.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, statusOf, submit } from '../support/client.ts'
import { secureCall } from '../support/https.ts'
import { rawAsk } from '../support/raw-http.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { root, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const masterKey = randomBytes(32).toString('base64')
const LEASE_SESSION = `datname = current_database() AND application_name = 'runyard lease'`

/** Settings that servers of one database share. */
function sharedBy(database: TestSchema): Record<string, string> {
  return { RUNYARD_DATABASE: database.url, RUNYARD_MASTER_KEY: masterKey }
}

async function startBoth(): Promise<{ database: TestSchema; server: Server }> {
  const database = await testDatabase()
  const server = await startServer({ env: sharedBy(database) })
  after(async () => {
    await server.kill9()
    await database.drop()
  })
  return { database, server }
}

function cutLease(database: TestSchema) {
  return database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${LEASE_SESSION}`)
}

const isDone = (server: Server, endpoint: string, id: string) =>
  until('the job to be done', async () => (await statusOf(server, endpoint, id)).status === 'COMPLETED')

/** Makes a load-balancing endpoint with a domain that may have no worker. */
async function pausedAt(server: Server, domain: string): Promise<void> {
  const cpu = [{ id: 'cpu3g', vcpuCount: 2 }]
  const runs = {
    image: 'example/chat:1',
    cpu,
    scaling: { type: 'REQUEST_COUNT', requestCount: 1 },
    workers: { max: 0 },
  }
  const made = await ask(server, '/v2/serverless', { body: { name: domain, type: 'LOAD_BALANCER', domain, ...runs } })
  assert.equal(made.status, 201, made.text)
}

/** The status of a request for a host. */
async function atHost(server: Server, host: string): Promise<number> {
  const headers = { Host: host, Authorization: `Bearer ${server.apiKey}` }
  return Number((await rawAsk(server.port, 'GET /', { headers })).statusLine.split(' ')[1])
}

/** The status where an endpoint may have no worker. */
const NO_WORKERS = 400

describe('servers on one PostgreSQL', { skip: noPostgres, concurrency: 2 }, () => {
  test('a second one stands by: it is alive, refuses calls with the address of the first, and reports the active server', async () => {
    const { database, server } = await startBoth()
    const standby = await startServer({ dataDir: server.dataDir, env: sharedBy(database), mayStandBy: true })
    assert.deepEqual((await ask(standby, '/healthz')).json, { status: 'ok', role: 'standby' })
    assert.equal((await ask(standby, '/readyz')).status, 503)
    for (const path of ['/v2/endpoints', '/v2/none/health', '/ops/top']) {
      const refused = await ask(standby, path)
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2'], path)
      assert.deepEqual(refused.json, {
        error: `this server stands by; the active server is at ${server.url}`,
        active: server.url,
      })
    }
    for (const [asked, role] of [
      [server, 'active'],
      [standby, 'standby'],
    ] as const) {
      const { code, stdout } = await runCommand(['status', '--json', '--url', asked.url, '--data-dir', asked.dataDir])
      assert.equal(code, 0)
      const { active, ...own } = JSON.parse(stdout)
      assert.deepEqual([own.role, own.pid, own.url], [role, asked.pid, asked.url])
      assert.deepEqual([active.epoch, active.pid, active.url], [1, server.pid, server.url])
      assert.ok(active.leaseLeftMs > 0 && active.leaseLeftMs <= 6_000)
      assert.ok(!stdout.includes('password') && own.database.startsWith('PostgreSQL at '))
    }
    assert.equal((await ask(server, '/readyz')).status, 200)
    assert.deepEqual(await standby.stop(), { code: 0, signal: null })
    assert.equal((await ask(server, '/readyz')).status, 200, 'nothing happened to the active one')
  })

  test('with --forward-to-active it passes calls on, and takes over when the active one ends', async () => {
    const { database, server } = await startBoth()
    const env = { ...sharedBy(database), RUNYARD_FORWARD_TO_ACTIVE: 'true' }
    const standby = await startServer({ dataDir: server.dataDir, env, mayStandBy: true })
    const endpoint = await silentEndpoint(standby)
    assert.equal((await ask(standby, '/readyz')).status, 200)
    const worker = await endpoint.worker()
    await pausedAt(standby, 'chat.example.org')
    const domains = async () => [await atHost(standby, 'chat.example.org'), await atHost(standby, 'other.example.org')]
    assert.deepEqual(await domains(), [NO_WORKERS, 421])
    const id = await submit(standby, endpoint.id, {})
    const job = await worker.take()
    assert.deepEqual([job.id, (await statusOf(server, endpoint.id, id)).status], [id, 'IN_PROGRESS'])
    await server.kill9()
    await until('a takeover', () => standby.events('leader.changed').at(-1)?.now === 'active')
    assert.equal((await worker.done(job.id, { output: 'kept' })).status, 200)
    assert.deepEqual(await domains(), [NO_WORKERS, 421])
    await isDone(standby, endpoint.id, id)
  })

  test('over HTTPS, too: it believes the certificate that both have, at addresses that this does not name', async () => {
    const database = await testDatabase()
    const pair = makeCertificate({ names: ['runyard.example', 'localhost'] })
    const files = writePair(temporaryFolder(), pair)
    const args = [...files.args, '--advertise-host', '127.0.0.1', '--docker', 'off', '--processes', 'off']
    const env = {
      ...sharedBy(database),
      RUNYARD_FORWARD_TO_ACTIVE: 'true',
      RUNYARD_API_KEY: 'a-key-of-more-than-twenty-letters',
    }
    const server = await startServer({ args, env, trusting: false })
    after(async () => {
      await server.kill9()
      await database.drop()
    })
    const standby = await startServer({ args, env, trusting: false, mayStandBy: true })
    const call = (asked: Server, path: string) => secureCall(asked, path, { ca: pair.cert })
    const status = await call(standby, '/ops/status')
    assert.deepEqual([JSON.parse(status.text).role, JSON.parse(status.text).active.url], ['standby', server.url])
    assert.match(server.url, /^https:\/\/127\.0\.0\.1:/)
    assert.equal((await call(standby, '/v2/serverless')).status, 200)
    const { code, stdout, stderr } = await runCommand(['endpoints', 'list', '--data-dir', standby.dataDir])
    assert.deepEqual([code, stderr], [0, ''], stdout)
    await server.kill9()
    await until('a takeover', () => standby.events('leader.changed').at(-1)?.now === 'active')
    assert.equal((await call(standby, '/v2/serverless')).status, 200)
    await standby.stop()
  })

  test('management that has a port of its own is passed on from that port alone', async () => {
    const database = await testDatabase()
    const args = ['--admin-port', '0', '--advertise-host', 'localhost']
    const env = { ...sharedBy(database), RUNYARD_FORWARD_TO_ACTIVE: 'true' }
    const server = await startServer({ args, env })
    after(async () => {
      await server.kill9()
      await database.drop()
    })
    const standby = await startServer({ dataDir: server.dataDir, args, env, mayStandBy: true })
    const { apiKey, managementUrl } = standby
    assert.equal((await ask({ url: managementUrl, apiKey }, '/ops/top')).status, 200)
    assert.equal((await ask({ url: managementUrl, apiKey }, '/readyz')).status, 200)
    const { active } = (await ask({ url: managementUrl, apiKey }, '/ops/status')).json
    assert.equal(active.url, server.managementUrl.replace('127.0.0.1', 'localhost'))
    for (const path of ['/ops/top', '/graphql', '/healthz']) assert.equal((await ask(standby, path)).status, 404, path)
    assert.equal((await ask(standby, '/v2/none/health')).status, 404)
    await standby.stop()
  })

  test('one that could not go on is refused: another encryption key, no API key, other workers of the machine', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server)
    const worker = await endpoint.worker()
    const id = await submit(server, endpoint.id, {})
    const job = await worker.take()
    const serve = (env: Record<string, string>, ...args: string[]) =>
      runCommand(['serve', '--port', '0', '--data-dir', temporaryFolder(), '--json', ...args], env)
    const otherKey = await serve({ RUNYARD_DATABASE: database.url })
    assert.equal(otherKey.code, 69)
    assert.match(otherKey.stderr, /sealed with another encryption key than this server has; nothing was changed/)
    const elsewhere = await serve(sharedBy(database))
    assert.equal(elsewhere.code, 69, elsewhere.stderr)
    const holder = `of the server with pid ${server.pid} on ${hostname()} at ${server.url}, so this server cannot stand by`
    assert.match(elsewhere.stderr, new RegExp(`processes and containers are bound to their machine.*${holder}`))
    assert.match(elsewhere.stderr, /both on one machine with the same --data-dir/)
    const embedded = await runCommand(['serve', '--port', '0', '--data-dir', server.dataDir, '--json'])
    assert.equal(embedded.code, 69)
    assert.match(embedded.stderr, /belongs to PostgreSQL at \S+, and no database is given/)
    const anew = await runCommand(['serve', '--port', '0', '--data-dir', server.dataDir, '--new-database'])
    assert.equal(anew.code, 69)
    assert.match(anew.stderr, new RegExp(`is in use by the server with pid ${server.pid}`))
    assert.equal((await worker.done(job.id, { output: 'unharmed' })).status, 200)
    const done = await statusOf(server, endpoint.id, id)
    assert.deepEqual([done.status, done.output, done.retries], ['COMPLETED', 'unharmed', undefined])
  })

  test('one that takes over and cannot begin ends with the reason, and keeps nobody waiting', async () => {
    const { database, server } = await startBoth()
    const folder = temporaryFolder()
    cpSync(`${root}/examples/hello-node/handler.mjs`, `${folder}/handler.mjs`)
    const start = (...args: string[]) =>
      startServer({ dataDir: server.dataDir, env: sharedBy(database), args, mayStandBy: true })
    const standby = await start('--worker', folder)
    rmSync(folder, { recursive: true })
    await server.kill9()
    assert.deepEqual(await standby.ended, { code: 69, signal: null })
    assert.match(standby.lines.join('\n'), new RegExp(`--worker ${folder}: folder '${folder}' does not exist`))
    const [lease] = await database.query('SELECT released, until < clock_timestamp() AS free FROM server_lease')
    assert.deepEqual(lease, { released: false, free: true }, 'workers of the killed one still keep other machines out')
    const next = await startServer({ dataDir: server.dataDir, env: sharedBy(database) })
    assert.equal((await ask(next, '/readyz')).status, 200)
    await next.kill9()
  })

  test('without workers of its machine a server hands over at a stop, and its API key is needed beside it', async () => {
    const database = await testDatabase()
    after(() => database.drop())
    const args = ['--processes', 'off', '--docker', 'off']
    const env = { ...sharedBy(database), RUNYARD_API_KEY: `rpa_${randomBytes(24).toString('base64url')}` }
    const server = await startServer({ trusting: false, args, env })
    const port = ['serve', '--port', '0', '--data-dir', temporaryFolder(), '--json', ...args]
    const keyless = await runCommand(port, sharedBy(database))
    assert.equal(keyless.code, 69)
    assert.match(keyless.stderr, /one that stands by needs the same API key: give it in RUNYARD_API_KEY/)
    const standby = await startServer({ trusting: false, args, env, mayStandBy: true })
    assert.equal((await ask(standby, '/readyz')).status, 503)
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
    await until('a takeover', () => standby.events('leader.changed').at(-1)?.now === 'active', 5_000)
    assert.equal((await ask(standby, '/ops/top')).status, 200)
    await standby.stop()
  })

  test('one with another API key is refused; the key is changed while servers run, and each key is valid as long as clients have it', async () => {
    const database = await testDatabase()
    after(() => database.drop())
    const args = ['--processes', 'off', '--docker', 'off']
    const [oldKey, newKey] = [1, 2].map(() => `rpa_${randomBytes(24).toString('base64url')}`) as [string, string]
    const envOf = (key: string, more = {}) => ({ ...sharedBy(database), RUNYARD_API_KEY: key, ...more })
    const both = envOf(newKey, { RUNYARD_PREVIOUS_API_KEY: oldKey })
    const statuses = (server: Server) =>
      Promise.all(
        [oldKey, newKey].map(async apiKey => (await ask({ url: server.url, apiKey }, '/v2/serverless')).status),
      )
    const first = await startServer({ trusting: false, args, env: envOf(oldKey) })
    const dataDir = temporaryFolder()
    const refused = await runCommand(['serve', '--port', '0', '--data-dir', dataDir, '--json', ...args], envOf(newKey))
    assert.equal(refused.code, 69)
    const holder = `the server with pid ${first.pid} on ${hostname()} at ${first.url}`
    assert.match(refused.stderr, new RegExp(`${holder} acts on the database \\S+ with another API key`))
    assert.match(refused.stderr, /RUNYARD_PREVIOUS_API_KEY/)
    assert.ok(![oldKey, newKey].some(key => refused.stderr.includes(key)))
    assert.equal(existsSync(join(dataDir, 'api-key')), false, 'a server that is refused keeps no key')
    assert.deepEqual(await statuses(first), [200, 401], 'nothing has changed')

    const historyArgs = [...args, '--history-days', '3']
    const second = await startServer({ trusting: false, args: historyArgs, env: both, mayStandBy: true })
    await until('it to compare', () => second.lines.some(line => line.includes('standby.settings_differ')))
    const [said] = second.events('standby.settings_differ')
    assert.deepEqual(said?.settings, ['--history-days'])
    first.signal('SIGSTOP')
    await until('a takeover', () => second.events('leader.changed').at(-1)?.now === 'active', 20_000)
    assert.deepEqual(await statuses(second), [200, 200])
    first.signal('SIGCONT')
    assert.deepEqual(
      await first.ended,
      { code: 69, signal: null },
      'a deposed one with the old key alone is refused, too',
    )
    const third = await startServer({ trusting: false, args: historyArgs, env: envOf(newKey), mayStandBy: true })
    await second.stop()
    await until('a takeover', () => third.events('leader.changed').at(-1)?.now === 'active', 5_000)
    assert.deepEqual(await statuses(third), [401, 200])
    assert.deepEqual(third.events('standby.settings_differ'), [])
    await third.stop()
  })

  test('one that is started right after a kill -9 of the one before comes up', async () => {
    const { database, server } = await startBoth()
    await server.kill9()
    const next = await startServer({ dataDir: server.dataDir, env: sharedBy(database) })
    assert.equal(next.apiKey, server.apiKey)
    assert.deepEqual(await next.stop(), { code: 0, signal: null })
  })

  test('without a lease that is confirmed it starts nothing, and continues once it is', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server)
    const worker = await endpoint.worker()
    const holding = new Client({ connectionString: database.url })
    await holding.connect()
    await holding.query('BEGIN')
    await holding.query('SELECT 1 FROM server_lease FOR UPDATE')
    await until('it to notice', () => server.events('leader.changed').some(({ now }) => now === 'unsure'))
    assert.equal((await ask(server, '/readyz')).status, 503)
    const id = await submit(server, endpoint.id, {})
    await holding.end()
    await until('it to lead again', () => server.events('leader.changed').at(-1)?.now === 'active')
    const job = await worker.take()
    assert.equal(job.id, id)
    assert.equal((await worker.done(job.id, { output: 1 })).status, 200)
    await isDone(server, endpoint.id, id)
    assert.equal((await ask(server, '/readyz')).status, 200)
  })

  test('a connection that is only cut is made again, and no call fails', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server, 0)
    await cutLease(database)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask(server, `/v2/${endpoint.id}/run`, { body: { input: {} } })),
    )
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.equal((await ask(server, '/readyz')).status, 200)
    const roles = server.events('leader.changed').map(({ now }) => now)
    // On a busy machine the next confirmation may be late, without effect.
    assert.deepEqual([roles.at(-1), roles.filter(role => role !== 'active' && role !== 'unsure')], ['active', []])
  })

  test('a deposed server stands by with a message, and touches neither workers nor jobs', async () => {
    const { database, server } = await startBoth()
    const endpoint = await silentEndpoint(server)
    const worker = await endpoint.worker()
    const id = await submit(server, endpoint.id, {})
    const job = await worker.take()
    server.signal('SIGSTOP')
    const rival = await startServer({ dataDir: server.dataDir, env: sharedBy(database) })
    server.signal('SIGCONT')
    await until('it to stand by', () => server.events('leader.changed').at(-1)?.now === 'standby')
    assert.match(server.lines.join('\n'), new RegExp(`pid ${rival.pid} on .* has taken over the database`))
    const later = server.lines.slice(server.lines.findIndex(line => line.includes('"now":"deposed"')))
    assert.ok(!/"msg":"(worker|job)\./.test(later.join('\n')), later.join('\n'))
    assert.deepEqual((await ask(server, '/v2/endpoints')).json.active, rival.url)
    assert.equal((await worker.done(job.id, { output: 1 })).status, 200, 'the relay passes the result on')
    await isDone(rival, endpoint.id, id)
    await rival.kill9()
    await until('it to act again', () => server.events('leader.changed').at(-1)?.now === 'active')
    assert.equal((await statusOf(server, endpoint.id, id)).status, 'COMPLETED')
  })
})
