/** Failed jobs by what their errors have in common. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const HOUR_MS = 60 * 60_000

async function errors(rig: Rig, endpoint: string, query = '') {
  const { status, json, text } = await rig.ask('GET', `/v2/${endpoint}/errors${query}`)
  assert.equal(status, 200, text)
  return json
}

async function failed(t: Parameters<typeof openRig>[0], ...messages: unknown[]) {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const jobs: string[] = []
  for (const error of messages) {
    jobs.push(await rig.submit(endpoint))
    await worker.takeJob()
    await rig.clock.advance(1_000)
    await worker.done(jobs.at(-1) as never, error === null ? { output: 1 } : { error })
  }
  return { rig, endpoint, worker, jobs }
}

test('errors of one cause are one group, with the job that ended last, also when results are gone', async t => {
  const python = JSON.stringify({
    error_type: "<class 'KeyError'>",
    error_message: "'prompt'\nmore",
    error_traceback: 'Traceback',
  })
  const { rig, endpoint, jobs } = await failed(t, 'out of memory at 17', python, null, 'out of memory at 4711\nmore')
  const now = await errors(rig, endpoint)
  const shown = ({ groups }: { groups: Record<string, unknown>[] }) =>
    groups.map(({ error, count, sampleJobId }) => [error, count, sampleJobId])
  const expected = [
    ['out of memory at 4711', 2, jobs[3]],
    ["KeyError: 'prompt'", 1, jobs[1]],
  ]
  assert.deepEqual([shown(now), now.looked, now.complete], [expected, 3, true])
  const [first] = now.groups
  assert.equal(first.lastAt - first.firstAt, 3_000)
  const { json } = await rig.ask('GET', `/v2/${endpoint}/requests?fingerprint=${first.fingerprint}`)
  assert.deepEqual(
    json.requests.map(({ id }: { id: string }) => id),
    [jobs[3], jobs[0]],
  )
  await rig.clock.leap(HOUR_MS)
  await rig.clock.advance(2_000)
  assert.deepEqual(shown(await errors(rig, endpoint)), expected)
})

test('only jobs of the time that is asked for count', async t => {
  const { rig, endpoint } = await failed(t, 'one', 'two')
  const fromMs = rig.clock.now() - 1_500
  assert.deepEqual(
    (await errors(rig, endpoint, `?from=${fromMs}`)).groups.map(({ error }: { error: string }) => error),
    ['two'],
  )
  assert.deepEqual((await errors(rig, endpoint, `?to=${new Date(fromMs).toISOString()}`)).groups.length, 1)
  assert.deepEqual((await errors(rig, endpoint, `?from=${rig.clock.now()}`)).groups, [])
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/errors?from=yesterday`)).status, 400)
})

test('another account, and a key without a right on jobs, see no errors', async t => {
  const { rig, endpoint } = await failed(t, 'one')
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const none = await rig.addKey('rpa_none', { scope: { type: 'restricted', management: 'write', jobs: 'none' } })
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/errors`, { key: stranger })).status, 404)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/errors`, { key: none })).status, 403)
})
