/** Live events of an account, as its console or its scripts read them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { EventReader } from '../../support/event-stream.ts'
import { type Asking, openRig, type Rig } from '../../support/rig.ts'

async function follow(rig: Rig, query = '', asking: Asking = {}): Promise<EventReader> {
  const answer = await rig.open(`/v2/events${query}`, asking)
  assert.equal(answer.status, 200, answer.status === 200 ? '' : await answer.text())
  assert.match(answer.headers.get('content-type')!, /^text\/event-stream/)
  const reader = new EventReader(answer)
  await rig.clock.settle()
  return reader
}

const after = (id: string): Asking => ({ headers: { 'last-event-id': id } })
const namesOf = ({ events }: EventReader) => events.map(({ event }) => event)

/** An endpoint of another account. */
async function endpointOf(rig: Rig, key: string) {
  const template = { name: 'theirs', imageName: 'image:1', containerDiskInGb: 1 }
  const variables = { input: { name: 'theirs', instanceIds: ['cpu3g-2-8'], template } }
  const query = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
  const { json } = await rig.ask('POST', '/graphql', { key, body: { query, variables } })
  const id = json.data.saveEndpoint.id as string
  const submit = async () => {
    const { status } = await rig.ask('POST', `/v2/${id}/run`, { key, body: { input: {} } })
    assert.equal(status, 200)
  }
  return { id, submit }
}

test('a reader sees a job from its acceptance to its end, and what its worker does', async t => {
  const rig = await openRig(t)
  const events = await follow(rig)
  const { endpoint, worker } = await rig.endpointWithWorker()
  const job = await rig.submit(endpoint)
  await worker.takeJob()
  await worker.done(job, { output: 1 })
  await rig.clock.settle()
  assert.equal(events.events[0]?.event, 'endpoint.saved')
  assert.ok(namesOf(events).includes('worker.created'), namesOf(events).join())
  const ofJob = events.events.filter(({ data }) => data.jobId === job)
  assert.deepEqual(
    ofJob.map(({ event, data }) => [event, data.endpointId, data.to, data.workerId ?? null]),
    [
      ['job.accepted', endpoint, 'IN_QUEUE', null],
      ['job.moved', endpoint, 'IN_PROGRESS', worker.id],
      ['job.moved', endpoint, 'COMPLETED', worker.id],
    ],
  )
  assert.ok(ofJob.every(({ event, data }) => event === data.type && !Number.isNaN(Date.parse(data.at))))
  await events.leave()
})

test('a reader that comes back gets what it missed, once', async t => {
  const rig = await openRig(t)
  const { endpoint } = await rig.endpointWithWorker()
  const first = await follow(rig)
  await rig.submit(endpoint)
  await rig.clock.settle()
  await first.leave()
  const jobs = [await rig.submit(endpoint), await rig.submit(endpoint)]
  const second = await follow(rig, '', after(first.lastId))
  assert.deepEqual(
    second.events.filter(({ event }) => event === 'job.accepted').map(({ data }) => data.jobId),
    jobs,
  )
  assert.ok(!namesOf(second).includes('missed'))
  await second.leave()
})

test('a reader is notified of lost events: after a restart, and after too long an absence', async t => {
  const rig = await openRig(t)
  const { endpoint } = await rig.endpointWithWorker()
  const first = await follow(rig)
  await rig.submit(endpoint)
  await rig.clock.settle()
  const known = first.lastId
  for (let sent = 0; sent < 4_100; sent += 1) await rig.submit(endpoint)
  const late = await follow(rig, '', after(known))
  assert.equal(late.events[0]?.event, 'missed')
  assert.ok(late.events[0].data.events > 0)
  assert.ok(late.events.length <= 4_001, String(late.events.length))
  await rig.crash()
  await rig.start()
  const restarted = await follow(rig, '', after(known))
  assert.deepEqual(restarted.events[0]?.data, { events: null })
  const unreadable = await follow(rig, '', after('nonsense'))
  assert.deepEqual(unreadable.events[0]?.data, { events: null })
  for (const reader of [restarted, unreadable]) await reader.leave()
})

test('events of another account and of other endpoints are not shown', async t => {
  const rig = await openRig(t)
  const { endpoint } = await rig.endpointWithWorker()
  const { endpoint: second } = await rig.endpointWithWorker()
  const key = await rig.addKey('theirs', { owner: 'other' as OwnerId })
  const theirs = await follow(rig, '', { key })
  const one = await follow(rig, `?endpoint=${second}`)
  await rig.submit(endpoint)
  await rig.submit(second)
  await rig.clock.settle()
  assert.deepEqual(theirs.events, [])
  assert.deepEqual([...new Set(one.events.map(({ data }) => data.endpointId))], [second])
  assert.equal((await rig.open(`/v2/events?endpoint=${endpoint}`, { key })).status, 404)
  for (const reader of [theirs, one]) await reader.leave()
})

test('a second account with many events does not push out the events of the first', async t => {
  const rig = await openRig(t)
  const { endpoint } = await rig.endpointWithWorker()
  const first = await follow(rig)
  const job = await rig.submit(endpoint)
  await rig.clock.settle()
  const known = first.lastId
  await first.leave()
  const loud = await endpointOf(rig, await rig.addKey('theirs', { owner: 'other' as OwnerId }))
  for (let sent = 0; sent < 2_500; sent += 1) await loud.submit()
  const quiet = await rig.submit(endpoint)
  const again = await follow(rig, '', after(known))
  assert.deepEqual(
    again.events.filter(({ event }) => event === 'job.accepted').map(({ data }) => data.jobId),
    [quiet],
  )
  assert.notEqual(job, quiet)
  await again.leave()
})

test('the stream needs the right to read, and counts towards a limit', async t => {
  const rig = await openRig(t)
  const jobsOnly = await rig.addKey('jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  assert.equal((await rig.open('/v2/events', { key: jobsOnly })).status, 403)
  const head = await rig.open('/v2/events', {}, 'HEAD')
  assert.deepEqual([head.status, await head.text()], [200, ''])
  const readers = []
  for (let open = 0; open < 100; open += 1) readers.push(await follow(rig))
  assert.equal((await rig.open('/v2/events')).status, 429)
  await readers.pop()!.leave()
  await rig.clock.settle()
  readers.push(await follow(rig))
  for (const reader of readers) await reader.leave()
})

test('the stream ends when its key is disabled', async t => {
  const rig = await openRig(t)
  const { json } = await rig.ask('POST', '/v2/account/keys', { body: { name: 'console' } })
  const events = await follow(rig, '', { key: json.key })
  assert.equal((await rig.ask('DELETE', `/v2/account/keys/${json.id}`)).status, 204)
  await rig.clock.settle()
  assert.ok(events.over)
})

test('a quiet stream has a comment every 15 s', async t => {
  const rig = await openRig(t)
  const events = await follow(rig)
  await rig.clock.advance(46_000)
  assert.ok(events.comments.length >= 3, String(events.comments.length))
  await events.leave()
})

test('a change of a record other than an endpoint is sent to its account alone, and without its content', async t => {
  const rig = await openRig(t)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const endpoint = await rig.endpoint()
  const [own, theirs, ofEndpoint] = [
    await follow(rig),
    await follow(rig, '', { key: stranger }),
    await follow(rig, `?endpoint=${endpoint}`),
  ]
  const { json } = await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: 'hf_hidden' } })
  const batch = await rig.ask('POST', `/v2/${endpoint}/batch`, { body: { requests: [{ input: {} }] } })
  await rig.ask('GET', '/v2/account/secrets')
  await rig.clock.settle()
  assert.deepEqual(
    own.events.map(({ event, data }) => [event, data.endpointId, data.surface, data.operation, data.object]),
    [
      ['change.made', null, 'rest', 'createSecret', json.id],
      ['change.made', null, 'jobs', 'batch', endpoint],
    ],
  )
  assert.equal(batch.status, 200)
  assert.ok(!JSON.stringify(own.events).includes('hidden'))
  assert.deepEqual([theirs.events, ofEndpoint.events], [[], []])
  for (const reader of [own, theirs, ofEndpoint]) await reader.leave()
})

test('a cancelled job is reported once, by the event of the job', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(endpoint)
  const events = await follow(rig)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${job}`)
  await rig.clock.settle()
  assert.deepEqual(namesOf(events), ['job.moved'])
  await events.leave()
})

test('kept events are listed newest first, page by page, by endpoint and by kind, and to their account alone', async t => {
  const rig = await openRig(t)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const { endpoint, worker } = await rig.endpointWithWorker()
  const other = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(endpoint)
  await worker.takeJob()
  await rig.submit(other)
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: 'hf_hidden' } })
  await rig.clock.settle()
  const list = async (query: string) => (await rig.ask('GET', `/ops/events?${query}`)).json
  const all: { id: string; type: string; at: string }[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { events, pagination } = await list(`limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
    assert.equal(pagination.hasNextPage, pagination.nextCursor !== null)
    all.push(...events)
    cursor = pagination.nextCursor
  }
  assert.equal(all[0]?.type, 'change.made')
  assert.equal(all.at(-1)?.type, 'endpoint.saved')
  assert.deepEqual(all, (await list('')).events)
  const instants = all.map(({ at }) => at)
  assert.deepEqual(instants, instants.toSorted().reverse())
  const jobsOfOne = (await list(`endpoint=${endpoint}&kind=job`)).events
  assert.deepEqual(
    jobsOfOne.map((event: { type: string; fields: { jobId: string } }) => [event.type, event.fields.jobId]),
    [
      ['job.moved', job],
      ['job.accepted', job],
    ],
  )
  assert.deepEqual((await list(`endpoint=${other}&kind=worker`)).events, [])
  // The list of an earlier run of the server had other ids.
  assert.deepEqual((await list('cursor=before-7')).events, [])
  assert.deepEqual((await rig.ask('GET', '/ops/events', { key: stranger })).json.events, [])
  for (const query of ['limit=0', 'limit=201', 'cursor=%20'])
    assert.equal((await rig.ask('GET', `/ops/events?${query}`)).status, 400, query)
  for (const [asking, id] of [
    [{}, 'nowhere'],
    [{ key: stranger }, endpoint],
  ] as const)
    assert.equal((await rig.ask('GET', `/ops/events?endpoint=${id}`, asking)).status, 404)
})
