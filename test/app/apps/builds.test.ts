/** Builds of apps: uploads, hostile archives, the folders of workers and their end. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ARTIFACT_RULES } from '../../../src/core/apps/app.ts'
import { createArtifactFiles } from '../../../src/system/apps/artifact-files.ts'
import { unpackArtifact } from '../../../src/system/apps/unpack.ts'
import { createApp, finalize, makeBuild, openAppRig, prepare, put } from '../../support/apps.ts'
import { artifactOf, MANIFEST_FILE, type TarEntry, tarOf } from '../../support/archives.ts'
import type { RigOptions } from '../../support/rig.ts'

/** A rig with an app and an environment. */
async function openApp(t: TestContext, options: RigOptions = {}) {
  const app = await openAppRig(t, options)
  const appId = await createApp(app.rig, 'one')
  return { ...app, appId }
}

/** Names of all files below a folder. */
function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
}

test('a build is unpacked when it is made, for reading alone, with what may run', async t => {
  const { rig, files, appId } = await openApp(t)
  const entries: TarEntry[] = [
    { path: 'main.py', data: 'x = 1' },
    { path: './empty.py' },
    { path: 'env/bin/', type: 'Directory' },
    { path: 'env/bin/tool', data: '#!/bin/sh', mode: 0o4755 },
    MANIFEST_FILE,
  ]
  const archive = gzipSync(tarOf(entries))
  const upload = await prepare(rig, appId, archive.length)
  assert.equal((await put(rig, upload, archive)).status, 200)
  const { json } = await finalize(rig, appId, upload.objectKey)
  const { id, manifest } = json.data.finalizeFlashArtifactUpload
  assert.deepEqual(manifest, { version: 1, app: 'one' })
  const folder = files.path(id)
  assert.deepEqual(filesBelow(folder).sort(), ['empty.py', 'env/bin/tool', 'main.py', 'runpod_manifest.json'])
  assert.equal(readFileSync(join(folder, 'main.py'), 'utf8'), 'x = 1')
  const mode = (name: string) => statSync(join(folder, name)).mode & 0o7777
  assert.deepEqual([mode(''), mode('env/bin'), mode('main.py'), mode('env/bin/tool')], [0o555, 0o555, 0o444, 0o555])
})

test('an archive that could write elsewhere, or is too large, is refused with a sentence, and nothing is left', async t => {
  const { rig, root, appId } = await openApp(t, { artifactRules: { maxUnpackedBytes: 5_000_000 } })
  const outside = join(root, 'outside')
  const meta: TarEntry = { path: '././@LongLink', type: 'NextFileHasLongPath', data: Buffer.alloc(100_000, 'a') }
  const hostile: readonly [entries: readonly TarEntry[], sentence: RegExp][] = [
    [[{ path: '../outside', data: 'x' }], /"\.\.\/outside" leads out of the artifact/],
    [[{ path: 'a/../../../outside', data: 'x' }], /leads out of the artifact/],
    [[{ path: outside, data: 'x' }], /is an absolute path/],
    [
      [
        { path: 'a', type: 'SymbolicLink', linkpath: root },
        { path: 'a/outside', data: 'x' },
      ],
      /"a" is a SymbolicLink/,
    ],
    [[{ path: 'a', type: 'Link', linkpath: '/etc/passwd' }], /"a" is a Link/],
    [[{ path: 'a', type: 'CharacterDevice' }], /"a" is a CharacterDevice/],
    [[{ path: 'a', type: 'FIFO' }], /"a" is a FIFO/],
    [
      [
        { path: 'a', data: 'x' },
        { path: 'a', data: 'y' },
      ],
      /two entries of one name, "a"/,
    ],
    [
      [
        { path: 'a', data: 'x' },
        { path: 'a/b', data: 'y' },
      ],
      /two entries of one name, "a"/,
    ],
    [[{ path: 'a\\b', data: 'x' }], /has a character that no path of an artifact may have/],
    [[{ path: 'zeros', size: 10 * 1024 ** 3 }], /has more than 5000000 bytes when it is unpacked/],
    [[{ path: `${'x/'.repeat(120)}a`, data: 'x' }], /nested too deeply|not a whole tar archive/],
    [[meta, { path: 'a', data: 'x' }], /of the type NextFileHasLongPath, which is unknown or too long/],
  ]
  const archives: [Buffer, RegExp][] = hostile.map(([entries, sentence]) => [
    gzipSync(tarOf([...entries, MANIFEST_FILE])),
    sentence,
  ])
  archives.push([gzipSync(tarOf([{ path: 'a', data: 'x' }])), /has no file runpod_manifest\.json/])
  archives.push([Buffer.from('no archive'), /is not a whole gzip file/])
  archives.push([gzipSync('no archive'.repeat(200)), /is not a whole tar archive/])
  archives.push([gzipSync(tarOf([{ path: 'a', data: 'x'.repeat(2_000) }], true).subarray(0, 1_500)), /not a whole tar/])
  archives.push([artifactOf({ a: 'x'.repeat(5_000) }).subarray(0, 100), /is not a whole gzip file/])
  archives.push([gzipSync(Buffer.alloc(6_000_000)), /has more than 5000000 bytes/])
  archives.push([gzipSync(Buffer.concat([tarOf([MANIFEST_FILE]), Buffer.alloc(6_000_000)])), /more than 5000000/])
  archives.push([gzipSync(artifactOf({})), /is compressed twice/])
  for (const [archive, sentence] of archives) {
    const upload = await prepare(rig, appId, archive.length)
    assert.equal((await put(rig, upload, archive)).status, 200)
    const { json } = await finalize(rig, appId, upload.objectKey)
    assert.match(json.errors?.[0].message ?? 'it was not refused', sentence)
  }
  assert.deepEqual(filesBelow(join(root, 'builds')), [])
  assert.deepEqual(readdirSync(root).sort(), ['artifacts', 'builds'])
  assert.deepEqual(await rig.store.appBuilds.all(null, 10), [])
})

test('folders that an archive only implies count, too', async t => {
  const { root } = await openApp(t)
  const entries = Array.from({ length: 5 }, (_, n) => ({ path: `${n}/a/b/c/d/file`, data: 'x' }))
  const archive = join(root, 'deep.tar.gz')
  mkdirSync(root, { recursive: true })
  writeFileSync(archive, gzipSync(tarOf([...entries, MANIFEST_FILE])))
  const unpacked = (name: string, most: number) => unpackArtifact(archive, join(root, name), ARTIFACT_RULES, most)
  await assert.rejects(unpacked('few', 30), /has more than 30 files and folders/)
  assert.equal(await unpacked('enough', 31), 5 + MANIFEST_FILE.data!.length)
})

test('an archive has the announced size, whatever the request says', async t => {
  const { rig, root, appId } = await openApp(t, { artifactRules: { maxBytes: 1_000 } })
  await assert.rejects(prepare(rig, appId, 1_001), /1001 must be at most 1000 bytes/)
  await assert.rejects(prepare(rig, appId, 0), /must be a whole number of bytes of at least 1/)
  const archive = artifactOf({ 'main.py': 'x' })
  const upload = await prepare(rig, appId, archive.length)
  const longer = Buffer.concat([archive, Buffer.alloc(1)])
  const announced = await put(rig, upload, longer)
  assert.deepEqual(
    [announced.status, announced.json],
    [400, { error: `the artifact has ${longer.length} bytes, and ${archive.length} were announced` }],
  )
  const lying = { 'content-length': String(archive.length) }
  assert.match((await put(rig, upload, longer, lying)).json.error, /has more bytes, and \d+ were announced/)
  assert.match((await put(rig, upload, archive.subarray(1), lying)).json.error, /were announced/)
  assert.deepEqual(filesBelow(root), [])
  assert.match((await finalize(rig, appId, upload.objectKey)).json.errors[0].message, /was not received yet/)
  assert.equal((await put(rig, upload, archive)).status, 200)
  assert.equal((await put(rig, upload, archive)).status, 200, 'a client that got no response sends it again')
  assert.equal((await finalize(rig, appId, upload.objectKey)).json.errors, undefined)
  assert.equal((await put(rig, upload, archive)).status, 404, 'a build never changes')
})

test('an upload is known by the token in its address alone, for an hour', async t => {
  const { rig, appId } = await openApp(t)
  const archive = artifactOf({})
  const upload = await prepare(rig, appId, archive.length)
  const wrong = { ...upload, uploadUrl: `${upload.uploadUrl.slice(0, -1)}_` }
  const unknown = { ...upload, uploadUrl: upload.uploadUrl.replace(upload.objectKey, 'a'.repeat(14)) }
  for (const other of [wrong, unknown]) assert.equal((await put(rig, other, archive)).status, 404)
  const { pathname, search } = new URL(upload.uploadUrl)
  assert.equal((await rig.ask('GET', `${pathname}${search}`, { key: null })).status, 405)
  assert.equal((await rig.ask('PUT', `${pathname}/more${search}`, { key: null, body: archive })).status, 404)
  await rig.clock.advance(3_600_000)
  const late = await put(rig, upload, archive)
  assert.deepEqual([late.status, late.json.error], [404, 'there is no such upload, or its time is over; deploy again'])
})

test('the limits of an account are those of its builds and of their bytes', async t => {
  const { rig, appId } = await openApp(t)
  await rig.ask('PATCH', '/v2/account/accounts/owner', { body: { limits: { buildsMb: 1 } } })
  await prepare(rig, appId, 900_000)
  await assert.rejects(prepare(rig, appId, 200_000), /limit buildsMb of 1 MB of builds of apps would be passed/)
  const { quotas } = (await rig.ask('GET', '/v2/account/accounts/own/quotas')).json
  assert.deepEqual(quotas.buildsMb, { used: 1, limit: 1 })
  assert.deepEqual([quotas.apps.used, quotas.environments.used, quotas.builds.used], [1, 0, 0])
})

test('a folder of an earlier run of the machine is made again, since it may not be whole', async t => {
  const { rig, root, appId } = await openApp(t)
  const id = await makeBuild(rig, appId, { 'main.py': 'x' })
  const { artifact } = (await rig.store.appBuilds.all(null, 1))[0]!
  const rules = { maxBytes: 1e6, maxUnpackedBytes: 1e6 }
  const onError = (error: unknown) => assert.fail(String(error))
  const same = createArtifactFiles({ root, onError })
  assert.equal(await same.unpack(id, artifact, rules), null)
  const other = createArtifactFiles({ root, onError, bootId: 'after a power cut' })
  assert.equal(await other.unpack(id, artifact, rules), 14)
})

test('a draft that nobody continues is removed with the archives that are old', async t => {
  const { rig, root, files, appId } = await openApp(t)
  await makeBuild(rig, appId, {})
  const folder = join(root, 'artifacts')
  // As a server leaves it that is killed while it receives.
  writeFileSync(join(folder, '.abandoned'), 'x')
  assert.deepEqual(await files.old(3_600_000), [])
  for (const name of readdirSync(folder)) utimesSync(join(folder, name), 0, 0)
  const [archive] = await rig.store.appBuilds.all(null, 1)
  assert.deepEqual(await files.old(3_600_000), [archive!.artifact])
  assert.deepEqual(readdirSync(folder), [`${archive!.artifact}.tar.gz`])
})

test('two calls that make builds at once each make one', async t => {
  const { rig, appId } = await openApp(t)
  const archive = artifactOf({ 'main.py': 'x' })
  const upload = await prepare(rig, appId, archive.length)
  await put(rig, upload, archive)
  const answers = await Promise.all([1, 2].map(() => finalize(rig, appId, upload.objectKey)))
  const made = answers.filter(({ json }) => json.errors === undefined)
  assert.equal(made.length, 1)
  assert.match(
    answers.find(({ json }) => json.errors !== undefined)!.json.errors[0].message,
    /is being received, or made a build/,
  )
})
