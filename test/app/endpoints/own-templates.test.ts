/** Endpoints that show what they run as their own, over templates that may be shared. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EndpointConfig, withDefaults } from '../../../src/core/endpoints/endpoint.ts'
import { DEFAULT_OWNER, type EndpointId, type OwnerId, type TemplateId } from '../../../src/core/ids.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const CONFIG: EndpointConfig = withDefaults({
  name: 'mine',
  compute: { kind: 'cpu', configs: [{ flavor: 'cpu3g', vcpuCount: 2 }] },
})
const ME = DEFAULT_OWNER

const templateNames = async (rig: Rig) => (await rig.store.templates.list(ME)).map(({ name }) => name)

test('an endpoint with a template of its own shows it in no list, and takes it along', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const { id } = (await endpoints.save(ME, { config: CONFIG, runs: { image: 'image:1', env: { A: '1' } } })).endpoint
  const endpoint = await endpoints.find(ME, id)
  const template = (await endpoints.withTemplate(endpoint.owner, endpoint.id)).template
  assert.deepEqual(
    [template.image, template.env, template.isServerless, template.volumeGb, template.diskGb, template.listed],
    ['image:1', { A: '1' }, true, 0, 10, false],
  )
  assert.deepEqual(await templateNames(rig), [])
  await endpoints.remove(ME, id, true)
  assert.equal(await rig.store.templates.find(ME, template.id), null)
})

test('all mistakes of an endpoint and its own template are reported at once, with the names of the model', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const config = { ...CONFIG, name: '', workersMin: 3, workersMax: 1 }
  await assert.rejects(endpoints.save(ME, { config, runs: { image: ' ', diskGb: 0 } }), {
    code: 'invalid',
    failures: [
      ...['name must not be empty', 'workersMin (3) must not exceed workersMax (1)', 'image must not be empty'],
      'diskGb must be an integer of at least 1',
    ],
  })
  assert.deepEqual(await rig.store.endpoints.ids(), [])
})

test('a change of the template of an endpoint makes one new version, and an empty change makes no version', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const { id, templateId } = (await endpoints.save(ME, { config: CONFIG, runs: { image: 'image:1' } })).endpoint
  const template = { image: 'image:2' }
  const { endpoint: changed } = await endpoints.save(ME, { id, changes: { flashboot: 'FLASHBOOT' }, template })
  assert.deepEqual([changed.version, changed.templateId], [2, templateId])
  assert.equal((await endpoints.withTemplate(changed.owner, changed.id)).template.image, 'image:2')
  const { endpoint: same } = await endpoints.save(ME, { id, changes: { name: 'renamed' }, template })
  assert.deepEqual([same.version, same.name], [2, 'renamed'])
})

test('a change of what a linked endpoint runs copies the template, and leaves the others alone', async t => {
  const rig = await openRig(t)
  const { endpoints, templates } = servicesOf(rig)
  const shared = await rig.template({ name: 'shared', env: [{ key: 'T', value: '1' }] })
  const linked = await rig.endpoint({ templateId: shared, env: [] })
  const { endpoint: other } = await endpoints.save(ME, { config: CONFIG, runs: shared })
  await endpoints.save(ME, { id: linked, changes: { env: { E: '1' } } })
  const { endpoint: changed } = await endpoints.save(ME, { id: linked, template: { env: { N: '2' } } })
  assert.notEqual(changed.templateId, shared)
  const own = (await endpoints.withTemplate(changed.owner, changed.id)).template
  assert.deepEqual([own.env, changed.env, own.listed], [{ N: '2' }, {}, false])
  assert.deepEqual((await templates.find(ME, shared)).env, { T: '1' })
  assert.equal((await endpoints.find(ME, other.id)).version, 1)
  assert.equal(changed.version, 3)
  assert.deepEqual(await templateNames(rig), ['shared'])
  await endpoints.save(ME, { id: linked, changes: { templateId: shared } })
  assert.equal(await rig.store.templates.find(ME, own.id), null, 'nobody has the copy any more')
})

test('an unlisted template that a second endpoint was linked to is copied, too', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const { endpoint: first } = await endpoints.save(ME, { config: CONFIG, runs: { image: 'image:1' } })
  const { endpoint: second } = await endpoints.save(ME, { config: CONFIG, runs: first.templateId })
  const { endpoint: changed } = await endpoints.save(ME, { id: second.id, template: { image: 'image:2' } })
  assert.notEqual(changed.templateId, first.templateId)
  assert.equal((await endpoints.withTemplate(ME, first.id)).template.image, 'image:1')
})

test('a change that is computed from the present state includes concurrent changes of others', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const { id } = (await endpoints.save(ME, { config: CONFIG, runs: { image: 'image:1', env: { N: '0' } } })).endpoint
  const count = () =>
    endpoints.save(ME, {
      id,
      changes: ({ workersMax }) => ({ workersMax: workersMax + 1 }),
      template: (_, { env }) => ({ env: { N: String(Number(env.N) + 1) } }),
    })
  await Promise.all([count(), count(), count()])
  const endpoint = await endpoints.find(ME, id)
  assert.deepEqual([endpoint.workersMax, endpoint.version], [6, 4])
  assert.deepEqual((await endpoints.withTemplate(endpoint.owner, endpoint.id)).template.env, { N: '3' })
})

test('an idleTimeout that would have no effect is refused where it is given', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  const { id } = (await endpoints.save(ME, { config: CONFIG, runs: { image: 'image:1' } })).endpoint
  const requests = { scaler: { type: 'REQUEST_COUNT', requestCount: 2 } } as const
  await assert.rejects(
    endpoints.save(ME, { id, changes: { ...requests, idleTimeoutS: 9 }, refusesUnusedIdleTimeout: true }),
    {
      message: 'idleTimeoutS does not apply to a queue that scales on requestCount; leave it out',
    },
  )
  await endpoints.save(ME, { id, changes: requests, refusesUnusedIdleTimeout: true })
  assert.equal((await endpoints.find(ME, id)).idleTimeoutS, 10, 'it is kept')
})

test('a template in use stays serverless', async t => {
  const rig = await openRig(t)
  const { endpoints, templates } = servicesOf(rig)
  const { templateId } = await endpoints.find(ME, await rig.endpoint())
  await assert.rejects(templates.save(ME, { id: templateId, changes: { isServerless: false } }), { code: 'invalid' })
})

test('a public template is seen by others without its registry, and changed by its owner alone', async t => {
  const rig = await openRig(t)
  const { endpoints, templates } = servicesOf(rig)
  const stranger = 'stranger' as OwnerId
  const { templateId } = await endpoints.find(ME, await rig.endpoint())
  await assert.rejects(templates.findVisible(stranger, templateId), { code: 'not_found' })
  await templates.save(ME, { id: templateId, changes: { isPublic: true } })
  const seen = await templates.findVisible(stranger, templateId)
  assert.deepEqual([seen.image, seen.registry], ['image:1', null])
  assert.deepEqual(
    (await templates.listPublic()).items.map(({ id }) => id),
    [templateId],
  )
  for (const refused of [
    templates.find(stranger, templateId),
    templates.save(stranger, { id: templateId, changes: { image: 'x' } }),
    templates.remove(stranger, templateId),
  ]) {
    await assert.rejects(refused, { code: 'not_found' })
  }
})

test('lists of endpoints and templates come in pages', async t => {
  const rig = await openRig(t)
  const { endpoints, templates } = servicesOf(rig)
  const made: EndpointId[] = []
  for (let n = 0; n < 3; n += 1) made.push(await rig.endpoint())
  const first = await endpoints.list(ME, { limit: 2 })
  const second = await endpoints.list(ME, { limit: 2, cursor: first.nextCursor })
  const ids = [...first.items, ...second.items].map(({ id }) => id)
  assert.deepEqual([ids.sort(), second.nextCursor], [made.sort(), null])
  for (let n = 0; n < 2; n += 1) await rig.template()
  assert.equal((await templates.list(ME, { limit: 1 })).items.length, 1)
  await assert.rejects(endpoints.list(ME, { cursor: '?' }), { message: /^cursor is not one/ })
  await assert.rejects(templates.remove(ME, 'none' as TemplateId), { code: 'not_found' })
})
