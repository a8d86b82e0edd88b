/** The windows of REST: exact whoever asks at once, and kept over a restart. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Store } from '../../../src/ports/store/store.ts'
import { openPostgresStore } from '../../../src/store/engines/postgres.ts'
import { noPostgres, testSchema } from '../../support/postgres-database.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'

const FULL = [{ name: 'minute', quota: 30, seconds: 60 }] as const

async function onPostgres(context: TestContext): Promise<Store> {
  const schema = await testSchema()
  context.after(() => schema.drop())
  return openPostgresStore({ url: schema.url })
}

/** A rig at the beginning of a minute. */
async function openAtMinute(t: TestContext, openStore?: () => Promise<Store>): Promise<Rig> {
  const rig = await openRig(t, { rateWindows: FULL, ...(openStore === undefined ? {} : { openStore }) })
  await rig.clock.advance(60_000 - (rig.clock.now() % 60_000))
  return rig
}

/** Requests left in the minute, by the headers of an answer. */
const leftOf = (headers: Headers) => Number(/^"minute";r=(\d+);t=\d+$/.exec(headers.get('ratelimit') ?? '')?.[1])

async function exactly(rig: Rig): Promise<void> {
  const keys = [KEY, await rig.addKey('rpa_second'), await rig.addKey('rpa_third')]
  const answers = await Promise.all(
    Array.from({ length: 75 }, (_, n) => rig.ask('GET', '/v2/templates', { key: keys[n % 3]! })),
  )
  assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(30).fill(200), ...Array(45).fill(429)])
  assert.deepEqual(
    answers.map(({ headers }) => leftOf(headers)).sort((a, b) => b - a),
    [...Array.from({ length: 30 }, (_, n) => 29 - n), ...Array(45).fill(0)],
  )
}

test('of many requests at once exactly as many pass as the window has', async t => exactly(await openAtMinute(t)))

test('the same on PostgreSQL', { skip: noPostgres }, async t => exactly(await openAtMinute(t, () => onPostgres(t))))

test('a restart in order forgets no request, and one after a crash those of the last five seconds', async t => {
  const rig = await openAtMinute(t)
  const left = async () => leftOf((await rig.ask('GET', '/v2/templates')).headers)
  for (let n = 0; n < 3; n += 1) await left()
  await rig.stop()
  await rig.start()
  assert.equal(await left(), 26)
  await rig.clock.advance(5_000)
  assert.equal(await left(), 25)
  assert.equal(await left(), 24)
  await rig.crash()
  await rig.start()
  assert.equal(await left(), 24, 'one request was counted after the last time that counts were kept')
  await rig.clock.advance(60_000)
  assert.equal(await left(), 29)
})

test('a store that fails while counts are kept at the stop does not keep the server from stopping', async t => {
  const rig = await openAtMinute(t)
  await rig.ask('GET', '/v2/templates')
  rig.failNext('keys.saveWindowCounts', 'before')
  await rig.stop()
})
