import assert from 'node:assert/strict'
import type { AppEnvironment, ArtifactUpload, DeployedApp, DeployedBuild } from '../../src/core/apps/app.ts'
import type { AppId, ArtifactKey, BuildId, EndpointId, EnvironmentId } from '../../src/core/ids.ts'
import { type Cases, E1, E2, makeEndpoint, OWNER, STRANGER, T0, type World } from './store-world.ts'

const A1 = 'a1' as AppId
const V1 = 'v1' as EnvironmentId
const V2 = 'v2' as EnvironmentId
const B1 = 'b1' as BuildId

function makeApp(id: string, changes: Partial<DeployedApp> = {}): DeployedApp {
  return { id: id as AppId, owner: OWNER, name: `app ${id}`, createdAtMs: T0, ...changes }
}

function makeEnvironment(id: string, changes: Partial<AppEnvironment> = {}): AppEnvironment {
  const place = { appId: A1, activeBuildId: null, createdAtMs: T0 }
  return { id: id as EnvironmentId, owner: OWNER, name: `environment ${id}`, ...place, ...changes }
}

function makeUpload(key: string, changes: Partial<ArtifactUpload> = {}): ArtifactUpload {
  const sizes = { bytes: 10, tokenHash: `hash of ${key}`, createdAtMs: T0, expiresAtMs: T0 + 100 }
  return { key: key as ArtifactKey, owner: OWNER, appId: A1, ...sizes, ...changes }
}

function makeBuild(id: string, artifact: string, changes: Partial<DeployedBuild> = {}): DeployedBuild {
  const sizes = { bytes: 10, unpackedBytes: 30, createdAtMs: T0 }
  return { id: id as BuildId, owner: OWNER, appId: A1, artifact: artifact as ArtifactKey, ...sizes, ...changes }
}

/** An app with an environment and a build. */
async function begin({ store: { apps, appBuilds } }: World): Promise<void> {
  await apps.insert(makeApp(A1))
  await apps.insertEnvironment(makeEnvironment(V1))
  await appBuilds.insertUpload(makeUpload('k1'))
  await appBuilds.insert(makeBuild(B1, 'k1'), '{"app":"one"}')
}

/** Apps, their environments, builds and uploads. */
export const appCases: Cases = {
  'an account has each name of an app once, and sees no app of another': async ({ store: { apps } }) => {
    assert.equal(await apps.insert(makeApp(A1)), true)
    assert.equal(await apps.insert(makeApp('a2', { name: 'app a1' })), false)
    assert.equal(await apps.insert(makeApp('a3', { owner: STRANGER, name: 'app a1' })), true)
    assert.equal(await apps.insert(makeApp('a4', { createdAtMs: T0 + 1 })), true)
    assert.deepEqual(await apps.find(OWNER, A1), makeApp(A1))
    assert.equal(await apps.find(STRANGER, A1), null)
    assert.deepEqual(await apps.findByName(OWNER, 'app a1'), makeApp(A1))
    assert.equal(await apps.findByName(OWNER, 'app a3'), null)
    assert.deepEqual(
      (await apps.list(OWNER, { after: null, limit: 5 })).map(({ id }) => id),
      [A1, 'a4'],
    )
  },

  'an app has each name of an environment once, and goes only without any': async ({ store: { apps } }) => {
    await apps.insert(makeApp(A1))
    assert.equal(await apps.insertEnvironment(makeEnvironment(V1)), 'added')
    assert.equal(await apps.insertEnvironment(makeEnvironment(V2, { name: 'environment v1' })), 'taken')
    assert.equal(await apps.insertEnvironment(makeEnvironment(V2, { appId: 'gone' as AppId })), 'absent')
    assert.equal(await apps.insertEnvironment(makeEnvironment(V2, { owner: STRANGER })), 'absent')
    assert.deepEqual(await apps.findEnvironment(OWNER, V1), makeEnvironment(V1))
    assert.equal(await apps.findEnvironment(STRANGER, V1), null)
    assert.deepEqual(await apps.findEnvironmentByName(OWNER, A1, 'environment v1'), makeEnvironment(V1))
    assert.deepEqual(await apps.environments(OWNER, A1), [makeEnvironment(V1)])
    assert.deepEqual(await apps.environments(OWNER, null), [makeEnvironment(V1)])
    assert.deepEqual(await apps.environments(STRANGER, null), [])
    assert.deepEqual(await apps.remove(OWNER, A1), ['environment v1'])
    assert.equal(await apps.remove(STRANGER, A1), 'absent')
    assert.equal(await apps.removeEnvironment(STRANGER, V1), 'absent')
    assert.equal(await apps.removeEnvironment(OWNER, V1), 'removed')
    assert.equal(await apps.remove(OWNER, A1), 'removed')
  },

  'an environment has each name of an endpoint once, and finds it by name and id': async world => {
    const { apps, endpoints } = world.store
    await begin(world)
    await apps.insertEnvironment(makeEnvironment(V2))
    await endpoints.insert(makeEndpoint(E2, { name: 'hello', flashEnvironmentId: V1 }))
    const third = makeEndpoint('e3' as EndpointId, { name: 'hello', flashEnvironmentId: V2 })
    await endpoints.insert(third)
    const place = { app: 'app a1', environment: 'environment v1', endpoint: 'hello' }
    assert.equal(await apps.target(OWNER, place), E2)
    assert.equal(await apps.target(OWNER, { ...place, environment: 'environment v2' }), 'e3')
    assert.equal(await apps.target(OWNER, { ...place, endpoint: E2 }), E2)
    for (const wrong of [{ app: 'other' }, { environment: 'other' }, { endpoint: 'other' }, { endpoint: 'e3' }]) {
      assert.equal(await apps.target(OWNER, { ...place, ...wrong }), null)
    }
    assert.equal(await apps.target(STRANGER, place), null)
    assert.deepEqual(await apps.endpoints(OWNER, V1), [{ environmentId: V1, id: E2, name: 'hello' }])
    assert.equal((await apps.endpoints(OWNER, null)).length, 2)
    const moved = { ...third, flashEnvironmentId: V1 }
    await assert.rejects(endpoints.replace(moved, third, T0), /already has an endpoint named 'hello'/)
    assert.equal(await apps.target(OWNER, { ...place, environment: 'environment v2' }), 'e3', 'it stays where it was')
    const renamed = { ...moved, name: 'other' }
    assert.equal(await endpoints.replace(renamed, third, T0), true)
    assert.equal(await apps.target(OWNER, { ...place, endpoint: 'other' }), 'e3')
    assert.deepEqual(await apps.removeEnvironment(OWNER, V1), [E2, 'e3'])
    await endpoints.remove(E2, T0)
    assert.equal(await endpoints.replace({ ...renamed, flashEnvironmentId: null }, renamed, T0), true)
    assert.equal(await apps.removeEnvironment(OWNER, V1), 'removed')
    assert.equal(await apps.target(OWNER, place), null)
  },

  'an endpoint may name an environment that does not exist, as older servers let it': async ({ store }) => {
    await store.endpoints.insert(makeEndpoint(E2, { flashEnvironmentId: 'gone' }))
    assert.equal((await store.endpoints.find(E2))?.flashEnvironmentId, 'gone')
    await store.apps.insert(makeApp(A1, { owner: STRANGER }))
    await store.apps.insertEnvironment(makeEnvironment(V1, { owner: STRANGER }))
    const before = (await store.endpoints.find(E1))!
    assert.equal(await store.endpoints.replace({ ...before, flashEnvironmentId: V1 }, before, T0), true)
    assert.deepEqual(await store.apps.endpoints(STRANGER, V1), [], "another account's environment is not joined")
  },

  'a build is made once of its upload': async world => {
    const { appBuilds } = world.store
    await world.store.apps.insert(makeApp(A1))
    await appBuilds.insertUpload(makeUpload('k1'))
    assert.deepEqual(await appBuilds.findUpload('k1' as ArtifactKey), makeUpload('k1'))
    assert.equal(await appBuilds.bytes(OWNER), 10)
    assert.equal(await appBuilds.insert(makeBuild(B1, 'k1'), '{"app":"one"}'), true)
    assert.equal(await appBuilds.findUpload('k1' as ArtifactKey), null)
    assert.equal(await appBuilds.insert(makeBuild('b2', 'k1'), '{}'), false)
    assert.deepEqual(await appBuilds.find(OWNER, B1), makeBuild(B1, 'k1'))
    assert.equal(await appBuilds.find(STRANGER, B1), null)
    assert.equal(await appBuilds.manifest(OWNER, B1), '{"app":"one"}')
    assert.equal(await appBuilds.manifest(STRANGER, B1), null)
    assert.equal(await appBuilds.setManifest(STRANGER, B1, '{}'), false)
    assert.equal(await appBuilds.setManifest(OWNER, B1, '{}'), true)
    assert.equal(await appBuilds.manifest(OWNER, B1), '{}')
    assert.equal(await appBuilds.hasArtifact('k1' as ArtifactKey), true)
    assert.equal(await appBuilds.hasArtifact('k2' as ArtifactKey), false)
    assert.equal(await appBuilds.bytes(OWNER), 10)
    assert.equal(await appBuilds.bytes(STRANGER), 0)
  },

  'uploads that are over are listed, the oldest first': async ({ store: { apps, appBuilds } }) => {
    await apps.insert(makeApp(A1))
    for (const [key, expiresAtMs] of [
      ['k1', 30],
      ['k2', 10],
      ['k3', 50],
    ] as const) {
      await appBuilds.insertUpload(makeUpload(key, { expiresAtMs }))
    }
    const over = async (limit: number) => (await appBuilds.uploadsOver(30, limit)).map(({ key }) => key)
    assert.deepEqual(await over(5), ['k2', 'k1'])
    assert.deepEqual(await over(1), ['k2'])
    await appBuilds.removeUpload('k2' as ArtifactKey)
    assert.deepEqual(await over(5), ['k1'])
  },

  'a build is active in environments of its own app alone, and stays while it is': async world => {
    const { apps, appBuilds } = world.store
    await begin(world)
    await apps.insert(makeApp('a2'))
    await apps.insertEnvironment(makeEnvironment(V2, { appId: 'a2' as AppId }))
    assert.equal(await appBuilds.activate(OWNER, V2, B1), false)
    assert.equal(await appBuilds.activate(STRANGER, V1, B1), false)
    assert.deepEqual(await appBuilds.active(), [])
    assert.equal(await appBuilds.activate(OWNER, V1, B1), true)
    assert.equal((await apps.findEnvironment(OWNER, V1))?.activeBuildId, B1)
    assert.deepEqual(await appBuilds.active(), [B1])
    assert.equal(await appBuilds.remove(B1), false)
    await appBuilds.insertUpload(makeUpload('k2'))
    const second = makeBuild('b2', 'k2', { createdAtMs: T0 + 1 })
    await appBuilds.insert(second, '{}')
    assert.equal(await appBuilds.activate(OWNER, V1, second.id), true)
    assert.deepEqual(await appBuilds.list(OWNER, A1, 5), [second, makeBuild(B1, 'k1')])
    assert.deepEqual(await appBuilds.list(OWNER, A1, 1), [second])
    assert.deepEqual(await appBuilds.list(STRANGER, A1, 5), [])
    assert.deepEqual(await appBuilds.all(B1, 5), [second])
    assert.equal(await appBuilds.remove(B1), true)
    assert.equal(await appBuilds.remove(B1), false)
  },

  'an app takes its builds and uploads with it, and its objects count': async world => {
    const { apps, appBuilds, quotas } = world.store
    await begin(world)
    await appBuilds.insertUpload(makeUpload('k2'))
    const { apps: appCount, environments, builds } = await quotas.objects(OWNER)
    assert.deepEqual([appCount, environments, builds], [1, 1, 1])
    await apps.removeEnvironment(OWNER, V1)
    assert.equal(await apps.remove(OWNER, A1), 'removed')
    assert.equal(await appBuilds.find(OWNER, B1), null)
    assert.equal(await appBuilds.hasArtifact('k2' as ArtifactKey), false)
  },
}
