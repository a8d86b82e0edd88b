import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, beforeEach, describe, it } from 'node:test'
import * as sdk from '../index.js'
import { isPublic } from '../src/public-address.ts'

const { downloadFiles, removeDownloads } = sdk as unknown as typeof import('../src/index.ts')
const folder = mkdtempSync(join(tmpdir(), 'worker-download-'))
const asked: string[] = []
function* endless() {
  for (;;) yield 'x'.repeat(65_536)
}
const pages: Record<string, RequestListener> = {
  '/cat.png': (_, response) => response.end('a cat'),
  '/named': (_, response) =>
    response.setHeader('content-disposition', 'attachment; filename="../../my dog.JPG"').end('a dog'),
  '/moved': (_, response) => response.writeHead(302, { location: '/cat.png' }).end(),
  '/round': (_, response) => response.writeHead(302, { location: '/round' }).end(),
  '/shaky': (_, response) =>
    asked.filter(path => path === '/shaky').length < 3 ? response.writeHead(503).end() : response.end('at last'),
  '/endless': (_, response) =>
    void Readable.from(endless())
      .on('error', () => {})
      .pipe(response),
}
const server = createServer((request, response) => {
  const path = (request.url ?? '').split('?')[0] as string
  asked.push(path)
  const page = pages[path]
  if (page) page(request, response)
  else response.writeHead(404).end()
})
let origin: string

before(async () => {
  process.chdir(folder)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
after(() => {
  server.close()
  server.closeAllConnections()
  process.chdir(tmpdir())
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  asked.length = 0
  process.env.RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS = 'true'
})

const downloadedFiles = (job: string) => readdirSync(join('jobs', job, 'downloaded_files'))

describe('downloads', () => {
  it('puts files into the folder of the job, in the order of their addresses, and removes them', async () => {
    const urls = ['/named', '/cat.png?size=2', '/moved', '/shaky'].map(path => origin + path)
    const paths = await downloadFiles('j1', urls)
    assert.deepEqual(
      paths.map(path => readFileSync(path, 'utf8')),
      ['a dog', 'a cat', 'a cat', 'at last'],
    )
    assert.deepEqual(
      paths.map(path => extname(path)),
      ['.JPG', '.png', '.png', ''],
    )
    assert.ok(paths.every(path => path.startsWith(join(process.cwd(), 'jobs', 'j1', 'downloaded_files'))))
    await removeDownloads({ id: 'j1', input: {} })
    assert.equal(existsSync('jobs/j1'), false)
  })

  it('fails with the address and the reason, and leaves nothing behind', async () => {
    const missing = `${origin}/missing?X-Amz-Signature=secret`
    await assert.rejects(downloadFiles('j2', [`${origin}/cat.png`, missing]), {
      message: `${origin}/missing was not downloaded: the server answered 404`,
    })
    await assert.rejects(downloadFiles('j2', `${origin}/round`), /redirected more than 5 times/)
    await assert.rejects(downloadFiles('j2', 'file:///etc/passwd'), /not an http or https address/)
    await assert.rejects(downloadFiles('j2', `${origin}/endless`, { maxBytes: 100_000 }), /larger than 100000 bytes/)
    const signal = AbortSignal.abort(new Error('cancelled'))
    await assert.rejects(downloadFiles('j2', `${origin}/endless`, { signal }), /cancelled/)
    await assert.rejects(downloadFiles('j2', Array(1001).fill(origin)), /more than the 1000/)
    assert.deepEqual(downloadedFiles('j2'), [])
  })

  it('reads no address of the machine or its network, unless it is allowed to', async () => {
    process.env.RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS = ''
    const { port } = server.address() as AddressInfo
    for (const host of ['127.0.0.1', 'localhost', '0x7f.1', '[::1]', '[::ffff:7f00:1]']) {
      await assert.rejects(downloadFiles('j3', `http://${host}:${port}/cat.png`), /not a public address/, host)
    }
    assert.deepEqual(asked, [])
  })

  it('keeps the files of an id that looks like a path in a folder of their own', async () => {
    const [path] = await downloadFiles('../../up', `${origin}/cat.png`)
    assert.ok(path?.startsWith(join(process.cwd(), 'jobs', '%2E%2E%2F%2E%2E%2Fup')))
  })

  it('knows which addresses are public', () => {
    for (const address of ['8.8.8.8', '172.32.0.1', '2606:4700::1111']) assert.equal(isPublic(address), true, address)
    const others = [
      '10.1.2.3',
      '169.254.169.254',
      '100.64.0.1',
      '224.0.0.1',
      '::1',
      'fe80::1',
      'fd00::1',
      '64:ff9b::a00:1',
    ]
    for (const address of [...others, '2002:a00:1::', '::ffff:8.8.8.8', 'nonsense'])
      assert.equal(isPublic(address), false, address)
  })
})
