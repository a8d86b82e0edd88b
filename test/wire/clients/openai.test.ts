/** The official OpenAI client for Python against a real server and a worker that answers as worker-vllm does. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { before, describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, whenFinal } from '../support/client.ts'
import { python, openAiSkip as skip } from '../support/python.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const folder = fixture('python-openai')

describe('the official OpenAI client', { skip }, () => {
  let server: Server
  let id: string
  let base: string

  before(async () => {
    server = await startServer()
    const settings = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
    id = await makeEndpoint(server, { folder, args: `${python} handler.py`, settings })
    base = `/v2/${id}/openai/v1`
  })

  /** Runs one part of the script and gives what it printed. */
  // biome-ignore lint/suspicious/noExplicitAny: it is compared with what the test expects
  function client(part: string): Promise<any> {
    const env = { PATH: process.env.PATH ?? '', HOME: temporaryFolder() }
    return new Promise((resolve, reject) => {
      const args = [`${folder}/client.py`, `${server.url}${base}`, part]
      const child = execFile(python, args, { env, timeout: patient(90_000) }, (error, stdout, stderr) => {
        if (error === null) resolve(JSON.parse(stdout))
        else reject(new Error(`the script failed: ${stderr}`))
      })
      child.stdin?.end(`${server.apiKey}\n`)
    })
  }

  test('models.list and chat.completions.create give what the worker gave', async () => {
    assert.deepEqual(await client('models'), ['tiny'])
    assert.deepEqual(await client('chat'), { text: 'héllo wörld 🌍', tokens: 3 })
  })

  test('a stream arrives word by word, as the worker yields it', async () => {
    const { text, seconds } = await client('stream')
    assert.equal(text, 'héllo wörld 🌍 how are you')
    assert.ok(seconds > 0.8, `all of it came within ${seconds} s: it was held back`)
  })

  test('a stream is what the worker wrote, byte for byte', async () => {
    const body = { model: 'tiny', stream: true, messages: [{ role: 'user', content: 'a 🌍' }] }
    const { status, headers, text } = await ask(server, `${base}/chat/completions`, { body })
    assert.deepEqual([status, headers.get('content-type')], [200, 'text/event-stream; charset=utf-8'])
    const events = text.split('\n\n')
    assert.equal(events.length, 5)
    assert.deepEqual(events.slice(-2), ['data: [DONE]', ''])
    const contents = events.slice(0, 3).map(event => JSON.parse(event.slice(6)).choices[0].delta.content)
    assert.deepEqual(contents, ['a', ' 🌍', undefined])
  })

  test('12 streams at once each get their own words', async () => {
    const expected = Array.from({ length: 12 }, (_, number) => `number ${number}`)
    assert.deepEqual(await client('many'), expected)
  })

  test('errors of the upstream and of ours are the exceptions of the client', async () => {
    const message = 'The model `nope` does not exist.'
    assert.deepEqual(await client('missing'), [
      [404, message],
      [404, message],
    ])
    assert.deepEqual(await client('wrong_key'), [401, 'invalid_api_key'])
  })

  test('a client that closes its stream or gives up cancels the job, and the worker stops it', async () => {
    const cancelled = () => server.events('job.moved').filter(({ transition }) => transition === 'cancel')
    // A client that read the last event of a stream may disconnect before its job ended.
    const before = cancelled().length
    const { streamed } = await client('close')
    assert.equal((await whenFinal(server, id, streamed)).status, 'CANCELLED')
    await until('both jobs to be cancelled', () => cancelled().length === before + 2)
    assert.equal(cancelled()[before]!.jobId, streamed)
    const idle = async () => (await ask(server, `/v2/${id}/health`)).json.workers.idle === 1
    await until('the worker to let go of both', idle)
    assert.deepEqual(await client('models'), ['tiny'])
  })
})
