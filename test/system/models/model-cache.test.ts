import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { OwnerId, WorkerId } from '../../../src/core/ids.ts'
import { ModelError, type ModelProblem } from '../../../src/core/models/model-problem.ts'
import type { ModelWish } from '../../../src/ports/model-cache.ts'
import { systemClock } from '../../../src/system/clock.ts'
import {
  createModelCache,
  type DiskModelCache,
  type ModelCacheOptions,
} from '../../../src/system/models/model-cache.ts'
import { ModelHub } from '../../support/model-hub.ts'

const A = 'account-a' as OwnerId
const B = 'account-b' as OwnerId
const W1 = 'worker1' as WorkerId
const BIG = { bytes: 5_000_000, seed: 1 }
const TINY = { files: { 'config.json': '{"a":1}', 'weights/model.safetensors': BIG } }

async function open(context: TestContext, more: Partial<ModelCacheOptions> = {}) {
  const hub = await ModelHub.open(context)
  const { url } = hub
  const root = mkdtempSync(join(tmpdir(), 'runyard-models-'))
  context.after(() => rmSync(root, { recursive: true, force: true }))
  const again = (): DiskModelCache => {
    const options = { root, hub: url, limitBytes: null, clock: systemClock, env: {}, backoffMs: 1, ...more }
    const cache = createModelCache(options)
    context.after(() => cache.close())
    return cache
  }
  return { hub, root, cache: again(), again }
}

function wish(name: string, more: Partial<ModelWish> = {}): ModelWish {
  return { name, revision: 'main', commit: null, reader: { owner: A, token: null }, ...more }
}

async function findProblem(promise: Promise<unknown>): Promise<ModelProblem> {
  const thrown = await promise.then(
    () => assert.fail('it should have failed'),
    error => error,
  )
  assert.ok(thrown instanceof ModelError, String(thrown))
  return thrown.problem
}

test('a model lies in the layout of the cache of Hugging Face', async context => {
  const { hub, cache } = await open(context)
  const commit = hub.push('org/tiny', TINY)
  assert.deepEqual(await cache.fetch(wish('org/tiny')), { name: 'org/tiny', commit })
  const folder = join(cache.hubFolder, 'models--org--tiny')
  assert.deepEqual(readdirSync(folder).sort(), ['blobs', 'refs', 'snapshots'])
  assert.equal(readFileSync(join(folder, 'refs', 'main'), 'utf8'), commit)
  const snapshot = join(folder, 'snapshots', commit)
  assert.equal(readFileSync(join(snapshot, 'config.json'), 'utf8'), '{"a":1}')
  const link = join(snapshot, 'weights', 'model.safetensors')
  assert.match(readlinkSync(link), /^\.\.\/\.\.\/\.\.\/blobs\/[0-9a-f]{64}$/)
  assert.match(readlinkSync(join(snapshot, 'config.json')), /^\.\.\/\.\.\/blobs\/[0-9a-f]{40}$/)
  assert.equal(statSync(link).size, BIG.bytes)
  // Programs in containers run as other users.
  assert.deepEqual([statSync(link).mode & 0o777, statSync(snapshot).mode & 0o777], [0o444, 0o755])
  assert.equal(statSync(join(folder, 'refs', 'main')).mode & 0o777, 0o644)
})

test('what is there is not asked for again, also by another cache of the folder', async context => {
  const { hub, cache, again } = await open(context)
  const commit = hub.push('org/tiny', TINY)
  await cache.fetch(wish('org/tiny'))
  const files = hub.fileRequests().length
  await again().fetch(wish('org/tiny'))
  assert.equal(hub.fileRequests().length, files, 'a branch is asked for, its files are not')
  const before = hub.requests.length
  await again().fetch(wish('org/tiny', { commit }))
  await again().fetch(wish('org/tiny', { revision: commit }))
  assert.equal(hub.requests.length, before, 'a commit never changes')
})

test('several that want one model share its download', async context => {
  const { hub, cache } = await open(context)
  const commit = hub.push('org/tiny', TINY)
  const progress: number[] = []
  const all = [1, 2, 3].map(() =>
    cache.fetch(wish('org/tiny'), { progress: ({ receivedBytes }) => progress.push(receivedBytes) }),
  )
  const found = await Promise.all([...all, cache.fetch(wish('org/tiny', { revision: commit }))])
  assert.deepEqual(new Set(found.map(one => one.commit)), new Set([commit]))
  assert.equal(hub.fileRequests().filter(({ method }) => method === 'GET').length, 1)
  assert.equal(progress.at(-1), BIG.bytes + 7)
})

test('a download that ended in the middle goes on where it ended', async context => {
  const { hub, cache, again } = await open(context)
  hub.push('org/tiny', TINY)
  hub.faults.cuts.push(...[2_000_000, 0, 0, 0, 0, 0, 0, 0, 0])
  assert.equal((await findProblem(cache.fetch(wish('org/tiny')))).kind, 'hub_unreachable')
  cache.close()
  hub.faults.cuts.length = 0
  const before = hub.requests.length
  await again().fetch(wish('org/tiny'))
  const ranges = hub.requests.slice(before).filter(({ to, method }) => to === 'files' && method === 'GET')
  assert.equal(ranges.length, 1)
  const [, offset = '0'] = /bytes=(\d+)-/.exec(ranges[0]?.range ?? '') ?? []
  assert.ok(Number(offset) > 1_000_000 && Number(offset) <= 2_000_000, offset)
})

test('one that is cut again and again is whole at last, as long as it gets on', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/tiny', TINY)
  hub.faults.cuts.push(...Array.from({ length: 12 }, () => 300_000))
  await cache.fetch(wish('org/tiny'))
})

test('a hub that ignores ranges sends the whole file again, and the result is right', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/tiny', TINY)
  hub.faults.ignoresRanges = true
  hub.faults.cuts.push(2_000_000)
  await cache.fetch(wish('org/tiny'))
})

test('a file that a power cut damaged is downloaded again', async context => {
  const { hub, cache } = await open(context)
  const commit = hub.push('org/tiny', TINY)
  hub.faults.cuts.push(...[2_000_000, 0, 0, 0, 0, 0])
  await findProblem(cache.fetch(wish('org/tiny')))
  const blobs = join(cache.hubFolder, 'models--org--tiny', 'blobs')
  const part = readdirSync(blobs).find(name => name.endsWith('.incomplete'))
  writeFileSync(join(blobs, part!), Buffer.alloc(2_000_000))
  hub.faults.cuts.length = 0
  await cache.fetch(wish('org/tiny'))
  assert.ok(existsSync(join(cache.hubFolder, 'models--org--tiny', 'snapshots', commit)))
})

test('a snapshot that something else has made is not taken for a whole one', async context => {
  const { hub, cache } = await open(context)
  const commit = hub.push('org/tiny', TINY)
  const snapshot = join(cache.hubFolder, 'models--org--tiny', 'snapshots', commit)
  mkdirSync(snapshot, { recursive: true })
  writeFileSync(join(snapshot, 'config.json'), 'a part')
  await cache.fetch(wish('org/tiny'))
  assert.equal(readFileSync(join(snapshot, 'config.json'), 'utf8'), '{"a":1}')
  assert.equal(statSync(join(snapshot, 'weights', 'model.safetensors')).size, BIG.bytes)
})

test('a file with another content than listed never counts', async context => {
  const { hub, cache } = await open(context)
  const commit = hub.push('org/tiny', TINY)
  hub.faults.wrongContent = true
  const problem = await findProblem(cache.fetch(wish('org/tiny')))
  assert.deepEqual(problem, { kind: 'content_wrong', file: 'weights/model.safetensors', what: 'hash' })
  const folder = join(cache.hubFolder, 'models--org--tiny')
  assert.ok(!existsSync(join(folder, 'snapshots', commit)))
  assert.ok(!readdirSync(join(folder, 'blobs')).some(name => name.length >= 64), 'nothing wrong is kept')
})

test('what a hub refuses has its cause', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/gated', { ...TINY, tokens: ['hf_good'], isGated: true })
  hub.push('org/private', { ...TINY, tokens: ['hf_good'] })
  const kind = async (name: string, token: string | null, revision = 'main') =>
    (await findProblem(cache.fetch(wish(name, { revision, reader: { owner: A, token } })))).kind
  assert.equal(await kind('org/gated', null), 'token_missing')
  assert.equal(await kind('org/gated', 'hf_bad'), 'access_refused')
  assert.equal(await kind('org/private', null), 'token_missing')
  assert.equal(await kind('org/private', 'hf_bad'), 'not_found')
  assert.equal(await kind('org/nothing', null), 'token_missing')
  assert.equal(await kind('org/nothing', 'hf_good'), 'not_found')
  assert.equal(await kind('org/private', 'hf_good', 'v9'), 'not_found')
  hub.faults.statuses.push(...[503, 503, 503, 503, 503])
  assert.equal(await kind('org/gated', null), 'hub_failed')
  hub.close()
  assert.equal(await kind('org/gated', null), 'hub_unreachable')
})

test('failures that pass are tried again', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/tiny', TINY)
  hub.faults.statuses.push(...[503, 429, 500])
  await cache.fetch(wish('org/tiny'))
})

test('the download from a silent hub is aborted, and the received part stays', async context => {
  const { hub, cache, again } = await open(context, { stallMs: 50 })
  hub.push('org/tiny', TINY)
  let parts = 0
  hub.faults.slowly = async () => {
    parts += 1
    if (parts > 2) await new Promise(() => {})
  }
  assert.equal((await findProblem(cache.fetch(wish('org/tiny')))).kind, 'download_stalled')
  hub.faults.slowly = null
  await again().fetch(wish('org/tiny'))
  assert.match(hub.fileRequests().at(-1)?.range ?? '', /^bytes=\d{6,}-$/)
})

test('four files come at a time', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/parts', {
    files: Object.fromEntries([...Array(9).keys()].map(n => [`w${n}`, { bytes: 9_000, seed: n }])),
  })
  const { promise: all, resolve: goOn } = Promise.withResolvers<void>()
  const { promise: full, resolve: isFull } = Promise.withResolvers<void>()
  let opened = 0
  hub.faults.slowly = async () => {
    opened += 1
    if (opened === 4) isFull()
    await all
  }
  const fetched = cache.fetch(wish('org/parts'))
  await full
  // An earlier request would have arrived before a later one.
  await cache.fetch(wish('org/parts', { revision: 'v9' })).catch(() => {})
  assert.equal(opened, 4)
  goOn()
  await fetched
})

test('a token is shown to the hub alone, and only for what needs one', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/gated', { ...TINY, tokens: ['hf_good'], isGated: true })
  hub.push('org/open', { files: { x: { bytes: 10_000, seed: 2 } } })
  const reader = { owner: A, token: 'hf_good' }
  await cache.fetch(wish('org/gated', { reader }))
  assert.ok(hub.fileRequests().length > 0)
  assert.deepEqual(new Set(hub.fileRequests().map(({ token }) => token)), new Set([null]))
  await cache.fetch(wish('org/open', { reader }))
  const asked = hub.requests.filter(({ path }) => path.includes('org/open'))
  assert.deepEqual(new Set(asked.map(({ token }) => token)), new Set([null]))
  const kept = readdirSync(join(cache.hubFolder, '..', '..', 'notes'))
  for (const name of kept.filter(name => name.endsWith('.json')))
    assert.doesNotMatch(readFileSync(join(cache.hubFolder, '..', '..', 'notes', name), 'utf8'), /hf_good/)
})

test('a second account gets a restricted model only with a token of its own that the hub accepts', async context => {
  const { hub, cache, again } = await open(context)
  const commit = hub.push('org/gated', { ...TINY, tokens: ['hf_a', 'hf_b'], isGated: true })
  await cache.fetch(wish('org/gated', { reader: { owner: A, token: 'hf_a' } }))
  for (const one of [cache, again()]) {
    const asB = (token: string | null) => one.fetch(wish('org/gated', { commit, reader: { owner: B, token } }))
    assert.equal((await findProblem(asB(null))).kind, 'token_missing')
    assert.equal((await findProblem(asB('hf_wrong'))).kind, 'access_refused')
  }
  const files = hub.fileRequests().length
  await cache.fetch(wish('org/gated', { commit, reader: { owner: B, token: 'hf_b' } }))
  assert.equal(hub.fileRequests().length, files, 'only the right is asked for, the files are there')
  // Another token has to be shown to the hub again.
  const other = cache.fetch(wish('org/gated', { commit, reader: { owner: B, token: 'hf_other' } }))
  assert.equal((await findProblem(other)).kind, 'access_refused')
})

test('without a hub an account still gets what it could read before, and another does not', async context => {
  const { hub, cache, again } = await open(context)
  const commit = hub.push('org/gated', { ...TINY, tokens: ['hf_a'], isGated: true })
  const reader = { owner: A, token: 'hf_a' }
  await cache.fetch(wish('org/gated', { reader }))
  hub.close()
  assert.equal((await again().fetch(wish('org/gated', { reader }))).commit, commit)
  const asB = again().fetch(wish('org/gated', { commit, reader: { owner: B, token: 'hf_b' } }))
  assert.equal((await findProblem(asB)).kind, 'hub_unreachable')
})

test('names of files that lead elsewhere are refused', async context => {
  const { hub, cache, root } = await open(context)
  hub.push('org/tiny', TINY)
  for (const name of ['../../evil', '/etc/evil', 'a/../../evil', 'a//b', 'a\\..\\b', '.', 'x\0y', 'config.json']) {
    hub.faults.oddNames.splice(0, 1, name)
    const problem = await findProblem(cache.fetch(wish('org/tiny')))
    assert.equal(problem.kind, 'file_name_refused', name)
  }
  assert.ok(!existsSync(join(root, 'evil')))
  assert.deepEqual(hub.fileRequests(), [])
})

test('a long list comes in pages', async context => {
  const { hub, cache } = await open(context)
  const files = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`part/${index}.txt`, `file ${index}`]))
  const commit = hub.push('org/many', { files })
  hub.pageSize = 4
  await cache.fetch(wish('org/many'))
  const folder = join(cache.hubFolder, 'models--org--many', 'snapshots', commit, 'part')
  assert.equal(readdirSync(folder).length, 25)
})

test('a new commit of a branch is another snapshot, and shares what did not change', async context => {
  const { hub, cache } = await open(context)
  const first = hub.push('org/tiny', TINY)
  await cache.fetch(wish('org/tiny'))
  const second = hub.push('org/tiny', { files: { ...TINY.files, 'config.json': '{"a":2}' } })
  const files = hub.fileRequests().filter(({ method }) => method === 'GET').length
  assert.equal((await cache.fetch(wish('org/tiny'))).commit, second)
  assert.equal(hub.fileRequests().filter(({ method }) => method === 'GET').length, files)
  const folder = join(cache.hubFolder, 'models--org--tiny')
  assert.deepEqual(readdirSync(join(folder, 'snapshots')).sort(), [first, second].sort())
  assert.equal(readFileSync(join(folder, 'refs', 'main'), 'utf8'), second)
  // Workers of an older release go on with what they have, and the branch means the new one.
  await cache.fetch(wish('org/tiny', { commit: first }))
  assert.equal(readFileSync(join(folder, 'refs', 'main'), 'utf8'), second)
})

test('two commits that are downloaded at once share what they have in common', async context => {
  const { hub, cache } = await open(context)
  const weights = { 'model.safetensors': { bytes: 20_000_000, seed: 4 } }
  const first = hub.push('org/tiny', { files: { ...weights, 'config.json': '1' } })
  const second = hub.push('org/tiny', { files: { ...weights, 'config.json': '2' } })
  hub.faults.ignoresRanges = true
  await Promise.all([first, second].map(revision => cache.fetch(wish('org/tiny', { revision }))))
  assert.equal(hub.fileRequests().filter(({ method }) => method === 'GET').length, 1)
  const snapshots = join(cache.hubFolder, 'models--org--tiny', 'snapshots')
  for (const commit of [first, second])
    assert.equal(statSync(join(snapshots, commit, 'model.safetensors')).size, 20_000_000)
})

test('what was used longest ago makes room, and never what a worker has', async context => {
  let nowMs = 1_000_000
  const clock = { ...systemClock, now: () => nowMs }
  const { hub, cache, again } = await open(context, { limitBytes: 12_000_000, clock })
  const commits = ['a', 'b', 'c', 'd'].map((name, seed) =>
    hub.push(`org/${name}`, { files: { w: { bytes: 5e6, seed } } }),
  )
  const later = () => (nowMs += 3_600_000)
  await cache.fetch(wish('org/a'))
  later()
  await cache.fetch(wish('org/b'))
  later()
  assert.equal(await cache.hold(W1, [{ name: 'org/a', commit: commits[0]! }]), true)
  later()
  await cache.fetch(wish('org/c'))
  const names = async (one: DiskModelCache) => (await one.content()).models.map(({ name }) => name)
  assert.deepEqual(await names(cache), ['org/c', 'org/a'])
  // A model that was just requested waits for its worker.
  assert.equal((await findProblem(cache.fetch(wish('org/d')))).kind, 'cache_full')
  later()
  // Another server after a crash knows what workers have.
  const next = again()
  await next.fetch(wish('org/d'))
  assert.deepEqual(await names(next), ['org/d', 'org/a'])
  assert.equal(await next.remove('org/a', null), 'in_use')
  await next.tidy(async () => new Set())
  assert.equal(await next.remove('org/a', null), 'removed')
  assert.equal(await next.remove('org/a', null), 'absent')
  assert.equal(await next.hold(W1, [{ name: 'org/a', commit: commits[0]! }]), false)
})

test('a model that is larger than the cache is refused before a byte comes', async context => {
  const { hub, cache } = await open(context, { limitBytes: 4_000_000 })
  hub.push('org/tiny', TINY)
  const problem = await findProblem(cache.fetch(wish('org/tiny')))
  assert.deepEqual(problem, { kind: 'cache_full', neededBytes: 5_000_007, limitBytes: 4_000_000 })
  assert.equal(hub.fileRequests().filter(({ method }) => method === 'GET').length, 0)
})

test('what a download has left goes after some days, or as soon as its room is needed', async context => {
  const { hub, cache, again } = await open(context, { limitBytes: 7_000_000 })
  hub.push('org/tiny', TINY)
  hub.push('org/other', { files: { w: { bytes: 6_000_000, seed: 9 } } })
  const cut = async (one: DiskModelCache) => {
    hub.faults.cuts.push(...[4_000_000, 0, 0, 0, 0, 0])
    await findProblem(one.fetch(wish('org/tiny')))
    hub.faults.cuts.length = 0
  }
  await cut(cache)
  const folder = join(cache.hubFolder, 'models--org--tiny')
  await cache.tidy(async () => new Set())
  const [part = ''] = readdirSync(join(folder, 'blobs')).filter(name => name.endsWith('.incomplete'))
  for (const name of readdirSync(join(folder, 'blobs'))) utimesSync(join(folder, 'blobs', name), 1, 1)
  assert.ok(part !== '')
  await cache.tidy(async () => new Set())
  assert.ok(!existsSync(folder))
  await cut(again())
  await cache.fetch(wish('org/other'))
  assert.ok(!existsSync(join(folder, 'blobs', part)))
})

test('a model that is removed while it comes ends its download', async context => {
  const { hub, cache } = await open(context)
  hub.push('org/tiny', TINY)
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: goesOn, resolve: goOn } = Promise.withResolvers<void>()
  hub.faults.slowly = async () => {
    begin()
    await goesOn
  }
  const fetched = findProblem(cache.fetch(wish('org/tiny')))
  await begun
  const { downloads } = await cache.content()
  assert.deepEqual(
    downloads.map(({ name, totalBytes }) => [name, totalBytes]),
    [['org/tiny', 5_000_007]],
  )
  assert.equal(await cache.remove('org/tiny', null), 'removed')
  goOn()
  assert.equal((await fetched).kind, 'stopped')
  assert.ok(!existsSync(join(cache.hubFolder, 'models--org--tiny')))
})

test('a disk that takes nothing is named as what it is', async context => {
  const { hub, cache, root } = await open(context)
  hub.push('org/tiny', TINY)
  writeFileSync(join(root, 'huggingface-cache'), 'a file where a folder should be')
  assert.deepEqual(await findProblem(cache.fetch(wish('org/tiny'))), { kind: 'disk_failed', code: 'ENOTDIR' })
})

test('links of a snapshot stay in its model', async context => {
  const { hub, cache } = await open(context)
  const commit = hub.push('org/tiny', { files: { 'a/b/c.txt': 'x' } })
  await cache.fetch(wish('org/tiny'))
  const folder = join(cache.hubFolder, 'models--org--tiny')
  const real = realpathSync(join(folder, 'snapshots', commit, 'a', 'b', 'c.txt'))
  assert.ok(real.startsWith(join(realpathSync(folder), 'blobs')))
})
