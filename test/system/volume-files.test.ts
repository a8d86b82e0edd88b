/** Files of network volumes on a real disk, beside a worker that places links. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { VolumeId } from '../../src/core/ids.ts'
import type { ListRequest, VolumeFiles } from '../../src/ports/volume-files.ts'
import { measureFolder } from '../../src/system/files/measured-folder.ts'
import { createVolumeFiles, type VolumeFilesOptions } from '../../src/system/files/volume-files.ts'
import { temporaryFolder } from '../wire/support/cleanup.ts'

const VOLUME = 'vol1' as VolumeId
const skip = process.platform !== 'linux' && 'needs /proc'

function openFiles(context: TestContext, options: Partial<VolumeFilesOptions> = {}) {
  const root = temporaryFolder()
  context.after(() => rmSync(root, { recursive: true, force: true }))
  const volume = join(root, VOLUME)
  mkdirSync(volume)
  let count = 0
  const unique = () => {
    count += 1
    return String(count).padStart(32, '0')
  }
  const files = createVolumeFiles({ root, unique, leftBytes: 0, namesAtOnce: 20, ...options })
  const outside = join(root, 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'secret'), 'secret')
  return { root, volume, files, outside }
}

async function put(
  files: VolumeFiles,
  key: string,
  content = key,
  condition: 'absent' | { tags: string } | null = null,
) {
  const draft = await files.draft(VOLUME, content.length)
  try {
    await draft.append(Buffer.from(content))
    return await draft.place(key.split('/'), condition)
  } finally {
    await draft.drop()
  }
}

async function read(files: VolumeFiles, key: string): Promise<string | null> {
  const file = await files.open(VOLUME, key.split('/'))
  if (file === null) return null
  const pieces: Uint8Array[] = []
  for await (const piece of file.read(0, file.bytes - 1)) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

async function listAll(files: VolumeFiles, request: Partial<ListRequest> = {}): Promise<string[][]> {
  const pages: string[][] = []
  let after: string | null = request.after ?? ''
  while (after !== null) {
    const whole: ListRequest = { prefix: '', byFolder: false, limit: 1_000, ...request, after }
    const page = await files.list(VOLUME, [], whole, new AbortController().signal)
    pages.push([...page.files.map(({ key }) => key), ...page.folders].sort())
    after = page.next
  }
  return pages
}

test('a file is placed with its folders, read, replaced and removed', { skip }, async t => {
  const { files, volume } = openFiles(t)
  const first = await put(files, 'a/b/c.txt', 'one')
  assert.equal(readFileSync(join(volume, 'a/b/c.txt'), 'utf8'), 'one')
  assert.deepEqual(await files.facts(VOLUME, ['a', 'b', 'c.txt']), first)
  const opened = await files.open(VOLUME, ['a', 'b', 'c.txt'])
  const second = await put(files, 'a/b/c.txt', 'two')
  assert.notEqual(first.tag, second.tag)
  assert.equal(await read(files, 'a/b/c.txt'), 'two')
  let old = ''
  for await (const piece of opened!.read(1, 2)) old += Buffer.from(piece).toString()
  assert.equal(old, 'ne', 'who reads the former file reads it to its end')
  await files.remove(VOLUME, ['a', 'b', 'c.txt'], false)
  await files.remove(VOLUME, ['a', 'b', 'c.txt'], false)
  assert.equal(await read(files, 'a/b/c.txt'), null)
  await files.remove(VOLUME, ['a'], true)
  assert.ok(existsSync(join(volume, 'a')), 'a folder with something in it stays')
  await files.remove(VOLUME, ['a', 'b'], true)
  assert.ok(!existsSync(join(volume, 'a/b')))
})

test('links are neither read, written through, listed nor removed', { skip }, async t => {
  const { files, volume, outside } = openFiles(t)
  symlinkSync(join(outside, 'secret'), join(volume, 'link'))
  symlinkSync(outside, join(volume, 'folder'))
  symlinkSync('/proc/self/environ', join(volume, 'environ'))
  execFileSync('mkfifo', [join(volume, 'pipe')])
  for (const key of ['link', 'folder/secret', 'environ', 'pipe', 'folder'])
    assert.equal(await read(files, key), null, key)
  assert.equal(await files.facts(VOLUME, ['folder'], true), null)
  assert.deepEqual(await listAll(files), [[]])
  assert.deepEqual(await listAll(files, { prefix: 'folder/' }), [[]])
  await assert.rejects(put(files, 'folder/new'), { code: 'InvalidArgument', message: /'folder' of the key/ })
  for (const key of ['folder/secret', 'link']) await files.remove(VOLUME, key.split('/'), false)
  await files.makeFolder(VOLUME, ['folder', 'made']).catch(() => {})
  assert.deepEqual(readdirSync(outside), ['secret'])
  await put(files, 'link', 'mine')
  assert.equal(readFileSync(join(outside, 'secret'), 'utf8'), 'secret', 'a write replaces the link itself')
  assert.ok(lstatSync(join(volume, 'link')).isFile())
})

test('a worker that swaps folders for links at any moment leads nothing outside', { skip }, async t => {
  const { files, volume, outside } = openFiles(t)
  await put(files, 'a/secret', 'mine')
  let isOver = false
  // A write may make the folder between two steps.
  const attempt = (act: () => void) => {
    try {
      act()
    } catch (error) {
      assert.match(String((error as NodeJS.ErrnoException).code), /^(EEXIST|ENOENT|ENOTEMPTY|ENOTDIR)$/)
    }
  }
  const swapping = (async () => {
    while (!isOver) {
      attempt(() => renameSync(join(volume, 'a'), join(volume, 'b')))
      attempt(() => symlinkSync(outside, join(volume, 'a')))
      await lstat(volume)
      attempt(() => rmSync(join(volume, 'a'), { recursive: true }))
      attempt(() => renameSync(join(volume, 'b'), join(volume, 'a')))
      await lstat(volume)
    }
  })()
  for (let round = 0; round < 40; round += 1) {
    assert.ok([null, 'mine'].includes(await read(files, 'a/secret')))
    await put(files, 'a/new').catch(error => assert.match(error.code, /^(InvalidArgument|ServiceUnavailable)$/))
    for (const page of await listAll(files)) assert.ok(!page.includes('a/secret') || !page.includes('a/other'))
  }
  isOver = true
  await swapping
  assert.deepEqual(readdirSync(outside), ['secret'])
})

test('what goes away in the last step of a write is named, too', { skip }, async t => {
  const { files, root } = openFiles(t)
  for (const condition of [null, 'absent'] as const) {
    const draft = await files.draft(VOLUME, 5)
    await draft.append(Buffer.from('hello'))
    // As where the folder of the key is removed: the file cannot be moved into its place.
    const drafts = join(root, '.s3', VOLUME)
    for (const name of readdirSync(drafts)) rmSync(join(drafts, name))
    await assert.rejects(draft.place(['a', 'b'], condition), { code: 'ServiceUnavailable' })
    await draft.drop()
  }
})

test('what stands in the way of a key is named', { skip }, async t => {
  const { files } = openFiles(t)
  await put(files, 'a/file')
  await assert.rejects(put(files, 'a/file/b'), { code: 'InvalidArgument' })
  await assert.rejects(put(files, 'a'), { code: 'InvalidArgument', message: /folder has this name/ })
  assert.equal(await read(files, 'a'), null)
  assert.equal(await read(files, 'a/file/b'), null)
  await assert.rejects(files.open('none' as VolumeId, ['a']), { code: 'NoSuchBucket' })
  await assert.rejects(files.open('..' as VolumeId, ['a']), { code: 'NoSuchBucket' })
})

test('a dropped draft leaves nothing, and a full disk takes none', { skip }, async t => {
  const { files, root, volume } = openFiles(t)
  const draft = await files.draft(VOLUME, 5)
  await draft.append(Buffer.from('hello'))
  assert.deepEqual(readdirSync(volume), [], 'workers do not see it')
  await draft.drop()
  assert.deepEqual(readdirSync(join(root, '.s3', VOLUME)), [])
  await assert.rejects(files.draft(VOLUME, 2 ** 60), { code: 'InsufficientStorage' })
})

test('uploads that run together leave the room on the disk that each of them saw free', { skip }, async t => {
  let freeBytes = 20 * 1024 ** 2
  const { files, root } = openFiles(t, { leftBytes: 8 * 1024 ** 2, freeBytes: async () => freeBytes })
  const mebibyte = new Uint8Array(1024 ** 2)
  const write = async (draft: { append(data: Uint8Array): Promise<void> }) => {
    for (let count = 0; count < 12; count += 1) {
      await draft.append(mebibyte)
      freeBytes -= mebibyte.length
    }
  }
  const { id } = await files.uploads.begin(VOLUME, ['c'])
  const drafts = [await files.draft(VOLUME, 12 * 1024 ** 2), await files.uploads.draft(VOLUME, id, 12 * 1024 ** 2)]
  await write(drafts[0]!)
  await assert.rejects(write(drafts[1]!), { code: 'InsufficientStorage' })
  assert.ok(freeBytes >= 4 * 1024 ** 2, `${freeBytes} bytes are left`)
  for (const draft of drafts) await draft.drop()
  assert.deepEqual(readdirSync(join(root, '.s3', VOLUME)), [id])
})

test('what is no file is not even opened, so that a device does nothing', { skip }, async t => {
  const { files, volume } = openFiles(t)
  const pipe = join(volume, 'pipe')
  execFileSync('mkfifo', [pipe])
  let isOpened = false
  const writer = open(pipe, 'w').finally(() => {
    isOpened = true
  })
  assert.equal(await files.open(VOLUME, ['pipe']), null)
  // In the time of other work of the disk, a writer that was let in would have noticed.
  for (let count = 0; count < 20; count += 1) await lstat(volume)
  assert.equal(isOpened, false, 'opening the pipe lets its writer in')
  const reader = await open(pipe, 'r')
  await (await writer).close()
  await reader.close()
})

test('folders in folders without end are measured in bounded time', { skip }, async t => {
  const { volume } = openFiles(t)
  mkdirSync(join(volume, 'a/'.repeat(40)), { recursive: true })
  for (const depth of [10, 40]) writeFileSync(join(volume, 'a/'.repeat(depth), 'file'), 'hello')
  assert.equal(await measureFolder(volume), 10)
  // The way to a folder at a depth of 40 is 40 steps, and there are as many of them.
  assert.equal(await measureFolder(volume, 400), 5)
})

test('conditions hold for writes at the same time: one of them wins', { skip }, async t => {
  const { files } = openFiles(t)
  const news = await Promise.allSettled(['a', 'b', 'c'].map(content => put(files, 'k', content, 'absent')))
  assert.equal(news.filter(({ status }) => status === 'fulfilled').length, 1)
  const { tag: tags } = (await files.facts(VOLUME, ['k']))!
  const changes = await Promise.allSettled(['d', 'e', 'f'].map(content => put(files, 'k', content, { tags })))
  assert.equal(changes.filter(({ status }) => status === 'fulfilled').length, 1)
  await assert.rejects(put(files, 'none', '', { tags }), { code: 'NoSuchKey' })
  const all = await Promise.all(Array.from({ length: 20 }, (_, at) => put(files, 'k', `${at}`.repeat(100))))
  assert.ok(all.map(({ tag }) => tag).includes((await files.facts(VOLUME, ['k']))!.tag))
})

test('a list has the order of S3, pages of any size, and folders', { skip }, async t => {
  const { files, volume } = openFiles(t)
  const keys = ['a', 'a-b', 'a.b', 'ab/c/d', 'ab/c-d', 'ab/e', 'b/1', 'b/10', 'b/2', 'é', 'z']
  for (const key of keys) await put(files, key)
  mkdirSync(join(volume, 'empty'))
  writeFileSync(join(volume, 'new\nline'), '')
  writeFileSync(join(volume, 'back\\slash'), '')
  const order = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  for (const limit of [1, 2, 3, 5, 100]) {
    const pages = await listAll(files, { limit })
    assert.deepEqual(pages.flat(), order, `pages of ${limit}`)
    assert.ok(pages.slice(0, -1).every(page => page.length === limit))
    const folders = await listAll(files, { limit, byFolder: true })
    assert.deepEqual(
      folders.flat(),
      ['a', 'a-b', 'a.b', 'ab/', 'b/', 'empty/', 'z', 'é'].sort((a, b) =>
        Buffer.compare(Buffer.from(a), Buffer.from(b)),
      ),
    )
  }
  assert.deepEqual((await listAll(files, { prefix: 'ab/' })).flat(), ['ab/c-d', 'ab/c/d', 'ab/e'])
  assert.deepEqual((await listAll(files, { prefix: 'ab/c', byFolder: true })).flat(), ['ab/c-d', 'ab/c/'])
  assert.deepEqual((await listAll(files, { prefix: 'b/1' })).flat(), ['b/1', 'b/10'])
  assert.deepEqual((await listAll(files, { prefix: '../' })).flat(), [])
  assert.deepEqual((await listAll(files, { after: 'ab/c-d' })).flat(), order.slice(order.indexOf('ab/c-d') + 1))
  assert.deepEqual((await listAll(files, { after: 'ab/' })).flat(), order.slice(order.indexOf('ab/c-d')))
})

test('a list goes on with what was written in between', { skip }, async t => {
  const { files } = openFiles(t)
  for (const key of ['a', 'c', 'e']) await put(files, key)
  const request = { prefix: '', byFolder: false, limit: 1 }
  const signal = new AbortController().signal
  const first = await files.list(VOLUME, [], { ...request, after: '' }, signal)
  assert.equal(first.next, 'a')
  await put(files, 'b')
  await files.remove(VOLUME, ['c'], false)
  const second = await files.list(VOLUME, [], { ...request, after: 'a' }, signal)
  const third = await files.list(VOLUME, [], { ...request, after: 'b' }, signal)
  assert.deepEqual([second.files[0]?.key, third.files[0]?.key, third.next], ['b', 'e', null])
})

test('a folder with more names than are held at once is listed to its end', { skip }, async t => {
  const { files, volume } = openFiles(t)
  mkdirSync(join(volume, 'many'))
  const names = Array.from({ length: 205 }, (_, at) => `f${String(at).padStart(6, '0')}`)
  for (const name of names) writeFileSync(join(volume, 'many', name), '')
  for (const limit of [7, 20, 33, 1_000]) {
    const pages = await listAll(files, { prefix: 'many/', limit })
    assert.deepEqual(
      pages.flat(),
      names.map(name => `many/${name}`),
    )
  }
})

test('a list that is out of time at once still gets to its end', { skip }, async t => {
  const { files } = openFiles(t, { listMs: 0 })
  const keys = ['a/b', 'a/c', 'd', 'e/f/g', 'h']
  for (const key of keys) await put(files, key)
  const pages = await listAll(files)
  assert.deepEqual(pages.flat(), keys)
  assert.ok(pages.length > 1)
  assert.deepEqual((await listAll(files, { byFolder: true })).flat(), ['a/', 'd', 'e/', 'h'])
})

test('parts are put together at the end, also after a restart', { skip }, async t => {
  const { files, root, volume } = openFiles(t)
  const { id } = await files.uploads.begin(VOLUME, ['a', 'b'])
  const part = async (number: number, content: string, md5: string) => {
    const draft = await files.uploads.draft(VOLUME, id, content.length)
    await draft.append(Buffer.from(content))
    return draft.keep(number, md5.repeat(32))
  }
  await part(2, 'world', 'a')
  await part(1, 'wrong', 'b')
  await part(1, 'hello ', 'c')
  const again = createVolumeFiles({ root, unique: () => 'f'.repeat(32), leftBytes: 0 })
  const parts = await again.uploads.parts(VOLUME, id)
  assert.deepEqual(
    parts.map(({ number, bytes, tag }) => [number, bytes, tag[1]]),
    [
      [1, 6, 'c'],
      [2, 5, 'a'],
    ],
  )
  assert.equal(await again.measure(VOLUME), 11 + lstatSync(join(root, '.s3', VOLUME, id, 'upload.json')).size)
  const upload = (await again.uploads.find(VOLUME, id))!
  await again.uploads.complete(VOLUME, upload, parts, null)
  assert.equal(readFileSync(join(volume, 'a/b'), 'utf8'), 'hello world')
  assert.deepEqual(readdirSync(join(root, '.s3', VOLUME)), [])
  assert.equal(await again.uploads.find(VOLUME, id), null)
  for (const bad of ['../../outside', '..', '', 'upload.json'])
    assert.equal(await files.uploads.find(VOLUME, bad), null)
  await assert.rejects(files.uploads.draft(VOLUME, id, 1), { code: 'NoSuchUpload' })
})

test('uploads and drafts that nobody continues are removed', { skip }, async t => {
  const { files, root } = openFiles(t)
  const old = await files.uploads.begin(VOLUME, ['a'])
  const draft = await files.draft(VOLUME, 1)
  const fresh = await files.uploads.begin(VOLUME, ['b'])
  const folder = join(root, '.s3', VOLUME)
  for (const name of readdirSync(folder)) if (name !== fresh.id) utimesSync(join(folder, name), 1, 1)
  await files.uploads.removeOld(3_600_000)
  assert.deepEqual(readdirSync(folder), [fresh.id])
  assert.deepEqual(
    (await files.uploads.list(VOLUME)).map(({ id }) => id),
    [fresh.id],
  )
  await files.uploads.abort(VOLUME, fresh.id)
  await files.uploads.abort(VOLUME, old.id)
  await draft.drop()
  assert.deepEqual(readdirSync(folder), [])
})
