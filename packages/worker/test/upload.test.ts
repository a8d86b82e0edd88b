import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import * as sdk from '../index.js'
import { accessId, accessSecret, BucketServer } from './support/bucket.ts'

const { uploadBytes, uploadFile, uploadImage } = sdk as unknown as typeof import('../src/index.ts')
const folder = mkdtempSync(join(tmpdir(), 'worker-upload-'))
const server = new BucketServer()
let bucket: { endpointUrl: string; accessId: string; accessSecret: string; bucketName: string }

before(async () => {
  process.chdir(folder)
  bucket = { endpointUrl: await server.listen(), accessId, accessSecret, bucketName: 'results' }
})
after(() => {
  server.close()
  process.chdir(tmpdir())
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  for (const name of Object.keys(process.env)) if (/^(?:BUCKET|RUNPOD)_/.test(name)) delete process.env[name]
})

const read = async (url: string) => (await fetch(url)).text()

describe('uploads', () => {
  it('puts a file into the bucket and gives an address at which everybody can read it for a week', async () => {
    writeFileSync('out put.bin', Buffer.alloc(300_000, 'wörld'))
    const url = await uploadFile('out put.bin', { prefix: 'a/b', bucket })
    assert.equal(new URL(url).pathname, '/results/a/b/out%20put.bin')
    assert.equal(new URL(url).searchParams.get('X-Amz-Expires'), '604800')
    assert.equal(await read(url), readFileSync('out put.bin', 'utf8'))
    assert.equal(server.stored.get('/results/a/b/out put.bin')?.contentType, 'application/octet-stream')
    assert.match(await read(`${url}0`), /SignatureDoesNotMatch/)
  })

  it('takes the bucket from the environment, and bytes and images too', async () => {
    const { endpointUrl: BUCKET_ENDPOINT_URL } = bucket
    const keys = { BUCKET_ACCESS_KEY_ID: accessId, BUCKET_SECRET_ACCESS_KEY: accessSecret }
    Object.assign(process.env, { BUCKET_ENDPOINT_URL, ...keys })
    const url = await uploadBytes("it's (1)+ü.txt", 'wörld', { contentType: 'text/plain' })
    assert.match(new URL(url).pathname, /^\/\d\d-\d\d\//)
    assert.equal(await read(url), 'wörld')
    writeFileSync('cat.JPG', 'a cat')
    const image = new URL(await uploadImage({ id: 'j1', input: {} }, 'cat.JPG'))
    assert.match(image.pathname, /^\/\d\d-\d\d\/j1\/[\da-f]{8}\.jpg$/)
    assert.equal(server.stored.get(image.pathname)?.contentType, 'image/jpeg')
  })

  it('tries again where the bucket is in trouble, and says what it refuses', async () => {
    server.troubles.push({ status: 503, code: 'SlowDown' })
    assert.equal(await read(await uploadBytes('again', 'x', { bucket })), 'x')
    const wrong = { ...bucket, accessSecret: 'nosuchsecret' }
    const refused = /^Error: again was not uploaded: the bucket answered 403: SignatureDoesNotMatch, no$/
    await assert.rejects(uploadBytes('again', 'x', { bucket: wrong }), refused)
    await assert.rejects(uploadBytes('../../other/x', 'x', { bucket }), /not a valid name of a file/)
    const signal = AbortSignal.abort(new Error('cancelled'))
    await assert.rejects(uploadBytes('again', 'x', { bucket, signal }), /cancelled/)
  })

  it('saves into a folder here where there is no bucket, but not on a platform', async () => {
    const path = await uploadBytes('../note.txt', 'kept')
    assert.equal(path, join(process.cwd(), 'local_upload', 'note.txt'))
    assert.equal(readFileSync(path, 'utf8'), 'kept')
    process.env.RUNPOD_WEBHOOK_GET_JOB = 'http://platform'
    await assert.rejects(uploadBytes('note.txt', 'lost'), /set BUCKET_ENDPOINT_URL/)
  })
})
