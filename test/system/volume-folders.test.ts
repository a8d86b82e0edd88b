import assert from 'node:assert/strict'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { VolumeId } from '../../src/core/ids.ts'
import { createVolumeFolders } from '../../src/system/volume-folders.ts'

const V1 = 'v1' as VolumeId

function open(context: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-volumes-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const errors: unknown[] = []
  let count = 0
  const root = join(folder, 'volumes')
  const unique = () => `${++count}`
  return { folder, root, errors, volumes: createVolumeFolders({ root, unique, onError: error => errors.push(error) }) }
}

test('a volume is a folder for this user alone, and making it twice does no harm', async context => {
  const { root, volumes } = open(context)
  await volumes.create(V1)
  writeFileSync(join(volumes.path(V1), 'a'), 'x')
  await volumes.create(V1)
  assert.equal(volumes.path(V1), join(root, 'v1'))
  assert.equal(lstatSync(join(root, 'v1')).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(volumes.path(V1)), ['a'])
})

test('what is no id of a volume never becomes a path', async context => {
  const { volumes } = open(context)
  for (const id of ['', '..', 'a/b', '.removed', 'A', 'a\0', 'x'.repeat(64)]) {
    assert.throws(() => volumes.path(id as VolumeId), { code: 'internal' }, id)
    await assert.rejects(volumes.remove(id as VolumeId), { code: 'internal' }, id)
  }
})

test('removing a volume takes what is in it, and nothing that links in it point to', async context => {
  const { folder, root, volumes, errors } = open(context)
  const outside = join(folder, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'kept'), 'x')
  await volumes.create(V1)
  const deep = join(volumes.path(V1), 'a', 'b')
  mkdirSync(deep, { recursive: true })
  for (let n = 0; n < 100; n += 1) writeFileSync(join(deep, `${n}`), 'x')
  symlinkSync(outside, join(deep, 'folder'))
  symlinkSync(join(outside, 'kept'), join(deep, 'file'))
  symlinkSync('/nowhere', join(deep, 'broken'))
  mkdirSync(join(deep, 'closed'), { mode: 0o000 })
  await volumes.remove(V1)
  assert.ok(!existsSync(volumes.path(V1)), 'at once')
  await volumes.sweep()
  assert.deepEqual(readdirSync(join(root, '.removed')), [])
  assert.deepEqual([readdirSync(outside), errors], [['kept'], []])
  await volumes.remove(V1)
})

test('a volume whose folder is a link loses the link', async context => {
  const { folder, root, volumes } = open(context)
  const outside = join(folder, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'kept'), 'x')
  mkdirSync(root)
  symlinkSync(outside, join(root, 'v1'))
  await assert.rejects(volumes.create(V1), { code: 'internal' })
  await volumes.remove(V1)
  await volumes.sweep()
  assert.deepEqual(readdirSync(outside), ['kept'])
  assert.deepEqual(readdirSync(join(root, '.removed')), [])
})
