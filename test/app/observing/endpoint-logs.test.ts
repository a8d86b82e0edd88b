/** The logs of an endpoint over REST: all workers, one, or a job; followed, or to keep. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { EventReader } from '../../support/event-stream.ts'
import { type Asking, openRig, type Rig } from '../../support/rig.ts'

async function follow(rig: Rig, path: string, asking: Asking = {}): Promise<EventReader> {
  const answer = await rig.open(path, asking)
  assert.equal(answer.status, 200, answer.status === 200 ? '' : await answer.text())
  const reader = new EventReader(answer)
  await rig.clock.settle()
  return reader
}

const linesOf = ({ events }: EventReader) => events.flatMap(({ data }) => (data.line === undefined ? [] : [data.line]))

test('the lines of all workers come as events, and a reader resumes after a restart of the server', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMin: 2 })
  await rig.clock.advance(40)
  const [one, two] = [rig.worker(0), rig.worker(1)]
  rig.print(one.id, 'one')
  const path = `/v2/serverless/${endpoint}/logs?source=container`
  const first = await follow(rig, path)
  rig.print(two.id, 'two')
  await rig.clock.advance(300)
  assert.deepEqual(linesOf(first), ['one', 'two'])
  const { data } = first.events.findLast(({ data }) => data.line === 'two')!
  assert.deepEqual([data.workerId, data.jobId, data.source], [two.id, null, 'container'])
  const known = first.lastId
  await first.leave()
  await rig.crash()
  rig.print(one.id, 'three')
  await rig.start()
  const second = await follow(rig, path, { headers: { 'last-event-id': known } })
  await rig.clock.advance(300)
  assert.deepEqual(linesOf(second), ['three'])
  await second.leave()
})

test('one worker or one job can be selected, and stored lines can be read without following', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.print(worker.id, 'loading')
  const job = await rig.submit(endpoint)
  await worker.takeJob()
  worker.print(job, 'of the job')
  await rig.clock.advance(100)
  await worker.done(job)
  await rig.clock.advance(1_000)
  rig.print(worker.id, 'after it')
  const path = `/v2/serverless/${endpoint}/logs?follow=false`
  const lines = async (query: string) => {
    const { status, text, headers } = await rig.ask('GET', `${path}${query}`)
    assert.equal(status, 200, text)
    return { text, type: headers.get('content-type'), lines: text.split('\n').slice(0, -1) }
  }
  const all = await lines('&source=container')
  assert.equal(all.type, 'application/x-ndjson')
  assert.deepEqual(
    all.lines.map(line => JSON.parse(line).jobId),
    [null, job, null],
  )
  assert.equal((await lines(`&job=${job}`)).lines.length, 1)
  assert.equal((await lines(`&worker=${worker.id}&source=container&tail=1`)).lines.length, 1)
  assert.equal((await lines('&text=LOADING')).lines.length, 1)
  const plain = await lines(`&worker=${worker.id}&source=container&format=text&text=loading`)
  assert.match(plain.type!, /^text\/plain/)
  assert.match(plain.text, new RegExp(`^\\d{4}-\\S+Z ${worker.id} container loading\\n$`))
  const later = new Date(rig.clock.now() + 60_000).toISOString()
  assert.equal((await lines(`&since=${later}`)).text, '')
})

test('more lines than any tail can be read at once', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.print(worker.id, ...Array.from({ length: 6_000 }, (_, n) => `line ${n}`))
  const { text } = await rig.ask('GET', `/v2/serverless/${endpoint}/logs?follow=false&source=container&format=text`)
  assert.equal(text.split('\n').length - 1, 6_000)
})

test('another account, an unknown worker or job, and wrong values are refused before a stream begins', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const { endpoint: other, worker: theirs } = await rig.endpointWithWorker()
  const job = await rig.submit(other)
  const path = `/v2/serverless/${endpoint}/logs`
  const statusOf = async (query: string, asking: Asking = {}) =>
    (await rig.ask('GET', `${path}${query}`, asking)).status
  for (const query of [`?worker=${theirs.id}`, `?job=${job}`, '?worker=nobody', '?job=nothing', `?job=${worker.id}`]) {
    assert.equal(await statusOf(query), 404, query)
  }
  for (const query of ['?tail=5001', '?since=now', '?source=all', '?format=xml', `?worker=${worker.id}&job=${job}`]) {
    assert.equal(await statusOf(query), 400, query)
  }
  assert.equal(await statusOf('', { headers: { 'last-event-id': 'wrong' } }), 400)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  assert.equal(await statusOf('', { key: stranger }), 404)
  const none = await rig.addKey('rpa_none', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  assert.equal(await statusOf('', { key: none }), 403)
})

test('an endpoint is restarted with a new release by a key that may write', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const path = `/v2/serverless/${endpoint}/restart`
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  assert.equal((await rig.ask('POST', path, { key: reader })).status, 403)
  assert.equal((await rig.ask('POST', path, { key: stranger })).status, 404)
  const { status, json } = await rig.ask('POST', path)
  assert.deepEqual([status, json], [200, { id: endpoint, version: 2 }])
  await rig.clock.advance(1_000)
  assert.ok((await rig.alive(endpoint)).some(({ id, version }) => id !== worker.id && version === 2))
})
