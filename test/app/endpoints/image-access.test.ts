/**
 * Images of accounts other than the operator's come from public registries, and these accounts do
 * not see the messages of an engine about one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { startFailureText } from '../../../src/core/workers/start-failure.ts'
import { makeLiveEvent } from '../../../src/services/observing/live-event.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const STRANGER = 'user_stranger' as OwnerId

async function stranger(rig: Rig): Promise<string> {
  return rig.addKey('rpa_stranger', { owner: STRANGER })
}

/** An endpoint of the stranger with a job that waits. */
async function withJob(rig: Rig, key: string, image: string): Promise<EndpointId> {
  const endpoint = await rig.endpoint({ template: { imageName: image } }, { key })
  await rig.submit(endpoint, { input: {} }, { key })
  await rig.clock.advance(100)
  return endpoint
}

async function why(rig: Rig, key: string, endpoint: EndpointId) {
  return (await rig.ask('GET', `/v2/${endpoint}/explain`, { key })).text
}

test('an image of a private registry is refused where it is saved, on each surface, for other accounts alone', async t => {
  const rig = await openRig(t)
  const key = await stranger(rig)
  const graphql = (image: string, asking: object) => {
    const template = { name: image, imageName: image, containerDiskInGb: 1, volumeInGb: 0, isServerless: true, env: [] }
    const query = 'mutation($input: SaveTemplateInput!) { saveTemplate(input: $input) { id } }'
    const variables = { input: { ...template, dockerArgs: '' } }
    return rig.ask('POST', '/graphql', { ...asking, body: { query, variables } })
  }
  const rest = (image: string, asking: object) =>
    rig.ask('POST', '/v2/templates', { ...asking, body: { name: `r ${image}`, image } })
  const v1 = (image: string, asking: object) =>
    rig.ask('POST', '/v1/templates', { ...asking, body: { name: `v ${image}`, imageName: image, isServerless: true } })
  for (const image of [
    '127.0.0.1:9000/x/y:1',
    'localhost/x:1',
    '2130706433:80/x',
    `[::1]:5000/x/y@sha256:${'a'.repeat(64)}`,
  ]) {
    for (const save of [graphql, rest, v1]) {
      const refused = await save(image, { key })
      assert.match(refused.text, /is not public, and the operator allows this account public ones only/, refused.text)
      const saved = await save(image, {})
      assert.ok(saved.status < 300 && !saved.text.includes('"errors"'), saved.text)
    }
  }
  for (const image of ['python:3', 'ghcr.io/me/x:1', 'registry.lan/x:1']) {
    const saved = await rest(image, { key })
    assert.ok(saved.status < 300, saved.text)
  }
})

test('an image that was saved before starts no worker, and why says so', async t => {
  const rig = await openRig(t)
  const key = await stranger(rig)
  const endpoint = await withJob(rig, key, 'public.example/x:1')
  const { templateId, owner } = (await rig.store.endpoints.find(endpoint))!
  const template = (await rig.store.templates.find(owner, templateId))!
  const started = rig.fleet.started.length
  await rig.store.templates.replace({ ...template, image: '10.0.0.1:5000/x:1' }, template, rig.clock.now())
  await rig.clock.advance(20_000)
  assert.match(await why(rig, key, endpoint), /10\.0\.0\.1:5000 is not public/)
  assert.ok(rig.fleet.started.slice(started).every(({ image }) => !image.startsWith('10.')))
})

test('a start has a guard that resolves the name of the registry at each download; starts of the operator have no guard', async t => {
  const rig = await openRig(t)
  const key = await stranger(rig)
  await withJob(rig, key, 'rebound.example/x:1')
  const { guard } = rig.fleet.started.at(-1)!
  assert.equal(await guard!(), null)
  rig.resolve = () => [{ address: '127.0.0.1', family: 4 }]
  assert.equal((await guard!())?.kind, 'registry_private')
  rig.resolve = () => []
  assert.match(startFailureText((await guard!())!), /rebound\.example cannot be reached$/)
  const own = await rig.endpoint({ template: { imageName: '127.0.0.1:5000/x:1' } })
  await rig.submit(own)
  await rig.clock.advance(100)
  assert.equal(rig.fleet.started.at(-1)!.image, '127.0.0.1:5000/x:1')
  assert.equal(rig.fleet.started.at(-1)!.guard, undefined)
})

test('what an engine says of a registry is in the log of the server and nowhere that another account reads', async t => {
  const rig = await openRig(t)
  const key = await stranger(rig)
  const said = 'error parsing HTTP 404 response body: <secret of an internal service>'
  const failure = { kind: 'pull_failed', image: 'a.example/x:1', host: 'a.example', why: 'unknown', said } as const
  rig.fleet.failNextStart(failure)
  const endpoint = await withJob(rig, key, 'a.example/x:1')
  const [worker] = await rig.store.workers.list(endpoint)
  const [started] = rig.happened('worker.start_failed')
  const shown = JSON.stringify([
    worker,
    await why(rig, key, endpoint),
    (await rig.ask('GET', `/v2/${endpoint}/workers?all=true`, { key })).text,
    makeLiveEvent('worker.start_failed', started!, 0),
  ])
  assert.doesNotMatch(shown, /secret of an internal service/)
  assert.match(shown, /cannot be downloaded: the log of the server has the reason/)
  assert.match(rig.happened('image.download_failed')[0]!.problem, /secret of an internal service/)
  assert.equal(makeLiveEvent('image.download_failed', rig.happened('image.download_failed')[0]!, 0), null)
  rig.fleet.failNextStart(failure)
  const own = await rig.endpoint()
  await rig.submit(own)
  await rig.clock.advance(100)
  assert.match(JSON.stringify(await rig.why(own)), /secret of an internal service/)
})
