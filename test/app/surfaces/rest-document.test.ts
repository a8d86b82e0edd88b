/** The OpenAPI document says as much of our rules as a document can, so that who follows it is not refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openRig } from '../../support/rig.ts'

test('numbers of vCPUs that can be asked about are listed, and the server takes them and no others', async t => {
  const rig = await openRig(t)
  const { paths } = (await rig.ask('GET', '/v2/openapi.json')).json
  for (const path of ['/v2/catalog/cpus', '/v2/catalog/cpus/{id}']) {
    const { parameters } = paths[path].get
    const { schema } = parameters.find(({ name }: { name: string }) => name === 'vcpuCount')
    assert.deepEqual(schema.enum, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024])
  }
  const asked = async (count: number) =>
    (await rig.ask('GET', `/v2/catalog/cpus?include=AVAILABILITY&product=SERVERLESS&vcpuCount=${count}`)).status
  assert.deepEqual([await asked(2), await asked(1024), await asked(3), await asked(2048)], [200, 200, 400, 400])
})

test('network volumes of an endpoint are said to differ, and whole numbers of queries to have an end', async t => {
  const rig = await openRig(t)
  const { paths, components } = (await rig.ask('GET', '/v2/openapi.json')).json
  const schemas = Object.values<{ properties?: Record<string, { uniqueItems?: boolean }> }>(components.schemas)
  const lists = schemas.flatMap(({ properties }) => properties?.networkVolumes ?? [])
  assert.equal(lists.filter(({ uniqueItems }) => uniqueItems === true).length, 2)
  const { parameters } = paths['/v2/catalog/gpus'].get
  const { schema } = parameters.find(({ name }: { name: string }) => name === 'count')
  assert.equal(schema.maximum, Number.MAX_SAFE_INTEGER)
})
