/** Bodies as large as they may be, of clients and of workers: nobody else is held up by them. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { type Answer, ask } from '../support/client.ts'
import { type RawWorker, silentEndpoint } from '../support/raw-worker.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const BYTES = 20_000_000

/**
 * Kinds that take a thread so long that the thread takes over a part of them; these used to hold the loop for 300 ms.
 */
const SLOW = new Set(['many small members', 'empty lists'])

/** Texts of JSON with so many bytes, each costly in a way of its own. */
const KINDS: Readonly<Record<string, (bytes: number) => string>> = {
  'one huge string': bytes => `{"a":"${'x'.repeat(bytes - 10)}"}`,
  numbers: bytes => `{"a":[${Array.from({ length: bytes / 8 }, (_, n) => n + 1e6)}]}`,
  escapes: bytes => `{"a":"${'\\n\\"'.repeat(bytes / 4 - 10)}"}`,
  'many small members': bytes => `{${Array.from({ length: bytes / 20 }, (_, n) => `"k${n + 1e7}":${n + 1e6}`)}}`,
  'letters of many scripts': bytes => `{"a":"${'ä€語'.repeat(bytes / 8 - 10)}"}`,
  'empty lists': bytes => `{"a":[${'[],'.repeat(bytes / 3 - 10)}1]}`,
}

describe('large bodies', () => {
  let server: ProbedServer
  let endpoint: string
  let worker: RawWorker

  before(async () => {
    server = await startProbedServer()
    const silent = await silentEndpoint(server)
    endpoint = silent.id
    worker = await silent.worker()
    for (let n = 0; n < 3; n += 1) await throughAll(KINDS['letters of many scripts']!(200_000))
  })

  const post = (path: string, body: string): Promise<Answer> => ask(server, path, { method: 'POST', body })

  /** From the client to the worker and back. */
  async function throughAll(input: string): Promise<void> {
    const asked = post(`/v2/${endpoint}/runsync?wait=60000`, `{"input":${input}}`)
    const taken = await worker.takeAnswer()
    assert.equal(taken.status, 200)
    assert.ok(taken.text.includes(input), 'the worker got another input')
    const id = /"id":"([^"]+)"/.exec(taken.text)![1]!
    assert.equal((await worker.done(id, `{"output":${input}}`)).status, 200)
    const answer = await asked
    assert.equal(answer.status, 200)
    assert.ok(answer.text.includes(`"output":${input}`), 'the client got another output')
    assert.equal(Buffer.byteLength(answer.text), Number(answer.headers.get('content-length')))
  }

  for (const [kind, make] of Object.entries(KINDS)) {
    test(`runsync with a large input and output, ${kind}`, async () => {
      const input = make(SLOW.has(kind) ? BYTES / 4 : BYTES)
      server.forgetHolds()
      await throughAll(input)
      server.assertNeverHeld()
    })
  }

  test('a list of chunks in one post of 20 MB, and reading it to its end', async () => {
    const output = Array.from({ length: 20 }, (_, n) => [n, 'x'.repeat(900_000)])
    const { json } = await post(`/v2/${endpoint}/run`, '{"input":{}}')
    await worker.take()
    server.forgetHolds()
    assert.equal((await worker.chunk(json.id, { output })).status, 200)
    assert.equal((await worker.chunk(json.id, { output: 'behind it' })).status, 200)
    assert.equal((await worker.done(json.id, { output: [] })).status, 200)
    const chunks: { output: unknown }[] = []
    for (let status = 'IN_PROGRESS'; status === 'IN_PROGRESS'; ) {
      const part = await ask(server, `/v2/${endpoint}/stream/${json.id}`)
      chunks.push(...part.json.stream)
      status = part.json.status
    }
    assert.equal(chunks.pop()?.output, 'behind it')
    assert.deepEqual(
      chunks.flatMap(chunk => chunk.output),
      output,
    )
    server.assertNeverHeld()
  })

  test('10 MB of requests of a batch in one call', async () => {
    const requests = Array.from({ length: 5_000 }, () => ({ input: { text: 'y'.repeat(2_000) } }))
    const body = JSON.stringify({ requests })
    server.forgetHolds()
    const { status, json } = await post(`/v2/${endpoint}/batch`, body)
    assert.equal(status, 200)
    assert.ok(json.id)
    server.assertNeverHeld()
  })

  test('an OpenAI request of 20 MB and its answer', async () => {
    const messages = KINDS['letters of many scripts']!(BYTES - 100)
    server.forgetHolds()
    const asked = post(`/v2/${endpoint}/openai/v1/chat/completions`, `{"messages":${messages}}`)
    const taken = await worker.takeAnswer()
    const id = /"id":"([^"]+)"/.exec(taken.text)![1]!
    assert.ok(taken.text.includes(messages))
    assert.equal((await worker.done(id, `{"output":[{"choices":${messages}}]}`)).status, 200)
    const answer = await asked
    assert.equal(answer.status, 200)
    assert.equal(answer.text, `{"choices":${messages}}`)
    server.assertNeverHeld()
  })

  test('an OpenAI stream whose worker yields a million empty lists', async () => {
    const asked = post(`/v2/${endpoint}/openai/v1/chat/completions`, '{"stream":true}')
    const { id } = await worker.take()
    const lists = `[${'[],'.repeat(300_000)}[]]`
    server.forgetHolds()
    for (let n = 0; n < 3; n += 1) assert.equal((await worker.chunk(id, `{"output":${lists}}`)).status, 200)
    assert.equal((await worker.done(id, '{"output":[]}')).status, 200)
    const stream = await asked
    assert.equal(stream.text, `${`data: ${lists}\n\n`.repeat(3)}data: [DONE]\n\n`)
    server.assertNeverHeld()
  })

  test('a webhook of 20 MB', async () => {
    const output = KINDS['letters of many scripts']!(BYTES - 1_000)
    const got = Promise.withResolvers<string>()
    const receiver = createServer((request, response) => {
      text(request).then(got.resolve, got.reject)
      request.once('end', () => response.end())
    })
    atEnd(() => void receiver.close())
    await new Promise<void>(resolve => receiver.listen(0, '127.0.0.1', resolve))
    const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const { json } = await post(`/v2/${endpoint}/run`, JSON.stringify({ input: {}, webhook }))
    await worker.take()
    server.forgetHolds()
    assert.equal((await worker.done(json.id, `{"output":${output}}`)).status, 200)
    assert.ok((await got.promise).includes(`"output":${output}`))
    server.assertNeverHeld()
  })

  test('requests of the management APIs with a great many values are refused', async () => {
    const many = `[${'[],'.repeat(1_000_000)}1]`
    server.forgetHolds()
    const graphql = await post('/graphql', `{"query":"{myself{id}}","variables":{"many":${many}}}`)
    assert.equal(graphql.status, 400)
    const rest = await post(
      '/v2/account/secrets',
      `{"name":"N","value":${many.slice(-900_000).replace(/^[^[]*/, '[')}}`,
    )
    assert.equal(rest.status, 400)
    server.assertNeverHeld()
  })
})
