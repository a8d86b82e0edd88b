/** The story of a job, as clients read it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig, type Rig } from '../../support/rig.ts'

const HOUR_MS = 60 * 60_000

async function story(rig: Rig, endpoint: string, job: string) {
  const { status, json, text } = await rig.ask('GET', `/v2/${endpoint}/requests/${job}/story`)
  assert.equal(status, 200, text)
  return json as { status: string; events: { kind: string; at: number; until: number | null; text: string }[] }
}

function kinds({ events }: { events: readonly { kind: string }[] }): string[] {
  return events.map(({ kind }) => kind)
}

test('a job that waits says why; then it shows the start of its worker, the attempt, its end and its webhook', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, webhook: 'https://example.com/hook' })
  const before = await story(rig, endpoint, id)
  assert.deepEqual([before.status, kinds(before)], ['IN_QUEUE', ['accepted', 'waited', 'expires']])
  assert.match(before.events[1]?.text ?? '', /^waits: /)
  assert.equal(before.events[1]?.until, null)
  await rig.clock.advance(5_000)
  const worker = rig.worker(-1)
  await worker.takeJob()
  await rig.clock.advance(700)
  assert.equal((await story(rig, endpoint, id)).events.find(({ kind }) => kind === 'attempt')?.until, null)
  await worker.chunk(id, { output: 'a' })
  await worker.done(id, { output: 1 })
  await rig.clock.advance(1_000)
  const after = await story(rig, endpoint, id)
  assert.equal(after.status, 'COMPLETED')
  assert.deepEqual(
    [...new Set(kinds(after))],
    ['accepted', 'waited', 'worker', 'attempt', 'finished', 'webhook', 'expires'],
  )
  const attempt = after.events.find(({ kind }) => kind === 'attempt')
  assert.match(attempt?.text ?? '', /^attempt 1 ran on worker \w+, with 1 chunk of output$/)
  assert.equal((attempt?.until ?? 0) - (attempt?.at ?? 0), 700)
})

test('a lost attempt is in the story, also when only the record of the job is left', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.clock.advance(2_000)
  rig.fleet.exit(worker.id, { code: 1 })
  await rig.clock.advance(30_000)
  const next = rig.worker(-1)
  await next.takeJob()
  await next.done(id, { output: 1 })
  const lost = (await story(rig, endpoint, id)).events.find(({ kind }) => kind === 'lost')
  assert.match(lost?.text ?? '', /^attempt 1 was lost: /)
  await rig.clock.advance(HOUR_MS)
  assert.equal((await rig.status(endpoint, id)).status, 404)
  const past = await story(rig, endpoint, id)
  assert.deepEqual(
    [past.status, kinds(past).includes('lost'), kinds(past).includes('expires')],
    ['COMPLETED', true, false],
  )
})

test('the story of another account, of another endpoint or of no job is not found', async t => {
  const rig = await openRig(t)
  const [endpoint, other] = [await rig.endpoint({ workersMax: 0 }), await rig.endpoint({ workersMax: 0 })]
  const id = await rig.submit(endpoint)
  const { json: account } = await rig.ask('POST', '/v2/account/accounts', { body: { name: 'Ada' } })
  const { json: made } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'a', account: account.id } })
  const status = async (path: string, key?: string) =>
    (await rig.ask('GET', path, key === undefined ? {} : { key })).status
  assert.equal(await status(`/v2/${endpoint}/requests/${id}/story`, made.key), 404)
  assert.equal(await status(`/v2/${other}/requests/${id}/story`), 404)
  assert.equal(await status(`/v2/${endpoint}/requests/nothing-u1/story`), 404)
})
