/** REST version 1 as tools that are installed send it. */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { ask, whenFinal } from '../support/client.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { imageFor } from '../support/workers.ts'

let server: Server

before(async () => {
  server = await startServer()
})

test('a template and an endpoint are created, listed, changed and deleted, while jobs run', async () => {
  const v1 = (method: string, path: string, body?: object) => ask(server, `/v1${path}`, { method, body })
  const image = await imageFor(fixture('node-everyday'))
  const template = await v1('POST', '/templates', { name: 't1', imageName: image, isServerless: true, env: { A: '1' } })
  assert.deepEqual([template.status, template.json.imageName, template.json.volumeInGb], [201, image, 0])
  const made = await v1('POST', '/endpoints', {
    name: 'e1',
    templateId: template.json.id,
    gpuTypeIds: ['NVIDIA GeForce RTX 4090'],
    flashboot: false,
    workersMin: 0,
    workersMax: 2,
    scalerType: 'QUEUE_DELAY',
    scalerValue: 4,
    unknown: 'is ignored',
  })
  assert.equal(made.status, 201, made.text)
  assert.deepEqual([made.json.idleTimeout, made.json.gpuTypeIds], [5, ['NVIDIA GeForce RTX 4090']])
  const { id } = made.json
  const submitted = await ask(server, `/v2/${id}/run`, { body: { input: { name: 'Ada' } } })
  assert.equal((await whenFinal(server, id, submitted.json.id)).status, 'COMPLETED')
  const patched = await v1('PATCH', `/endpoints/${id}`, { workersMax: 0 })
  assert.deepEqual([patched.json.workersMax, patched.json.workersMin, patched.json.name], [0, 0, 'e1'])
  assert.equal((await v1('POST', `/endpoints/${id}/update`, { name: 'e2' })).json.name, 'e2')
  const [listed] = (await v1('GET', '/endpoints?includeTemplate=true&includeWorkers=true')).json
  assert.deepEqual([listed.name, listed.template.name, Array.isArray(listed.workers)], ['e2', 't1', true])
  assert.equal((await ask(server, `/v2/serverless/${id}`)).json.name, 'e2', 'both versions show the same endpoint')
  const inUse = await v1('DELETE', `/templates/${template.json.id}`)
  assert.match(inUse.json.message, /in use/)
  assert.equal((await v1('DELETE', `/endpoints/${id}`)).status, 204)
  assert.equal((await v1('DELETE', `/templates/${template.json.id}`)).status, 204)
  const gone = await v1('GET', `/endpoints/${id}`)
  assert.deepEqual([gone.status, gone.json.message], [404, `endpoint ${id} not found`])
})

test('credentials, volumes and bills come as bare lists', async () => {
  const v1 = (method: string, path: string, body?: object) => ask(server, `/v1${path}`, { method, body })
  const login = await v1('POST', '/containerregistryauth', { name: 'hub', username: 'me', password: 'hidden' })
  const shown = { id: login.json.id, name: 'hub', username: 'me' }
  assert.deepEqual([login.json, (await v1('GET', '/containerregistryauth')).json], [shown, [shown]])
  assert.deepEqual((await v1('GET', `/containerregistryauth/${login.json.id}`)).json, shown)
  assert.deepEqual((await v1('GET', '/pods')).json, [])
  const volume = await v1('POST', '/networkvolumes', { name: 'v', size: 10, dataCenterId: 'EU-RO-1' })
  assert.deepEqual((await v1('GET', '/networkvolumes')).json, [volume.json])
  assert.equal((await v1('PATCH', `/networkvolumes/${volume.json.id}`, { size: 20 })).json.size, 20)
  assert.deepEqual((await v1('GET', '/billing/networkvolumes')).json, [])
  for (const { amount, endpointId, time } of (await v1('GET', '/billing/endpoints?bucketSize=month')).json) {
    assert.deepEqual([amount, typeof endpointId, time.slice(7)], [0, 'string', '-01T00:00:00Z'])
  }
})
