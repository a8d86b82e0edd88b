/** Changes that are only tried: everything is checked, and nothing is changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OwnerId } from '../../../src/core/ids.ts'
import { type Answer, openRig, type Rig } from '../../support/rig.ts'

const ENDPOINT = {
  name: 'images',
  type: 'QUEUE',
  image: 'example/images:1',
  cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
  workers: { min: 0, max: 3 },
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  env: { MODEL: 'base' },
}

/** All records, as their owner sees them. */
async function state(rig: Rig, key?: string): Promise<string> {
  const asking = key === undefined ? {} : { key }
  const parts = await Promise.all(
    ['/v2/serverless', '/v2/templates'].map(async path => (await rig.ask('GET', path, asking)).text),
  )
  return parts.join('\n')
}

/** A problem document without the id of its request. */
function problemOf({ json: { requestId: _, ...problem } }: Answer): object {
  return problem
}

test('an endpoint that is only tried is shown as it would be made, and is not there', async t => {
  const rig = await openRig(t)
  const before = await state(rig)
  const tried = await rig.ask('POST', '/v2/serverless?dryRun=true', { body: ENDPOINT })
  assert.equal(tried.status, 201, tried.text)
  assert.equal(await state(rig), before)
  assert.equal((await rig.ask('GET', `/v2/serverless/${tried.json.id}`)).status, 404)
  assert.deepEqual([rig.happened('endpoint.saved'), rig.happened('change.made')], [[], []])
  const made = await rig.ask('POST', '/v2/serverless', { body: ENDPOINT })
  const without = ({ id, requestUrls, createdAt, ...rest }: Record<string, unknown>) => rest
  assert.deepEqual(without(tried.json), without(made.json))
  assert.equal(tried.json.name, 'images')
})

test('a trial of a new endpoint is refused as the creation would be, with the same problem document', async t => {
  const rig = await openRig(t, { accountLimits: { objects: 1 } })
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const bodies = [
    { ...ENDPOINT, name: '' },
    { ...ENDPOINT, workers: { min: 4, max: 3 } },
    { ...ENDPOINT, networkVolumes: ['nothing'] },
    { ...ENDPOINT, registry: 'nothing' },
    { ...ENDPOINT, templateId: 'nothing' },
    { ...ENDPOINT, image: 'dir:/nowhere' },
    { ...ENDPOINT, unknown: true },
  ]
  for (const body of bodies) {
    const [tried, made] = [
      await rig.ask('POST', '/v2/serverless?dryRun=true', { body, key: stranger }),
      await rig.ask('POST', '/v2/serverless', { body, key: stranger }),
    ]
    assert.ok(tried.status >= 400, `${tried.status} ${JSON.stringify(body)}`)
    assert.deepEqual([tried.status, problemOf(tried)], [made.status, problemOf(made)])
  }
  assert.equal((await rig.ask('POST', '/v2/serverless', { body: ENDPOINT, key: stranger })).status, 201)
  const full = await rig.ask('POST', '/v2/serverless?dryRun=true', { body: ENDPOINT, key: stranger })
  assert.equal(full.status, 409, full.text)
  assert.match(full.json.detail, /endpoint/)
})

test('a change that is only tried is checked against the endpoint as it is, and leaves it so', async t => {
  const rig = await openRig(t)
  const { id } = (await rig.ask('POST', '/v2/serverless', { body: ENDPOINT })).json
  const before = await state(rig)
  const path = `/v2/serverless/${id}`
  const body = { env: { MODEL: 'large' }, workers: { max: 5 }, image: 'example/images:2' }
  const tried = await rig.ask('PATCH', `${path}?dryRun=true`, { body })
  assert.equal(tried.status, 200, tried.text)
  assert.deepEqual([tried.json.env, tried.json.workers.max, tried.json.image], [{ MODEL: 'large' }, 5, body.image])
  assert.equal(await state(rig), before)
  assert.equal((await rig.ask('GET', `${path}/releases`)).json.endpointVersion, 1)
  for (const wrong of [{ workers: { min: 9 } }, { networkVolumes: ['nothing'] }, { rollout: { canary: 10 } }]) {
    const [dry, real] = [
      await rig.ask('PATCH', `${path}?dryRun=true`, { body: wrong }),
      await rig.ask('PATCH', path, { body: wrong }),
    ]
    assert.equal(dry.status, 400, dry.text)
    assert.deepEqual(problemOf(dry), problemOf(real))
  }
  assert.deepEqual((await rig.ask('PATCH', path, { body })).json, tried.json)
})

test('a template that is only tried is not there, and its name has to be free', async t => {
  const rig = await openRig(t)
  const body = { name: 'whisper', image: 'example/whisper:1', serverless: true }
  const before = await state(rig)
  const tried = await rig.ask('POST', '/v2/templates?dryRun=true', { body })
  assert.deepEqual([tried.status, tried.json.name], [201, 'whisper'])
  assert.equal(await state(rig), before)
  const { id } = (await rig.ask('POST', '/v2/templates', { body })).json
  const other = (await rig.ask('POST', '/v2/templates', { body: { ...body, name: 'other' } })).json
  const again = await rig.ask('POST', '/v2/templates?dryRun=true', { body })
  const refused = await rig.ask('POST', '/v2/templates', { body })
  assert.deepEqual([again.status, problemOf(again)], [400, problemOf(refused)])
  const changed = await rig.ask('PATCH', `/v2/templates/${id}?dryRun=true`, { body: { env: { A: '1' } } })
  assert.deepEqual([changed.status, changed.json.env], [200, { A: '1' }])
  assert.deepEqual((await rig.ask('GET', `/v2/templates/${id}`)).json.env, {})
  const taken = await rig.ask('PATCH', `/v2/templates/${other.id}?dryRun=true`, { body: { name: 'whisper' } })
  assert.equal(taken.status, 400, taken.text)
})

test('a trial needs the right to write, finds nothing of other accounts, and takes true or false', async t => {
  const rig = await openRig(t)
  const { id } = (await rig.ask('POST', '/v2/serverless', { body: ENDPOINT })).json
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const change = (key: string) => rig.ask('PATCH', `/v2/serverless/${id}?dryRun=true`, { key, body: { name: 'mine' } })
  assert.equal((await change(reader)).status, 403)
  assert.equal((await change(stranger)).status, 404)
  assert.equal((await rig.ask('POST', '/v2/serverless?dryRun=true', { key: reader, body: ENDPOINT })).status, 403)
  assert.equal((await rig.ask('POST', '/v2/serverless?dryRun=yes', { body: ENDPOINT })).status, 400)
})
