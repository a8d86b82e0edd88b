/** Apps over REST: environments, the build that each endpoint runs, builds; rights and walls between accounts. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  activate,
  createApp,
  createEnvironment,
  makeBuild,
  openAppRig,
  saveFunction,
  strangerKey,
} from '../../support/apps.ts'

const APPS = '/v2/account/apps'

async function openDeployed(t: TestContext) {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const environment = await createEnvironment(rig, app, 'default')
  const build = await makeBuild(rig, app, { 'main.py': 'x = 1' })
  await activate(rig, environment, build)
  const named = { name: 'hello', environmentId: environment, buildId: build }
  const endpoint = await saveFunction(rig, named, { workersMin: 1 })
  await rig.clock.advance(1_000)
  return { rig, app, environment, build, endpoint }
}

test('the list of apps has their environments, and a name finds one', async t => {
  const { rig, app, environment, build } = await openDeployed(t)
  await createApp(rig, 'two')
  const listed = (await rig.ask('GET', APPS)).json.apps
  const { createdAt, environments, ...rest } = listed[0]
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT/)
  assert.deepEqual(rest, { id: app, name: 'one', endpointCount: 1 })
  const [{ createdAt: _, ...first }] = environments
  assert.deepEqual(first, { id: environment, name: 'default', state: 'DEPLOYED', activeBuildId: build })
  assert.deepEqual([listed[1].name, listed[1].environments, listed[1].endpointCount], ['two', [], 0])
  assert.deepEqual((await rig.ask('GET', `${APPS}?name=one`)).json.apps, [listed[0]])
  assert.deepEqual((await rig.ask('GET', `${APPS}?name=three`)).json.apps, [])
  const page = (await rig.ask('GET', `${APPS}?limit=1`)).json
  assert.deepEqual([page.apps.length, page.pagination.hasNextPage], [1, true])
  const next = (await rig.ask('GET', `${APPS}?limit=1&cursor=${page.pagination.nextCursor}`)).json
  assert.deepEqual([next.apps[0].name, next.pagination.hasNextPage], ['two', false])
})

test('an app shows which build its endpoints name, and which one each worker still runs', async t => {
  const { rig, app, environment, build: first, endpoint } = await openDeployed(t)
  const found = async () => (await rig.ask('GET', `${APPS}/${app}`)).json
  const shown = async () => (await found()).environments[0].endpoints
  const runs = (buildId: string) => ({ buildId, workers: 1 })
  assert.deepEqual(await shown(), [{ id: endpoint, name: 'hello', buildId: first, running: [runs(first)] }])
  const job = await rig.submit(endpoint)
  await rig.worker(-1).takeJob()
  const second = await makeBuild(rig, app, { 'main.py': 'x = 2' })
  await activate(rig, environment, second)
  const named = { name: 'hello', environmentId: environment, buildId: second, id: endpoint }
  await saveFunction(rig, named, { workersMin: 1 })
  await rig.clock.advance(1_000)
  const [one] = await shown()
  assert.deepEqual(
    [one.buildId, one.running.map((run: { buildId: string }) => run.buildId).sort()],
    [second, [first, second].sort()],
  )
  await rig.worker(0).done(job, { output: 1 })
  rig.fleet.exit(rig.fleet.started[0]!.workerId)
  await rig.clock.advance(1_000)
  assert.deepEqual((await shown())[0].running, [runs(second)])
  const { builds } = await found()
  assert.deepEqual(new Set(builds.map(({ id }: { id: string }) => id)), new Set([first, second]))
  for (const { size, unpackedSize } of builds) assert.ok(size > 0 && unpackedSize > 0)
})

test('an app and an environment are not deleted before what is in them', async t => {
  const { rig, app, environment, endpoint } = await openDeployed(t)
  const remove = (path: string) => rig.ask('DELETE', path)
  const ofApp = `${APPS}/${app}`
  const ofEnvironment = `/v2/account/app-environments/${environment}`
  assert.match((await remove(ofApp)).json.detail, /environments that must be deleted first: 'default'/)
  assert.equal((await remove(ofEnvironment)).status, 409)
  assert.equal((await remove(`/v2/serverless/${endpoint}`)).status, 204)
  assert.deepEqual([(await remove(ofEnvironment)).status, (await remove(ofApp)).status], [204, 204])
  assert.deepEqual([(await remove(ofEnvironment)).status, (await remove(ofApp)).status], [404, 404])
  const entries = (await rig.ask('GET', `/v2/audit?object=${app}&operation=deleteApp`)).json.entries
  assert.ok(entries.length > 0, 'the deletion is in the audit log')
})

test('another account, and a key without the right, see and delete nothing of an app', async t => {
  const { rig, app, environment } = await openDeployed(t)
  const key = await strangerKey(rig)
  assert.deepEqual((await rig.ask('GET', APPS, { key })).json.apps, [])
  assert.deepEqual((await rig.ask('GET', `${APPS}?name=one`, { key })).json.apps, [])
  const paths = [`${APPS}/${app}`, `/v2/account/app-environments/${environment}`]
  assert.equal((await rig.ask('GET', paths[0]!, { key })).status, 404)
  for (const path of paths) assert.equal((await rig.ask('DELETE', path, { key })).status, 404)
  const create = async (scope: object) =>
    (await rig.ask('POST', '/v2/account/keys', { body: { name: 'k', scope } })).json.key
  const reading = await create({ type: 'read-only' })
  assert.equal((await rig.ask('GET', paths[0]!, { key: reading })).status, 200)
  for (const path of paths) assert.equal((await rig.ask('DELETE', path, { key: reading })).status, 403)
  const calling = await create({ type: 'restricted', management: 'none', jobs: 'write' })
  for (const path of [APPS, paths[0]!]) assert.equal((await rig.ask('GET', path, { key: calling })).status, 403)
})
