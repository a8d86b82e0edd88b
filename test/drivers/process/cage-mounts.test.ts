/** Volumes of a task in a cage, beside the first one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { VolumeId } from '../../../src/core/ids.ts'
import { cageMounts } from '../../../src/drivers/cage/cage-mounts.ts'

const data = { id: 'd' as VolumeId, path: '/srv/data/volumes/d' }
const models = { id: 'm' as VolumeId, path: '/srv/data/volumes/m' }
const mountsAt = (one: string, other: string) =>
  cageMounts(
    {
      volume: data,
      mounts: [
        { ...data, at: one },
        { ...models, at: other },
      ],
    },
    ['/usr', '/srv/image', ''],
  )

test('each volume is at the path that its program names, and the second one at its own path, too', () => {
  assert.deepEqual(mountsAt('/data', '/mnt/models'), [
    { path: models.path, at: models.path },
    { path: data.path, at: '/data' },
    { path: models.path, at: '/mnt/models' },
  ])
})

test('a path is left out where something of the cage lies, since a link there could lead elsewhere', () => {
  const own = [{ path: models.path, at: models.path }]
  for (const at of [
    '/usr/share/x',
    '/srv',
    '/srv/image/data',
    '/tmp/x',
    '/etc',
    '/runpod-volume/x',
    `${data.path}/x`,
  ]) {
    assert.deepEqual(mountsAt(at, '/runpod-volume'), own, at)
  }
})
