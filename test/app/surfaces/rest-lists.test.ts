/** Lists and single endpoints are shown with their templates, during any concurrent changes of both. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER } from '../../../src/core/ids.ts'
import { openRig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

/** More steps than any request here takes. */
const STEPS = 40

/** Lets what was begun go on for some steps. */
async function steps(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await null
}

test('a list of endpoints takes one read of all that they run', async t => {
  const rig = await openRig(t)
  const shared = await rig.template({ imageName: 'shared:1' })
  for (let n = 0; n < 6; n += 1) await rig.endpoint(n % 2 ? { templateId: shared } : {})
  for (const path of ['/v2/serverless', '/v1/endpoints?includeTemplate=true']) {
    const before = rig.calls('templates.find')
    const { json } = await rig.ask('GET', path)
    const images = (json.endpoints ?? json).map((one: { image?: string; template?: { imageName: string } }) =>
      one.template === undefined ? one.image : one.template.imageName,
    )
    assert.deepEqual(images.sort(), [...Array(3).fill('image:1'), ...Array(3).fill('shared:1')])
    assert.equal(rig.calls('templates.find') - before, 0, path)
  }
})

test('a list leaves out what is deleted while it is read', async t => {
  const rig = await openRig(t)
  const { endpoints } = servicesOf(rig)
  for (const path of ['/v2/serverless', '/v1/endpoints?includeTemplate=true', '/v1/endpoints?includeWorkers=true']) {
    for (let count = 0; count < STEPS; count += 1) {
      const endpoint = await rig.endpoint()
      const list = rig.ask('GET', path)
      await steps(count)
      await endpoints.remove(DEFAULT_OWNER, endpoint, true)
      const { status, text } = await list
      assert.equal(status, 200, `${path} after ${count}: ${text}`)
    }
  }
})

test('an endpoint that is concurrently linked to another template is still shown and changed', async t => {
  const rig = await openRig(t, { rateWindows: [] })
  const { endpoints } = servicesOf(rig)
  const templateId = await rig.template({ imageName: 'shared:1' })
  for (const what of ['GET', 'PATCH', 'workers', 'v1'] as const) {
    for (let count = -STEPS; count < STEPS; count += 1) {
      const id = await rig.endpoint({ workersMax: 0 })
      const path = { GET: '', PATCH: '', workers: '/workers', v1: '?includeTemplate=true' }[what]
      const url = what === 'v1' ? `/v1/endpoints/${id}${path}` : `/v2/serverless/${id}${path}`
      const ask = async () => {
        await steps(-count)
        return what === 'PATCH' ? rig.ask('PATCH', url, { body: { args: 'go' } }) : rig.ask('GET', url)
      }
      const asked = ask()
      await steps(count)
      await endpoints.save(DEFAULT_OWNER, { id, changes: { templateId } })
      const { status, text } = await asked
      assert.equal(status, 200, `${what} after ${count}: ${text}`)
    }
  }
})
