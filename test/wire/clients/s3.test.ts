/** The S3 door of a real server, called by boto3 and by the unmodified `rp_upload` of RunPod's SDK. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { python, skip } from '../support/python.ts'
import { fixture, programFile, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const run = promisify(execFile)

describe('files over S3', { skip }, () => {
  let server: Server
  let volume: string
  let folder: string
  // biome-ignore lint/suspicious/noExplicitAny: it is compared with what the test expects
  let seen: any

  before(async () => {
    server = await startServer()
    const env = { ...process.env, RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
    const runyard = (...words: string[]) => run(programFile(), words, { env, timeout: patient(60_000) })
    await runyard('volumes', 'create', '--name', 'data', '--size', '10', '--data-center', 'EU-RO-1')
    const pair = JSON.parse((await runyard('volumes', 'key', 'data', '--expires', '1h', '--json')).stdout)
    volume = pair.volume
    folder = join(server.dataDir, 'volumes', volume)
    const { BUCKET_ENDPOINT_URL, BUCKET_ACCESS_KEY_ID, BUCKET_SECRET_ACCESS_KEY } = pair
    const variables = { BUCKET_ENDPOINT_URL, BUCKET_ACCESS_KEY_ID, BUCKET_SECRET_ACCESS_KEY }
    assert.equal(BUCKET_ENDPOINT_URL, `${server.url}/s3`)
    const options = {
      env: { PATH: process.env.PATH ?? '', HOME: temporaryFolder(), ...variables },
      timeout: patient(90_000),
    }
    const { stdout } = await run(python, [`${fixture('python-s3')}/s3.py`, volume, temporaryFolder()], options)
    seen = JSON.parse(stdout)
  })

  test('boto3 puts, gets, lists, copies and deletes', () => {
    const { objects } = seen
    assert.deepEqual([objects.range, objects.bytes], ['world', 11])
    assert.deepEqual(objects.listed, ['a b/ü+%.txt', 'c/1', 'c/2', 'c/d/3'])
    assert.deepEqual([objects.folders, objects.deleted, objects.buckets], [['a b/', 'c/'], ['c/1', 'c/none'], [volume]])
    assert.deepEqual(objects.codes, ['NoSuchKey', 'PreconditionFailed', 'InvalidArgument', 'NotImplemented'])
    assert.equal(readFileSync(join(folder, 'a b/ü+%.txt'), 'utf8'), 'hello world')
  })

  test('large files pass in parts', () => {
    assert.deepEqual(seen.large, { same: true, parts: [100], left: 0 })
  })

  test('rp_upload stores files with the three variables alone, and its URLs open them', () => {
    const { uploads } = seen
    assert.deepEqual([uploads.image, uploads.files, uploads.file, uploads.memory], [true, [true, true], true, true])
    assert.deepEqual(uploads.bucket, [`${server.url}/s3/${volume}/job-4/${uploads.path}`])
    const month = readdirSync(folder).find(name => /^\d\d-\d\d$/.test(name))
    assert.ok(month !== undefined, 'the bucket of the month is a folder of the volume')
    assert.deepEqual(readFileSync(join(folder, 'job-4', uploads.path)).length, 70_000)
  })

  test('a presigned URL is a file for anybody who has it', async () => {
    const { get } = seen.presigned
    const answer = await fetch(get, { headers: { range: 'bytes=3-' } })
    assert.deepEqual([answer.status, await answer.text()], [206, 'URL'])
    assert.equal((await fetch(get, { method: 'DELETE' })).status, 403)
    symlinkSync('/etc/passwd', join(folder, 'link'))
    assert.equal((await fetch(get.replace('/put?', '/link?'))).status, 403)
    const bare = await fetch(`${server.url}/s3/${volume}/put`)
    assert.deepEqual([bare.status, bare.headers.get('content-type')], [403, 'application/xml'])
  })

  test('a client that goes away in the middle of an upload leaves nothing', async () => {
    const url = new URL(seen.presigned.put)
    const drafts = () => readdirSync(join(server.dataDir, 'volumes/.s3', volume))
    const socket = connect(Number(url.port), url.hostname)
    const head = [`PUT ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`, 'Content-Length: 1000000', '', '']
    socket.write(head.join('\r\n'))
    socket.write(Buffer.alloc(100_000))
    await until('the draft of the upload', () => drafts().length > 0)
    socket.destroy()
    await until('the end of the draft', () => drafts().length === 0)
    assert.ok(!readdirSync(folder).includes('gone'))
  })
})
