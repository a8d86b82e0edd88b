/** The caches of programs that the workers of an endpoint share, and those of no other endpoint. */
import assert from 'node:assert/strict'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { access } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { EndpointCaches } from '../../../src/drivers/process/endpoint-caches.ts'
import { everyEndpoint } from '../../support/worker-spec.ts'

const [one, other] = ['one', 'other'] as EndpointId[] as [EndpointId, EndpointId]
const [a, b, c] = ['a', 'b', 'c'] as WorkerId[] as [WorkerId, WorkerId, WorkerId]
const KB_IN_GB = 1e-6

let root: string
let folder: string
let hub: string
let count = 0

before(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'runyard-')))
})
after(() => rmSync(root, { recursive: true, force: true }))
beforeEach(() => {
  folder = join(root, String(count++))
  hub = join(folder, 'person', 'hub')
  mkdirSync(hub, { recursive: true })
})

const cachesOf = (limitGb = 0) => new EndpointCaches({ folder: join(folder, 'caches'), limitGb, hub })

/** A model as the tools of Hugging Face leave it. */
function download(name: string, text: string): void {
  const model = join(hub, `models--${name}`)
  for (const part of ['blobs', 'refs', 'snapshots/c1/sub']) mkdirSync(join(model, part), { recursive: true })
  writeFileSync(join(model, 'blobs', 'h1'), text)
  writeFileSync(join(model, 'refs', 'main'), 'c1')
  symlinkSync('../../../blobs/h1', join(model, 'snapshots', 'c1', 'sub', 'weights'))
  writeFileSync(join(model, 'snapshots', 'c1', 'plain'), text)
}

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  )

const weights = (cache: string, name: string) =>
  join(cache, 'huggingface', 'hub', `models--${name}`, 'snapshots', 'c1', 'sub', 'weights')

test('workers of one endpoint share a cache, and those of another have another', async () => {
  const caches = cachesOf()
  const [first, second, third] = [await caches.open(a, one), await caches.open(b, one), await caches.open(c, other)]
  assert.equal(first.path, second.path)
  assert.notEqual(first.path, third.path)
  assert.equal(lstatSync(first.path).mode & 0o777, 0o700)
  assert.deepEqual([caches.findCache(a), caches.findCache(c)], [first.path, third.path])
  caches.release(a)
  assert.equal(caches.findCache(a), null)
})

test('models of the person are read through links, and what a worker adds lies beside them', async () => {
  download('x--y', 'weights')
  const { path, readable } = await cachesOf().open(a, one)
  assert.deepEqual(readable, [hub])
  assert.equal(readFileSync(weights(path, 'x--y'), 'utf8'), 'weights')
  const model = join(path, 'huggingface', 'hub', 'models--x--y')
  assert.equal(readFileSync(join(model, 'snapshots', 'c1', 'plain'), 'utf8'), 'weights')
  writeFileSync(join(model, 'refs', 'main'), 'c2')
  writeFileSync(join(model, 'blobs', 'h2'), 'new')
  assert.equal(readFileSync(join(hub, 'models--x--y', 'refs', 'main'), 'utf8'), 'c1')
  assert.ok(!existsSync(join(hub, 'models--x--y', 'blobs', 'h2')))
})

test('a model that the person downloads later is there for the next worker, and what workers have added stays', async () => {
  const caches = cachesOf()
  const { path } = await caches.open(a, one)
  writeFileSync(join(path, 'kernel'), 'compiled')
  download('x--y', 'weights')
  await caches.open(b, one)
  assert.ok(!existsSync(weights(path, 'x--y')))
  caches.release(a)
  caches.release(b)
  await caches.open(c, one)
  assert.equal(readFileSync(weights(path, 'x--y'), 'utf8'), 'weights')
  assert.equal(readFileSync(join(path, 'kernel'), 'utf8'), 'compiled')
})

test('links that a worker leaves in its cache lead the server nowhere', async () => {
  const caches = cachesOf()
  const { path } = await caches.open(a, one)
  caches.release(a)
  const target = join(folder, 'target')
  mkdirSync(target)
  download('x--y', 'weights')
  for (const place of ['huggingface', 'huggingface/hub']) {
    rmSync(join(path, 'huggingface'), { recursive: true, force: true })
    if (place !== 'huggingface') mkdirSync(join(path, 'huggingface'))
    symlinkSync(target, join(path, place))
    await caches.open(b, one)
    caches.release(b)
    assert.deepEqual([existsSync(join(target, 'hub')), existsSync(join(target, 'models--x--y'))], [false, false])
  }
  await caches.tidy(async () => false)
  assert.ok(existsSync(target))
})

test('a model in a folder elsewhere is named, so that a cage can show it', async () => {
  download('x--y', 'weights')
  const elsewhere = join(folder, 'elsewhere')
  mkdirSync(elsewhere)
  symlinkSync(elsewhere, join(hub, 'models--z--z'))
  assert.deepEqual((await cachesOf().open(a, one)).readable, [hub, elsewhere])
})

test('a cache above its limit goes with the last worker that has it, and one below stays', async () => {
  const caches = cachesOf(64 * KB_IN_GB)
  const { path } = await caches.open(a, one)
  writeFileSync(join(path, 'small'), 'x')
  await caches.open(b, one)
  caches.release(a)
  writeFileSync(join(path, 'large'), Buffer.alloc(100_000, 1))
  caches.release(b)
  // Removed beside us: each look lets it go on.
  while (await isThere(path));
  await caches.open(c, one)
  assert.ok(!existsSync(join(path, 'small')))
})

test('the cache of a deleted endpoint is removed once no worker has it', async () => {
  const caches = cachesOf()
  const { path } = await caches.open(a, one)
  const kept = (await caches.open(b, other)).path
  caches.release(b)
  const exists = async (endpoint: EndpointId) => endpoint === other
  await caches.tidy(exists)
  assert.ok(existsSync(path))
  caches.release(a)
  await caches.tidy(everyEndpoint)
  assert.ok(existsSync(path))
  await caches.tidy(exists)
  assert.deepEqual([existsSync(path), existsSync(kept)], [false, true])
})

test('a server that has taken over a worker keeps the cache of its endpoint', async () => {
  const { path } = await cachesOf().open(a, one)
  const next = cachesOf()
  next.hold(a, one)
  await next.tidy(async () => false)
  assert.ok(existsSync(path))
})
