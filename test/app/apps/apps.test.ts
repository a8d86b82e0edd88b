/** Apps and environments: names, rights, walls between accounts, the audit log. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  activate,
  createApp,
  createEnvironment,
  finalize,
  makeBuild,
  openAppRig,
  prepare,
  saveFunction,
  strangerKey,
} from '../../support/apps.ts'
import type { Asking, Rig } from '../../support/rig.ts'

const BY_NAME = `query ($flashAppName: String!) { flashAppByName(flashAppName: $flashAppName) {
  id name flashEnvironments { id name state activeBuildId endpoints { id name } } } }`
const ENVIRONMENT = `query ($input: FlashEnvironmentByNameInput!) { flashEnvironmentByName(input: $input) {
  id name state activeBuildId createdAt endpoints { id name } networkVolumes { id name } } }`
const LIST = `{ myself { flashApps { id name flashEnvironments { id name state createdAt activeBuildId }
  flashBuilds { id createdAt } } } }`
const DELETE_APP = 'mutation ($flashAppId: String!) { deleteFlashApp(flashAppId: $flashAppId) }'
const DELETE_ENVIRONMENT = `mutation ($flashEnvironmentId: String!) {
  deleteFlashEnvironment(flashEnvironmentId: $flashEnvironmentId) }`

async function refusal(rig: Rig, query: string, variables: object, asking: Asking = {}): Promise<string> {
  const { json } = await rig.ask('POST', '/graphql', { ...asking, body: { query, variables } })
  assert.ok(json.errors !== undefined, `it was not refused: ${JSON.stringify(json)}`)
  return json.errors[0].message
}

test('an app is found by its name with its environments, builds and endpoints', async t => {
  const { rig } = await openAppRig(t)
  assert.equal((await rig.graphql(BY_NAME, { flashAppName: 'one' })).flashAppByName, null)
  const app = await createApp(rig, 'one')
  const environment = await createEnvironment(rig, app, 'default')
  const empty = { id: environment, name: 'default', state: 'EMPTY', activeBuildId: null, endpoints: [] }
  const found = async () => (await rig.graphql(BY_NAME, { flashAppName: 'one' })).flashAppByName
  assert.deepEqual(await found(), { id: app, name: 'one', flashEnvironments: [empty] })
  const build = await makeBuild(rig, app, { 'main.py': 'x = 1' })
  await activate(rig, environment, build)
  const endpoint = await saveFunction(rig, { name: 'hello', environmentId: environment, buildId: build })
  const deployed = { ...empty, state: 'DEPLOYED', activeBuildId: build, endpoints: [{ id: endpoint, name: 'hello' }] }
  assert.deepEqual((await found()).flashEnvironments, [deployed])
  const input = { flashAppId: app, name: 'default' }
  const { createdAt, ...one } = (await rig.graphql(ENVIRONMENT, { input })).flashEnvironmentByName
  assert.deepEqual(one, { ...deployed, networkVolumes: [] })
  assert.match(createdAt, /^\d{4}-\d\d-\d\dT/)
  const [listed] = (await rig.graphql(LIST)).myself.flashApps
  assert.deepEqual(
    [listed.name, listed.flashEnvironments[0].activeBuildId, listed.flashBuilds[0].id],
    ['one', build, build],
  )
  await rig.ask('DELETE', `/v2/serverless/${endpoint}`)
  assert.deepEqual((await found()).flashEnvironments[0].endpoints, [], 'a deleted endpoint leaves its environment')
})

test('names are unique where they name something, and of a form that fits into a header', async t => {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const second = await createApp(rig, 'two')
  const create = 'mutation ($input: CreateFlashAppInput!) { createFlashApp(input: $input) { id } }'
  const add = 'mutation ($input: CreateFlashEnvironmentInput!) { createFlashEnvironment(input: $input) { id } }'
  assert.match(await refusal(rig, create, { input: { name: 'one' } }), /an app named 'one' already exists/)
  for (const name of ['', 'a\nb', ' a', 'é', 'x'.repeat(192)]) {
    assert.match(await refusal(rig, create, { input: { name } }), /^name must /, JSON.stringify(name))
  }
  await createEnvironment(rig, app, 'default')
  await createEnvironment(rig, second, 'default')
  const again = { input: { flashAppId: app, name: 'default' } }
  assert.match(await refusal(rig, add, again), /the app already has an environment named 'default'/)
  assert.match(await refusal(rig, add, { input: { flashAppId: 'gone', name: 'x' } }), /app gone not found/)
})

test('two environments have endpoints of one name, and one environment does not', async t => {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const buildId = await makeBuild(rig, app, {})
  const [one, two] = [await createEnvironment(rig, app, 'default'), await createEnvironment(rig, app, 'staging')]
  const first = await saveFunction(rig, { name: 'hello', environmentId: one, buildId })
  const second = await saveFunction(rig, { name: 'hello', environmentId: two, buildId })
  assert.notEqual(first, second)
  await assert.rejects(
    saveFunction(rig, { name: 'hello', environmentId: one, buildId }),
    /already has an endpoint named/,
  )
  await saveFunction(rig, { name: 'hello', environmentId: one, buildId, id: first })
})

test('an app goes when its environments are gone, and they when their endpoints are', async t => {
  const { rig, files } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const environment = await createEnvironment(rig, app, 'default')
  const build = await makeBuild(rig, app, {})
  const endpoint = await saveFunction(rig, { name: 'hello', environmentId: environment, buildId: build })
  assert.match(
    await refusal(rig, DELETE_APP, { flashAppId: app }),
    /environments that must be deleted first: 'default'/,
  )
  const ofEnvironment = { flashEnvironmentId: environment }
  assert.match(await refusal(rig, DELETE_ENVIRONMENT, ofEnvironment), new RegExp(`deleted first: ${endpoint}`))
  await rig.ask('DELETE', `/v2/serverless/${endpoint}`)
  assert.deepEqual(await rig.graphql(DELETE_ENVIRONMENT, ofEnvironment), { deleteFlashEnvironment: null })
  assert.match(await refusal(rig, DELETE_ENVIRONMENT, ofEnvironment), /not found/)
  assert.deepEqual(await files.unpacked(), [build], 'builds stay when environments go')
  assert.deepEqual(await rig.graphql(DELETE_APP, { flashAppId: app }), { deleteFlashApp: null })
  assert.match(await refusal(rig, DELETE_APP, { flashAppId: app }), /not found/)
})

test('another account sees and changes nothing of an app', async t => {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const environment = await createEnvironment(rig, app, 'default')
  const build = await makeBuild(rig, app, {})
  const { objectKey } = await prepare(rig, app, 10)
  const key = await strangerKey(rig)
  const asking = { key }
  assert.equal((await rig.graphql(BY_NAME, { flashAppName: 'one' }, asking)).flashAppByName, null)
  assert.equal(
    (await rig.graphql(ENVIRONMENT, { input: { flashAppId: app, name: 'default' } }, asking)).flashEnvironmentByName,
    null,
  )
  assert.deepEqual((await rig.graphql(LIST, {}, asking)).myself.flashApps, [])
  for (const query of [
    `{ flashApp(flashAppId: "${app}") { id } }`,
    `{ flashEnvironment(flashEnvironmentId: "${environment}") { id } }`,
    `{ flashBuild(flashBuildId: "${build}") { id } }`,
  ]) {
    assert.deepEqual(Object.values(await rig.graphql(query, {}, asking)), [null])
    assert.notDeepEqual(Object.values(await rig.graphql(query)), [null])
  }
  assert.match(await refusal(rig, DELETE_APP, { flashAppId: app }, asking), /not found/)
  assert.match(await refusal(rig, DELETE_ENVIRONMENT, { flashEnvironmentId: environment }, asking), /not found/)
  await assert.rejects(createEnvironment(rig, app, 'mine', asking), /not found/)
  await assert.rejects(prepare(rig, app, 10, asking), /not found/)
  assert.match((await finalize(rig, app, objectKey, asking)).json.errors[0].message, /not found/)
  assert.equal((await createApp(rig, 'one', asking)) === app, false, 'names are those of an account')
  const own = await createEnvironment(rig, await createApp(rig, 'two', asking), 'default', asking)
  const deploy = 'mutation ($input: DeployBuildToEnvironmentInput!) { deployBuildToEnvironment(input: $input) { id } }'
  const input = { flashEnvironmentId: own, flashBuildId: build }
  assert.match(await refusal(rig, deploy, { input }, asking), /build .* not found/)
})

test('a key that may only read lists apps and changes none, and without a key nothing is shown', async t => {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const key = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  assert.equal((await rig.graphql(BY_NAME, { flashAppName: 'one' }, { key })).flashAppByName.id, app)
  await assert.rejects(createApp(rig, 'two', { key }), /no write right for management/)
  await assert.rejects(prepare(rig, app, 10, { key }), /no write right for management/)
  assert.match(await refusal(rig, DELETE_APP, { flashAppId: app }, { key }), /no write right for management/)
  const none = await rig.ask('POST', '/graphql', {
    key: null,
    body: { query: BY_NAME, variables: { flashAppName: 'one' } },
  })
  assert.deepEqual([none.status, none.json.data.flashAppByName], [401, null])
})

test('the audit log has each change of an app, an environment and a build', async t => {
  const { rig } = await openAppRig(t)
  const app = await createApp(rig, 'one')
  const environment = await createEnvironment(rig, app, 'default')
  const build = await makeBuild(rig, app, {})
  await activate(rig, environment, build)
  await rig.graphql(DELETE_ENVIRONMENT, { flashEnvironmentId: environment })
  const { json } = await rig.ask('GET', '/v2/audit?limit=1000')
  const seen = json.entries.map((entry: { operation: string; object: { kind: string; id: string } | null }) => [
    entry.operation,
    entry.object?.kind,
    entry.object?.id,
  ])
  for (const expected of [
    ['createFlashApp', 'app', app],
    ['createFlashEnvironment', 'environment', environment],
    ['finalizeFlashArtifactUpload', 'build', build],
    ['deployBuildToEnvironment', 'environment', environment],
    ['deleteFlashEnvironment', 'environment', environment],
  ]) {
    assert.ok(
      seen.some((row: unknown) => JSON.stringify(row) === JSON.stringify(expected)),
      `${expected} in ${JSON.stringify(seen)}`,
    )
  }
  const activated = json.entries.find((entry: { operation: string }) => entry.operation === 'deployBuildToEnvironment')
  assert.match(JSON.stringify(activated), new RegExp(`activeBuildId.*${build}`))
})
