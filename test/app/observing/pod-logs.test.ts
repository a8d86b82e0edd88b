/** The logs of a worker at the path of Flash and `rp logs`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { EventReader } from '../../support/event-stream.ts'
import { openRig } from '../../support/rig.ts'

const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /

test('the logs of a worker are lists of lines behind their times, by source', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.print(worker.id, 'loading')
  rig.print(worker.id, 'ready')
  await rig.clock.advance(1_000)
  const path = `/v1/pod/${worker.id}/logs`
  const { status, json } = await rig.ask('GET', path)
  assert.equal(status, 200)
  const texts = (lines: string[]) => lines.map(line => line.replace(STAMP, ''))
  assert.deepEqual(texts(json.container), ['loading', 'ready'])
  assert.ok(json.container.every((line: string) => STAMP.test(line)))
  assert.ok(json.system.length > 0 && json.system.every((line: string) => STAMP.test(line)))
  const one = (await rig.ask('GET', `${path}?type=container&tail=1`)).json
  assert.deepEqual([texts(one.container), one.system], [['ready'], []])
  assert.deepEqual((await rig.ask('GET', `${path}?type=system`)).json.container, [])
  await rig.graphql(
    `mutation { saveEndpoint(input: { id: "${endpoint}", name: "x", workersMin: 0, workersMax: 0 }) { id } }`,
  )
  await rig.clock.advance(60_000)
  assert.deepEqual(
    texts((await rig.ask('GET', path)).json.container),
    ['loading', 'ready'],
    'also of one that has ended',
  )
})

test('the logs of a worker have a bound, and the newest lines are shown', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  for (let number = 0; number < 60; number += 1) rig.print(worker.id, `${number} ${'x'.repeat(30_000)}`)
  await rig.clock.advance(1_000)
  const { json, text } = await rig.ask('GET', `/v1/pod/${worker.id}/logs?tail=5000`)
  assert.ok(text.length < 1_200_000, `${text.length} characters`)
  assert.match(json.container.at(-1), /Z 59 x/)
  assert.ok(json.container.length < 60 && json.container.length > 20)
})

test('the logs of a worker are followed as server-sent events with stream=true', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  rig.print(worker.id, 'one')
  const answer = await rig.open(`/v1/pod/${worker.id}/logs?stream=true&type=all&tail=100`)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
  const reader = new EventReader(answer)
  await rig.clock.settle()
  rig.print(worker.id, 'two')
  await rig.clock.advance(300)
  const own = reader.events.filter(({ data }) => data.source === 'container')
  assert.deepEqual(
    own.map(({ data }) => data.line),
    ['one', 'two'],
  )
  assert.deepEqual(Object.keys(own[0]!.data), ['ts', 'source', 'line'])
  await reader.leave()
})

test('the logs of a worker are followed at the path of pods in version 2, too', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  rig.print(worker.id, 'one')
  const reader = new EventReader(await rig.open(`/v2/pods/${worker.id}/logs?tail=100&source=container`))
  await rig.clock.settle()
  rig.print(worker.id, 'two')
  await rig.clock.advance(300)
  assert.deepEqual(
    reader.events.map(({ data }) => data.line),
    ['one', 'two'],
  )
  await reader.leave()
  const key = await rig.addKey('rpa_stranger', { owner: 'other' as OwnerId })
  assert.equal((await rig.ask('GET', `/v2/pods/${worker.id}/logs`, { key })).status, 404)
  const absent = await rig.ask('GET', '/v2/pods/nothing/logs')
  assert.deepEqual([absent.status, absent.json.detail], [404, 'pod nothing not found'])
})

test('the logs of a worker are for keys that may read it, and no other account learns of it', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  const stranger = await rig.addKey('rpa_stranger', { owner: 'other' as OwnerId })
  const jobsOnly = await rig.addKey('rpa_jobs', {
    scope: { type: 'restricted', management: 'none', jobs: 'write' },
  })
  const path = `/v1/pod/${worker.id}/logs`
  for (const [target, key, expected] of [
    [path, null, 401],
    [path, 'rpa_wrong', 401],
    [path, jobsOnly, 403],
    [path, stranger, 404],
    ['/v1/pod/nothing/logs', undefined, 404],
    [`${path}?type=other`, undefined, 400],
    [`${path}?tail=6000`, undefined, 400],
    [`${path}?stream=true`, stranger, 404],
  ] as const) {
    const { status } = await rig.ask('GET', target, key === undefined ? {} : { key })
    assert.equal(status, expected, `${target} ${key}`)
  }
})
