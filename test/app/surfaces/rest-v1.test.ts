/** REST version 1 where a tool says little: what an endpoint is then made of. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CPU_FLAVORS, GPU_POOLS } from '../../../src/core/hardware/catalog-data.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const ALL_TYPES = GPU_POOLS.flatMap(({ gpuTypes }) => gpuTypes)
const ALL_FLAVORS = CPU_FLAVORS.map(({ id }) => id)

async function create(rig: Rig, fields: object) {
  const templateId = await rig.template({ env: [{ key: 'A', value: 'template' }] })
  return rig.ask('POST', '/v1/endpoints', { body: { templateId, ...fields } })
}

test('an endpoint is made from a template alone, and takes any GPU type of a serverless pool', async t => {
  const rig = await openRig(t)
  for (const fields of [{}, { gpuTypeIds: [] }, { computeType: 'GPU', cpuFlavorIds: ['cpu3c'] }]) {
    const { status, json, text } = await create(rig, fields)
    assert.equal(status, 201, text)
    assert.deepEqual([json.computeType, json.gpuCount, json.gpuTypeIds], ['GPU', 1, ALL_TYPES])
    const pools = (await rig.ask('GET', `/v2/serverless/${json.id}`)).json.gpu.pools
    assert.deepEqual(
      pools,
      GPU_POOLS.map(({ id }) => id),
    )
  }
  const two = await create(rig, { gpuCount: 2, minCudaVersion: '12.4' })
  assert.deepEqual([two.json.gpuCount, two.json.minCudaVersion, two.json.gpuTypeIds], [2, '12.4', ALL_TYPES])
})

test('a CPU endpoint that names no flavor takes each of them', async t => {
  const rig = await openRig(t)
  for (const fields of [{}, { cpuFlavorIds: [] }]) {
    const { json, text } = await create(rig, { computeType: 'CPU', vcpuCount: 4, ...fields })
    assert.deepEqual([json.computeType, json.vcpuCount, json.cpuFlavorIds], ['CPU', 4, ALL_FLAVORS], text)
  }
  const { json } = await create(rig, { cpuFlavorIds: ['cpu5c'] })
  assert.deepEqual([json.computeType, json.cpuFlavorIds], ['CPU', ['cpu5c']])
  const one = await create(rig, { gpuTypeIds: ['NVIDIA L4'], cpuFlavorIds: [] })
  assert.deepEqual([one.json.computeType, one.json.gpuTypeIds], ['GPU', ['NVIDIA L4']])
})

test("an endpoint's own variables are kept, shown, changed, and win over its template's", async t => {
  const rig = await openRig(t)
  const { json } = await create(rig, { env: { A: 'endpoint', B: '1' } })
  assert.deepEqual(json.env, { A: 'endpoint', B: '1' })
  const path = `/v1/endpoints/${json.id}`
  assert.deepEqual((await rig.store.endpoints.find(json.id as EndpointId))?.env, { A: 'endpoint', B: '1' })
  assert.deepEqual((await rig.ask('GET', `/v2/serverless/${json.id}`)).json.env, { A: 'endpoint', B: '1' })
  assert.deepEqual((await rig.ask('PATCH', path, { body: { workersMax: 1 } })).json.env, { A: 'endpoint', B: '1' })
  const changed = (await rig.ask('PATCH', path, { body: { env: { B: '2' } } })).json
  assert.deepEqual([changed.env, changed.version], [{ B: '2' }, 2])
  const refused = await create(rig, { env: { '': 'x' } })
  assert.equal(refused.status, 400)
})

test('a refused field has the name that this version gives it', async t => {
  const rig = await openRig(t)
  const workers = await create(rig, { workersMin: 3, workersMax: 2, scalerType: 'REQUEST_COUNT', scalerValue: 0.5 })
  assert.deepEqual(
    [workers.status, workers.json.errors],
    [
      400,
      [
        'workersMin (3) must not exceed workersMax (2)',
        'scalerValue must be an integer of at least 1 for REQUEST_COUNT',
      ],
    ],
  )
  const template = await create(rig, { templateId: 'nothing' })
  assert.deepEqual(template.json.errors, ['templateId: template nothing not found'])
})

test('the list of pods has tasks alone, and anything else about them is refused with the reason', async t => {
  const rig = await openRig(t)
  const { status, json } = await rig.ask('GET', '/v1/pods')
  assert.deepEqual([status, json], [200, []])
  assert.equal((await rig.ask('GET', '/v1/pods', { key: null })).status, 401)
  for (const [method, path, status] of [
    ['GET', '/v1/pods/p1', 404],
    ['DELETE', '/v1/pods/p1', 404],
    ['POST', '/v1/pods', 405],
  ] as const) {
    const refused = await rig.ask(method, path)
    assert.deepEqual(
      [refused.status, /pods? p1 not found$|has no other pods$/.test(refused.json.message)],
      [status, true],
      refused.text,
    )
  }
})

test('a registry shows its user name and never its password', async t => {
  const rig = await openRig(t)
  const made = await rig.ask('POST', '/v1/containerregistryauth', {
    body: { name: 'hub', username: 'me', password: 'hidden' },
  })
  const shown = { id: made.json.id, name: 'hub', username: 'me' }
  assert.deepEqual(made.json, shown)
  const one = await rig.ask('GET', `/v1/containerregistryauth/${made.json.id}`)
  const all = await rig.ask('GET', '/v1/containerregistryauth')
  assert.deepEqual([one.json, all.json], [shown, [shown]])
  assert.deepEqual((await rig.ask('GET', `/v2/registries/${made.json.id}`)).json, { id: made.json.id, name: 'hub' })
})
