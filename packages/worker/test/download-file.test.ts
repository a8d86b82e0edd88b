import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import * as sdk from '../index.js'
import { type Member, makeZip } from './support/zip.ts'

const { downloadFile, removeDownloads } = sdk as unknown as typeof import('../src/index.ts')
const folder = mkdtempSync(join(tmpdir(), 'worker-download-file-'))

type Page = { body?: string | Buffer; headers?: Record<string, string>; status?: number }
const pages: Record<string, Page> = {
  '/cat.png': { body: 'a cat' },
  '/plain': { body: 'no name' },
  '/named': { body: 'a dog', headers: { 'content-disposition': 'attachment; filename="../..\\my dog.JPG"; size=5' } },
  '/moved.zip': { status: 302, headers: { location: '/7f3a' } },
  '/7f3a': { body: makeZip({ name: 'inside.txt', data: 'moved' }) },
}
const server = createServer((request, response) => {
  const { status, headers, body } = pages[(request.url ?? '').split('?')[0] as string] ?? { status: 404 }
  response.writeHead(status ?? 200, headers).end(body)
})
let origin: string

before(async () => {
  process.chdir(folder)
  process.env.RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS = 'true'
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => {
  server.close()
  server.closeAllConnections()
  process.chdir(tmpdir())
  rmSync(folder, { recursive: true })
})

const downloadedFiles = (job: string) => readdirSync(join('jobs', job, 'downloaded_files'))

/** Serves this archive at /files.zip. */
function offer(archive: Buffer): string {
  pages['/files.zip'] = { body: archive }
  return `${origin}/files.zip?X-Amz-Signature=secret`
}

/** Asserts that the archive is refused for this reason, and nothing of it is left. */
async function refuses(archive: Buffer, reason: RegExp, options = {}) {
  await assert.rejects(downloadFile('bad', offer(archive), options), (error: Error) => {
    assert.match(error.message, reason)
    assert.ok(error.message.startsWith(`${origin}/files.zip was not unpacked: `), error.message)
    return true
  })
  assert.deepEqual(downloadedFiles('bad'), [])
}

describe('one download', () => {
  it('tells where the file is, its type and its name', async () => {
    const cat = await downloadFile('j1', `${origin}/cat.png?size=2`)
    assert.equal(readFileSync(cat.path, 'utf8'), 'a cat')
    assert.ok(cat.path.startsWith(join(process.cwd(), 'jobs', 'j1', 'downloaded_files')))
    assert.deepEqual([cat.type, cat.originalName, cat.extractedPath], ['png', 'cat.png', null])
    const dog = await downloadFile('j1', `${origin}/named`)
    assert.deepEqual([dog.type, dog.originalName, dog.extractedPath], ['JPG', 'my dog.JPG', null])
    const plain = await downloadFile('j1', `${origin}/plain`)
    assert.deepEqual([plain.type, plain.originalName, plain.extractedPath], ['', 'plain', null])
    await removeDownloads('j1')
    assert.equal(existsSync('jobs/j1'), false)
  })

  it('has the bounds of other downloads', async () => {
    await assert.rejects(downloadFile('j2', `${origin}/missing`), /missing was not downloaded: the server answered 404/)
    await assert.rejects(downloadFile('j2', `${origin}/cat.png`, { maxBytes: 3 }), /larger than 3 bytes/)
    process.env.RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS = ''
    await assert.rejects(downloadFile('j2', `${origin}/cat.png`), /not a public address/)
    process.env.RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS = 'true'
    assert.deepEqual(downloadedFiles('j2'), [])
  })

  it('unpacks a zip file beside it', async () => {
    const large = Buffer.alloc(300_000, 'wörld')
    const members: Member[] = [
      { name: 'images/', mode: 0o040755 },
      { name: 'images/deep/er/cat.png', data: 'a cat' },
      { name: 'images/large.bin', data: large },
      { name: 'empty.txt' },
      // Archives that were not made on Unix have this kind.
      { name: 'ümlaut.txt', data: 'ü', mode: 0 },
    ]
    const { path, type, originalName, extractedPath } = await downloadFile('j3', offer(makeZip(...members)))
    assert.deepEqual([type, originalName, `${extractedPath}.zip`], ['zip', 'files.zip', path])
    const read = (name: string) => readFileSync(join(extractedPath!, name))
    assert.equal(read('images/deep/er/cat.png').toString(), 'a cat')
    assert.deepEqual([read('images/large.bin').equals(large), read('empty.txt').length], [true, 0])
    assert.equal(read('ümlaut.txt').toString(), 'ü')
    const moved = await downloadFile('j3', `${origin}/moved.zip`)
    assert.equal(moved.originalName, 'moved.zip')
    assert.equal(readFileSync(join(moved.extractedPath!, 'inside.txt'), 'utf8'), 'moved')
  })
})

describe('a zip file that means harm', () => {
  const good = { name: 'good.txt', data: 'good' }

  it('cannot write outside of its folder', async () => {
    const names = ['../up.txt', 'a/../../up.txt', 'a/..', '/etc/up.txt', 'C:/up.txt', '..\\up.txt', 'a\\up.txt', '.']
    for (const name of names) {
      await refuses(
        makeZip(good, { name, data: 'x' }),
        /relative path|absolute path|invalid characters|not a path inside/,
      )
    }
    assert.deepEqual(readdirSync(join('jobs', 'bad')), ['downloaded_files'])
  })

  it('cannot make links or devices', async () => {
    for (const mode of [0o120777, 0o060600, 0o010600]) {
      await refuses(makeZip(good, { name: 'link', data: '/etc/passwd', mode }), /"link" is neither a file nor a folder/)
    }
  })

  it('cannot write one name twice, or a file where a folder is', async () => {
    await refuses(makeZip(good, good), /EEXIST/)
    await refuses(makeZip(good, { name: 'good.txt/inside', data: 'x' }), /EEXIST|ENOTDIR/)
  })

  it('cannot grow beyond the bounds, whatever it says about its sizes', async () => {
    const bomb = { name: 'bomb', data: Buffer.alloc(5_000_000) }
    await refuses(makeZip(good, bomb), /"bomb" is larger than 100000 bytes/, { maxBytes: 100_000 })
    await refuses(makeZip({ ...bomb, says: { bytes: 10 } }), /too many bytes/)
    const many = Array.from({ length: 5 }, (_, index) => ({ name: `${index}`, data: Buffer.alloc(50_000) }))
    await refuses(makeZip(...many), /its files are larger than 200000 bytes/, { maxUnpackedBytes: 200_000 })
    await refuses(makeZip(...many), /more than 4 files and folders/, { maxUnpackedEntries: 4 })
    await refuses(makeZip({ name: 'a/b/c/d/e', data: 'x' }), /more than 4 files and folders/, { maxUnpackedEntries: 4 })
  })

  it('is refused when it is broken', async () => {
    const archive = makeZip(good, { name: 'other.txt', data: 'other' })
    await refuses(archive.subarray(0, archive.length - 30), /end of central directory/i)
    await refuses(archive.subarray(50), /invalid|Invalid/)
    await refuses(Buffer.from('<html>no zip</html>'), /end of central directory/i)
    await refuses(makeZip({ ...good, says: { bytes: 400 } }), /not enough bytes/)
    await refuses(makeZip({ ...good, says: { crc32: 1 } }), /"good.txt" has a wrong checksum/)
    await refuses(makeZip({ ...good, says: { flags: 1 } }), /encrypted/)
  })

  it('ends when the job is cancelled', async () => {
    const controller = new AbortController()
    const url = offer(makeZip(...Array.from({ length: 200 }, (_, index) => ({ name: `${index}`, data: 'x' }))))
    const downloaded = downloadFile('cancelled', url, { signal: controller.signal })
    server.once('request', (_, response) => response.on('close', () => controller.abort(new Error('cancelled'))))
    await assert.rejects(downloaded, /cancelled/)
    assert.deepEqual(downloadedFiles('cancelled'), [])
  })
})
