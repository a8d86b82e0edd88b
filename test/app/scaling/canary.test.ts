/** Releases that a share of the workers runs until they are promoted or undone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { RigProgram } from '../../support/rig-program.ts'

const QUEUE = { workersMax: 10, scalerType: 'REQUEST_COUNT', scalerValue: 1 } as const

async function patch(rig: Rig, endpoint: EndpointId, body: object) {
  return rig.ask('PATCH', `/v2/serverless/${endpoint}`, { body })
}

async function releases(rig: Rig, endpoint: EndpointId) {
  return (await rig.ask('GET', `/v2/serverless/${endpoint}/releases`)).json
}

/** Number of workers of each version. */
async function versions(rig: Rig, endpoint: EndpointId): Promise<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const { version } of await rig.alive(endpoint)) counts[version] = (counts[version] ?? 0) + 1
  return counts
}

async function loaded(t: Parameters<typeof openRig>[0]) {
  const rig = await openRig(t)
  const program = new RigProgram(rig)
  const endpoint = await rig.endpoint(QUEUE)
  await program.load(endpoint, 3_000)
  return { rig, program, endpoint }
}

test('a canary runs on its share of the workers beside the old ones, and replaces them once it is promoted', async t => {
  const { rig, program, endpoint } = await loaded(t)
  const { status, json } = await patch(rig, endpoint, { env: { RELEASE: 'next' }, rollout: { canary: 10 } })
  assert.equal(status, 200, JSON.stringify(json))
  await program.load(endpoint, 8_000)
  const shared = await versions(rig, endpoint)
  assert.equal(shared[2], 1, JSON.stringify(shared))
  assert.ok(shared[1]! >= 2, JSON.stringify(shared))
  const { rollout, releases: list } = await releases(rig, endpoint)
  assert.deepEqual([rollout.state, rollout.canary, rollout.workingVersion, rollout.inProgress], ['CANARY', 10, 1, true])
  assert.deepEqual([list[0].canary, list[1].canary], [10, null])
  assert.match(JSON.stringify(await rig.why(endpoint)), /release 2 is a canary with 10 % of the workers, 1 of \d now/)
  assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/1/promote`)).status, 409)
  const promoted = await rig.ask('POST', `/v2/serverless/${endpoint}/releases/2/promote`)
  assert.deepEqual([promoted.status, promoted.json.canary], [200, null])
  await program.load(endpoint, 5_000)
  assert.deepEqual(Object.keys(await versions(rig, endpoint)), ['2'])
  assert.equal((await releases(rig, endpoint)).rollout.state, 'COMPLETE')
  assert.deepEqual(await program.outcome(endpoint), { statuses: ['COMPLETED'], retried: 0 })
})

test('a canary outlives a restart of the server', async t => {
  const { rig, program, endpoint } = await loaded(t)
  await patch(rig, endpoint, { env: { RELEASE: 'next' }, rollout: { canary: 30 } })
  await program.load(endpoint, 4_000)
  await rig.crash()
  await rig.start()
  await program.load(endpoint, 6_000)
  const shared = await versions(rig, endpoint)
  assert.ok(shared[1]! >= 2 && shared[2]! >= 1 && shared[2]! <= shared[1]!, JSON.stringify(shared))
})

test('a canary that crashes three times ends by itself, and no job fails', async t => {
  const { rig, program, endpoint } = await loaded(t)
  await patch(rig, endpoint, { env: { RELEASE: 'broken' }, rollout: { canary: 50 } })
  await program.load(endpoint, 12_000)
  assert.equal(rig.fleet.started.filter(({ env }) => env.RELEASE === 'broken').length, 3)
  assert.equal((await releases(rig, endpoint)).rollout.state, 'STOPPED')
  assert.match(JSON.stringify(await rig.why(endpoint)), /the rollout of release 2 has stopped/)
  assert.deepEqual(Object.keys(await versions(rig, endpoint)), ['1'])
  assert.deepEqual(await program.outcome(endpoint), { statuses: ['COMPLETED'], retried: 0 })
})

test('a rollback ends a canary', async t => {
  const { rig, program, endpoint } = await loaded(t)
  await patch(rig, endpoint, { env: { RELEASE: 'next' }, rollout: { canary: 10 } })
  await program.load(endpoint, 4_000)
  assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/1/rollback`)).status, 201)
  await program.load(endpoint, 6_000)
  assert.deepEqual(Object.keys(await versions(rig, endpoint)), ['3'])
  const last = rig.worker(-1).spec
  assert.equal(last.env.RELEASE, undefined)
  assert.deepEqual(await program.outcome(endpoint), { statuses: ['COMPLETED'], retried: 0 })
})

test('a change during a canary is a release of its own: without a share it replaces all, with one it keeps the previous base', async t => {
  const { rig, program, endpoint } = await loaded(t)
  await patch(rig, endpoint, { env: { RELEASE: 'second' }, rollout: { canary: 10 } })
  await program.load(endpoint, 4_000)
  await patch(rig, endpoint, { env: { RELEASE: 'third' }, rollout: { canary: 20 } })
  await program.load(endpoint, 6_000)
  assert.deepEqual(Object.keys(await versions(rig, endpoint)), ['1', '3'])
  await patch(rig, endpoint, { env: { RELEASE: 'fourth' } })
  await program.load(endpoint, 6_000)
  assert.deepEqual(Object.keys(await versions(rig, endpoint)), ['4'])
})

test('what can be no canary is refused, with the reason', async t => {
  const { rig, program, endpoint } = await loaded(t)
  const refused = async (body: object) => {
    const { status, json } = await patch(rig, endpoint, body)
    return `${status} ${JSON.stringify(json)}`
  }
  assert.match(
    await refused({ name: 'other', rollout: { canary: 10 } }),
    /^400 .*rollout\.canary: needs a change that workers see/,
  )
  for (const canary of [0, 100, 1.5, 'ten'])
    assert.match(await refused({ env: { A: '1' }, rollout: { canary } }), /^400 .*rollout\.canary/)
  assert.match(
    await refused({ env: { A: '1' }, workers: { max: 1 }, rollout: { canary: 10 } }),
    /^400 .*rollout\.canary: needs a workersMax of at least 2/,
  )
  assert.equal((await releases(rig, endpoint)).endpointVersion, 1, 'nothing was changed')
  const never = await rig.endpoint({ ...QUEUE, workersMax: 2 })
  const { status, json } = await patch(rig, never, { env: { A: '1' }, rollout: { canary: 10 } })
  assert.equal(status, 409)
  assert.match(JSON.stringify(json), /no worker of another release was ever ready/)
  assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/1/promote`)).status, 409)
  assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/9/promote`)).status, 404)
  await program.outcome(endpoint)
})

test('requests are shared with the workers of a canary, and prefer neither release', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 2, workersMax: 4 })
  await rig.clock.advance(1_000)
  for (const { workerId } of rig.fleet.started) gateway.serve(id, workerId, 1)
  assert.equal((await patch(rig, id, { env: { RELEASE: 'next' }, rollout: { canary: 10 } })).status, 200)
  await rig.clock.advance(5_000)
  assert.deepEqual(await versions(rig, id), { 1: 2, 2: 1 })
  assert.equal(gateway.endpoints.get(id)?.version, null)
  assert.equal(gateway.ready(id).length, 3)
  assert.equal((await rig.ask('POST', `/v2/serverless/${id}/releases/2/promote`)).status, 200)
  await rig.clock.advance(1_000)
  assert.equal(gateway.endpoints.get(id)?.version, 2)
})
