/** Saving an endpoint: one way for every surface, which reads each row once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type EndpointId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const ENDPOINT = {
  name: 'images',
  type: 'QUEUE',
  image: 'example/images:1',
  cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
}
const SAVE = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'

/** Reads of endpoints and templates during a request. */
async function readsOf(rig: Rig, request: () => Promise<unknown>): Promise<{ endpoints: number; templates: number }> {
  const counts = () => [rig.calls('endpoints.find'), rig.calls('templates.find')] as const
  const before = counts()
  await request()
  const [endpoints, templates] = counts()
  return { endpoints: endpoints - before[0], templates: templates - before[1] }
}

test('a change reads its endpoint and template once, on every surface, and a creation reads neither', async t => {
  const rig = await openRig(t)
  let id = ''
  const create = async () => {
    id = (await rig.ask('POST', '/v2/serverless', { body: ENDPOINT })).json.id
  }
  assert.deepEqual(await readsOf(rig, create), { endpoints: 0, templates: 0 })
  const once = { endpoints: 1, templates: 1 }
  const requests: Record<string, () => Promise<unknown>> = {
    'REST v2': () =>
      rig.ask('PATCH', `/v2/serverless/${id}`, { body: { workers: { max: 5 }, image: 'example/images:2' } }),
    'REST v2, tried': () => rig.ask('PATCH', `/v2/serverless/${id}?dryRun=true`, { body: { workers: { max: 6 } } }),
    'REST v1': () => rig.ask('PATCH', `/v1/endpoints/${id}`, { body: { workersMax: 7 } }),
    GraphQL: () => rig.graphql(SAVE, { input: { id, name: 'pictures', workersMax: 8 } }),
  }
  for (const [surface, request] of Object.entries(requests))
    assert.deepEqual(await readsOf(rig, request), once, surface)
  const { workers, name, image } = (await rig.ask('GET', `/v2/serverless/${id}`)).json
  assert.deepEqual([workers.max, name, image], [8, 'pictures', 'example/images:2'])
})

test('a change of a template reads it once', async t => {
  const rig = await openRig(t)
  const { id } = (await rig.ask('POST', '/v2/templates', { body: { name: 'llama', image: 'example/llama:1' } })).json
  for (const path of [`/v2/templates/${id}`, `/v2/templates/${id}?dryRun=true`, `/v1/templates/${id}`]) {
    const reads = await readsOf(rig, () => rig.ask('PATCH', path, { body: { env: { PATH_OF: path } } }))
    assert.deepEqual(reads, { endpoints: 0, templates: 1 }, path)
  }
})

test('a save returns the endpoint with its template before and after, and a trial of it the same', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const id = (await rig.ask('POST', '/v2/serverless', { body: ENDPOINT })).json.id as EndpointId
  const known = await endpoints.withTemplate(DEFAULT_OWNER, id)
  const change = { id, changes: { workersMax: 5 }, template: { image: 'example/images:2' } }
  const tried = await endpoints.save(DEFAULT_OWNER, change, true)
  assert.deepEqual(await endpoints.withTemplate(DEFAULT_OWNER, id), known, 'a trial changes nothing')
  const saved = await endpoints.save(DEFAULT_OWNER, change)
  assert.deepEqual(saved, tried)
  assert.deepEqual(saved.previous, known)
  const { endpoint, template } = saved
  assert.deepEqual(await endpoints.withTemplate(DEFAULT_OWNER, id), { endpoint, template })
})
