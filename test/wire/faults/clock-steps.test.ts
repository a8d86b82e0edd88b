/**
 * The clock of the machine is set while a server runs, and between two starts: no limit
 * moves, and nothing is removed.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { noPostgres, testDatabase } from '../../support/postgres-database.ts'
import { ask, makeEndpoint, statusOf, submit, whenStatus } from '../support/client.ts'
import { noFaketime, settableClock } from '../support/faketime.ts'
import { silentEndpoint } from '../support/raw-worker.ts'
import { fixture, runCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const HOUR_MS = 3_600_000

test('two hours back, an hour and 400 days forward: limits run on, all stays, until the clock is accepted', {
  skip: noFaketime,
}, async () => {
  const clock = settableClock()
  const server = await startServer({ env: clock.env })
  const endpoint = await silentEndpoint(server, 1)
  const worker = await endpoint.worker()

  const ended = await submit(server, endpoint.id, {})
  await worker.take()
  await worker.done(ended, { output: 'kept' })
  const short = await ask(server, `/v2/${endpoint.id}/run`, {
    body: { input: {}, policy: { executionTimeout: 5_000 } },
  })
  await worker.take()
  clock.set('-2h')
  await whenStatus(server, endpoint.id, short.json.id, ['TIMED_OUT'], 12_000)
  await until('the step', () => server.events('clock.stepped').length > 0)
  const [stepped] = server.events('clock.stepped')
  assert.ok(Math.abs(Number(stepped!.byMs) + 2 * HOUR_MS) < 2_000, String(stepped!.byMs))
  const why = await runCommand(['why', endpoint.id, '--data-dir', server.dataDir])
  assert.match(why.stdout, /the clock of this machine is 2 h behind the time of the server/)
  assert.match((await ask(server, '/readyz')).json.note, /2 h behind/)

  // The worker has to let go of the job that was timed out.
  assert.deepEqual(await worker.stops(), [short.json.id])
  await worker.done(short.json.id, { error: 'stopped' })
  const running = await submit(server, endpoint.id, {})
  await worker.take()
  const once = { headers: { 'idempotency-key': 'once' }, body: { input: {} } }
  const queued = (await ask(server, `/v2/${endpoint.id}/run`, once)).json.id
  clock.set('+1h')
  await until('the second step', () => server.events('clock.stepped').length === 2)
  clock.set('+400d')
  await until('the third step', () => server.events('clock.stepped').length === 3)
  // A step of each loop that removes something.
  await new Promise(resolve => setTimeout(resolve, 2_500))
  const all = [ended, running, queued]
  const statuses = async () => Promise.all(all.map(async id => (await statusOf(server, endpoint.id, id)).status))
  assert.deepEqual(await statuses(), ['COMPLETED', 'IN_PROGRESS', 'IN_QUEUE'])
  assert.equal((await ask(server, `/v2/${endpoint.id}/run`, once)).json.id, queued)

  await server.kill9()
  const again = await startServer({ env: clock.env, dataDir: server.dataDir, port: server.port })
  assert.deepEqual(await statuses(), ['COMPLETED', 'IN_PROGRESS', 'IN_QUEUE'])
  const shown = await runCommand(['clock', '--data-dir', server.dataDir])
  assert.match(shown.stdout, /400 days ahead of the time of the server/)

  const doctor = await runCommand(['doctor', '--docker', 'off', '--data-dir', server.dataDir], clock.env)
  assert.match(doctor.stdout, /the clock of this machine is 400 days ahead of the time of the server/)

  const accepted = await runCommand(['clock', 'accept', '--data-dir', server.dataDir])
  assert.equal(accepted.code, 0, accepted.stderr)
  await until('the time of the machine', () => again.events('clock.adopted').length === 1)
  await until(
    'the end of the retention',
    async () => (await ask(again, `/v2/${endpoint.id}/status/${ended}`)).status === 404,
  )
  assert.deepEqual(
    [(await statusOf(again, endpoint.id, running)).status, (await statusOf(again, endpoint.id, queued)).status],
    ['IN_PROGRESS', 'IN_QUEUE'],
  )
  await worker.done(running, { output: 'late' })
  const done = await whenStatus(again, endpoint.id, running, ['COMPLETED'])
  assert.ok(done.executionTime! < HOUR_MS, `the time that a job took does not move either: ${done.executionTime}`)
  const after = await runCommand(['clock', '--data-dir', server.dataDir])
  assert.match(after.stdout, /They agree/)
})

test('a server whose clock is a year ahead takes over: what was kept stays, until the clock is accepted', {
  skip: noFaketime || noPostgres,
}, async () => {
  const database = await testDatabase()
  const env = {
    RUNYARD_DATABASE: database.url,
    RUNYARD_MASTER_KEY: randomBytes(32).toString('base64'),
    RUNYARD_API_KEY: 'rpa_of_both_servers_of_this_test',
  }
  const first = await startServer({ env })
  const clock = settableClock()
  clock.set('+365d')
  const second = await startServer({ dataDir: first.dataDir, env: { ...env, ...clock.env }, mayStandBy: true })
  const endpoint = await makeEndpoint(first, { folder: fixture('silent-worker'), settings: { workersMax: 0 } })
  const cancelled = await submit(first, endpoint, {})
  await ask(first, `/v2/${endpoint}/cancel/${cancelled}`, { method: 'POST' })
  const waits = await submit(first, endpoint, {})
  await first.kill9()
  await until('the takeover', () => second.events('leader.changed').some(({ now }) => now === 'active'))
  const statuses = async () =>
    Promise.all([cancelled, waits].map(async id => (await statusOf(second, endpoint, id)).status))
  assert.deepEqual(await statuses(), ['CANCELLED', 'IN_QUEUE'])
  assert.ok(Math.abs((await ask(second, '/ops/clock')).json.stepMs - 365 * 24 * HOUR_MS) < 5_000)
  assert.equal((await ask(second, '/ops/clock/accept', { method: 'POST' })).status, 200)
  await until('the time of the machine', () => second.events('clock.adopted').length === 1)
  await until('the end of the retention', async () => {
    const { status } = await ask(second, `/v2/${endpoint}/status/${cancelled}`)
    return status === 404
  })
  assert.equal((await statusOf(second, endpoint, waits)).status, 'IN_QUEUE')
  await second.kill9()
  await database.drop()
})
