/** The life of builds of apps in virtual time: which release runs which, and what is removed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ArtifactKey, BuildId } from '../../../src/core/ids.ts'
import {
  activate,
  createApp,
  createEnvironment,
  finalize,
  makeBuild,
  prepare,
  put,
  saveFunction,
  strangerKey,
  type Upload,
} from '../../support/apps.ts'
import { artifactOf } from '../../support/archives.ts'
import { MemoryArtifacts } from '../../support/memory-artifacts.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const DAY_MS = 24 * 3_600_000

/** A rig with an app and an environment. */
async function openApp(t: TestContext) {
  const files = new MemoryArtifacts()
  const rig = await openRig(t, { artifacts: files })
  files.now = () => rig.clock.now()
  const appId = await createApp(rig, 'one')
  return { rig, files, appId, environmentId: await createEnvironment(rig, appId, 'default') }
}

test('a release goes on with its own build, and the folder goes after its last worker', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const first = await makeBuild(rig, appId, { 'main.py': 'one' })
  await activate(rig, environmentId, first)
  const endpoint = await saveFunction(rig, { name: 'hello', environmentId, buildId: first }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  const [spec] = rig.fleet.started
  assert.deepEqual(spec?.build, { id: first, folder: files.path(first) })
  await rig.clock.advance(20 * 60_000)
  const second = await makeBuild(rig, appId, { 'main.py': 'two' })
  await activate(rig, environmentId, second)
  await rig.clock.advance(20 * 60_000)
  assert.deepEqual((await files.unpacked()).sort(), [first, second].sort(), 'its endpoint names the first one')
  await saveFunction(rig, { name: 'hello', environmentId, buildId: second, id: endpoint }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  assert.deepEqual((await files.unpacked()).sort(), [first, second].sort(), 'its worker runs the first one')
  assert.equal(rig.fleet.started.at(-1)?.build?.id, second)
  for (const worker of rig.fleet.started.slice(0, -1)) rig.fleet.exit(worker.workerId)
  await rig.clock.advance(60_000)
  assert.deepEqual(await files.unpacked(), [second])
})

test('a folder that an endpoint uses is kept without a list of all endpoints each time', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const buildId = await makeBuild(rig, appId, {})
  const endpoint = await saveFunction(rig, { name: 'hello', environmentId, buildId })
  await rig.clock.advance(11 * 60_000)
  const list = t.mock.method(rig.store.templates, 'ofEndpoints')
  await rig.clock.advance(60_000)
  assert.deepEqual([await files.unpacked(), list.mock.callCount()], [[buildId], 0])
  await rig.ask('DELETE', `/v2/serverless/${endpoint}`)
  await rig.clock.advance(60_000)
  assert.deepEqual([await files.unpacked(), list.mock.callCount()], [[], 1])
})

test('a rollback to a build whose folder is gone makes it again of its archive', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const first = await makeBuild(rig, appId, { 'main.py': 'one' })
  await files.removeFolder(first)
  await saveFunction(rig, { name: 'hello', environmentId, buildId: first }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  assert.deepEqual([files.made, [...files.folders]], [2, [first]])
})

/** Lets folders that are made from now on wait. */
function hold(files: MemoryArtifacts) {
  const [begun, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  files.delay = () => {
    begun.resolve()
    return over.promise
  }
  return { begun: begun.promise, goOn: over.resolve }
}

async function received(rig: Rig, appId: string): Promise<Upload> {
  const upload = await prepare(rig, appId, artifactOf({}).length)
  assert.equal((await put(rig, upload, artifactOf({}))).status, 200)
  return upload
}

test('an archive does not change while a build is made of it', async t => {
  const { rig, files, appId } = await openApp(t)
  const upload = await received(rig, appId)
  const making = hold(files)
  const made = finalize(rig, appId, upload.objectKey)
  await making.begun
  assert.equal((await put(rig, upload, artifactOf({}))).status, 409)
  making.goOn()
  assert.equal((await made).json.errors, undefined)
  assert.equal((await put(rig, upload, artifactOf({}))).status, 404)
})

test('workers start while the builds of others are unpacked', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const build = await makeBuild(rig, appId, {})
  const uploads = [await received(rig, appId), await received(rig, appId)]
  const making = hold(files)
  const made = uploads.map(({ objectKey }) => finalize(rig, appId, objectKey))
  await making.begun
  await saveFunction(rig, { name: 'hello', environmentId, buildId: build }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 1)
  making.goOn()
  await Promise.all(made)
})

test('a place to unpack that becomes free is for the account that has none', async t => {
  const { rig, files, appId } = await openApp(t)
  const key = await strangerKey(rig)
  const strangers = await createApp(rig, 'two', { key })
  const uploads: Upload[] = []
  for (let made = 0; made < 4; made++) uploads.push(await received(rig, appId))
  const last = await prepare(rig, strangers, artifactOf({}).length, { key })
  assert.equal((await put(rig, last, artifactOf({}))).status, 200)
  const running: (() => void)[] = []
  files.delay = () => new Promise<void>(resolve => running.push(resolve))
  const made = uploads.map(({ objectKey }) => finalize(rig, appId, objectKey))
  let isMade = false
  const ofStranger = finalize(rig, strangers, last.objectKey, { key }).then(({ json }) => {
    isMade = json.errors === undefined
  })
  await rig.clock.settle()
  assert.equal(running.length, 2)
  running.shift()!()
  await rig.clock.settle()
  assert.equal(running.length, 2)
  running.pop()!()
  await ofStranger
  assert.ok(isMade, 'it did not wait for all that came before it')
  for (let left = 0; left < 3; left++) {
    await rig.clock.settle()
    running.shift()?.()
  }
  assert.ok((await Promise.all(made)).every(({ json }) => json.errors === undefined))
})

test('a release whose build does not exist starts no worker, and says why', async t => {
  const { rig, environmentId } = await openApp(t)
  const endpoint = await saveFunction(rig, { name: 'hello', environmentId, buildId: 'gone' }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 0)
  assert.match(JSON.stringify(await rig.why(endpoint)), /build gone, which RUNPOD_BUILD_ID names, does not exist/)
})

test('an app keeps its ten newest builds and those that something runs', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const oldest = await makeBuild(rig, appId, {})
  await activate(rig, environmentId, oldest)
  const next = await makeBuild(rig, appId, {})
  const newest: BuildId[] = []
  for (let made = 0; made < 10; made++) {
    await rig.clock.advance(1_000)
    newest.push(await makeBuild(rig, appId, {}))
  }
  const kept = (await rig.store.appBuilds.all(null, 100)).map(({ id }) => id)
  assert.deepEqual(kept.sort(), [oldest, ...newest].sort())
  assert.deepEqual([files.folders.has(next), files.archives.size], [false, 11])
})

test('what a killed server left is gone after a day, and the next deploy works', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const archive = artifactOf({ 'main.py': 'x' })
  // Killed after prepare, after PUT, after the folder was made, and while an archive that nobody knows was received.
  await prepare(rig, appId, archive.length)
  const sent = await prepare(rig, appId, archive.length)
  await put(rig, sent, archive)
  await files.unpack('half' as BuildId, sent.objectKey as ArtifactKey)
  files.archives.set('unknown' as ArtifactKey, { content: archive, changedMs: rig.clock.now() })
  await rig.crash()
  await rig.start()
  const build = await makeBuild(rig, appId, { 'main.py': 'y' })
  await activate(rig, environmentId, build)
  // An upload is over after an hour; the disk is a day older at once, which spares a day of virtual time.
  files.now = () => rig.clock.now() + DAY_MS
  await rig.clock.advance(70 * 60_000)
  assert.deepEqual(await files.unpacked(), [build])
  assert.equal(files.archives.size, 1)
  assert.deepEqual(await rig.store.appBuilds.uploadsOver(Number.MAX_SAFE_INTEGER, 10), [])
})

test('a build that was made is not removed before its endpoints are saved', async t => {
  const { rig, files, appId } = await openApp(t)
  const build = await makeBuild(rig, appId, {})
  await rig.clock.advance(9 * 60_000)
  assert.deepEqual(await files.unpacked(), [build])
  await rig.clock.advance(2 * 60_000)
  assert.deepEqual(await files.unpacked(), [], 'nobody deployed it')
})

test('the folder of a deleted app goes with it, and its archive a day later', async t => {
  const { rig, files, appId, environmentId } = await openApp(t)
  const buildId = await makeBuild(rig, appId, {})
  const endpoint = await saveFunction(rig, { name: 'hello', environmentId, buildId }, { workersMin: 1 })
  await rig.clock.advance(1_000)
  await rig.ask('DELETE', `/v2/serverless/${endpoint}`)
  for (const [mutation, argument, id] of [
    ['deleteFlashEnvironment', 'flashEnvironmentId', environmentId],
    ['deleteFlashApp', 'flashAppId', appId],
  ] as const) {
    await rig.graphql(`mutation { ${mutation}(${argument}: "${id}") }`)
  }
  await rig.clock.advance(60_000)
  assert.deepEqual([await files.unpacked(), files.archives.size], [[], 1], 'its archive is an orphan for a day')
  files.now = () => rig.clock.now() + DAY_MS
  await rig.clock.advance(11 * 60_000)
  assert.equal(files.archives.size, 0)
})
