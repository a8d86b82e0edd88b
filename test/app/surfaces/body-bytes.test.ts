/** Bodies whose bytes are no text that can be read: refused with a sentence, and never changed in silence. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signIn } from '../../support/console.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'

/** `text` with a byte in place of `~` that begins no character. */
function encodeBroken(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'), byte => (byte === 0x7e ? 0xff : byte))
}

const LONG = 'x'.repeat(200_000)

/** Requests for each surface that takes JSON. */
async function calls(rig: Rig): Promise<[line: string, body: string][]> {
  const id = await rig.endpoint()
  return [
    [`POST /v2/${id}/run`, '{"input":{"a":"~"}}'],
    [`POST /v2/${id}/runsync?wait=1000`, '{"input":{"a":"~"}}'],
    [`POST /v2/${id}/run`, `{"input":{"a":"~","b":"${LONG}"}}`],
    [`POST /v2/${id}/batch`, '{"name":"~","requests":[]}'],
    [`POST /v2/${id}/openai/v1/chat/completions`, '{"model":"~"}'],
    ['POST /graphql', '{"query":"{ myself { id } }","operationName":"~"}'],
    ['POST /graphql', `{"query":"{ myself { id } }","variables":{"a":"~${LONG}"}}`],
    ['POST /v2/account/secrets', '{"name":"s","value":"~"}'],
    ['POST /v2/account/secrets', `{"name":"s","value":"~${LONG}"}`],
    ['POST /v1/templates', '{"name":"~","imageName":"a:1"}'],
  ]
}

test('a body that is not UTF-8 is refused with a sentence, small or large, and nothing of it is kept', async t => {
  const rig = await openRig(t)
  for (const [line, body] of await calls(rig)) {
    const [method = '', path = ''] = line.split(' ')
    const { status, text } = await rig.ask(method, path, { body: encodeBroken(body) })
    assert.deepEqual([status, /not UTF-8/.test(text)], [400, true], `${line}: ${text}`)
  }
  assert.deepEqual(rig.happened('job.accepted'), [])
  assert.equal((await rig.ask('GET', '/v2/account/secrets')).text.includes('"s"'), false)
})

test('a byte order mark before a body is skipped', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  const { status, text } = await rig.ask('POST', `/v2/${id}/run`, { body: '\ufeff{"input":{}}' })
  assert.equal(status, 200, text)
})

test('a body with a Content-Encoding is 415 with its name, and the answer says what is taken', async t => {
  const rig = await openRig(t)
  for (const [line, body] of await calls(rig)) {
    const [method = '', path = ''] = line.split(' ')
    for (const coding of ['gzip', 'br', 'zstd, gzip']) {
      const answer = await rig.ask(method, path, {
        body: body.replace('~', ''),
        headers: { 'content-encoding': coding },
      })
      assert.deepEqual([answer.status, answer.text.includes(coding)], [415, true], `${line}: ${answer.text}`)
      assert.equal(answer.headers.get('accept-encoding'), 'identity')
    }
  }
  const id = await rig.endpoint()
  const headers = { 'content-encoding': 'identity' }
  assert.equal((await rig.ask('POST', `/v2/${id}/run`, { body: '{"input":{}}', headers })).status, 200)
  assert.equal((await rig.ask('GET', '/v2/serverless', { headers: { 'content-encoding': 'gzip' } })).status, 200)
  assert.ok((await signIn(rig)).token)
})

test('the OpenAI route takes JSON and forms, and says so to files and forms without a boundary', async t => {
  const rig = await openRig(t)
  const id = await rig.endpoint()
  const send = (type: string | null, body: string) =>
    rig.ask('POST', `/v2/${id}/openai/v1/audio/transcriptions`, { body, type })
  const others = [
    ['multipart/form-data', 'model=whisper'],
    ['audio/wav', 'RIFF'],
    ['application/octet-stream', '{}'],
    ['text/csv', 'a,b'],
    ['text/plain', 'hello'],
    ['application/x-www-form-urlencoded', 'model=whisper'],
  ] as const
  for (const [type, body] of others) {
    const { status, json } = await send(type, body)
    assert.equal(status, 415, type)
    assert.match(
      json.error.message,
      /must be JSON \(application\/json\) or a form \(multipart\/form-data\), not [a-z/-]+/,
    )
  }
  assert.deepEqual(rig.happened('job.accepted'), [])
  const gone = AbortSignal.abort()
  for (const type of [
    null,
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/vnd.api+json',
  ]) {
    const asked = rig.ask('POST', `/v2/${id}/openai/v1/responses`, { body: '{"model":"a"}', type, signal: gone })
    assert.notEqual((await asked).status, 415, String(type))
  }
})

test('a result that is not UTF-8 fails its job with the reason, at once and once; a chunk is noted', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  for (const more of ['', LONG]) {
    const id = await rig.submit(endpoint)
    await worker.takeJob()
    assert.equal((await worker.chunk(id, encodeBroken(`{"output":"~${more}"}`))).status, 200)
    assert.equal((await worker.done(id, encodeBroken(`{"output":"~${more}"}`))).status, 200)
    const job = await rig.job(endpoint, id)
    assert.deepEqual([job.status, job.error], ['FAILED', 'the worker sent a result that is not UTF-8'])
    const record = await rig.ask('GET', `/v2/${endpoint}/explain/${id}`, { key: KEY })
    assert.match(
      JSON.stringify(await rig.ask('GET', `/v2/${endpoint}/requests/${id}/story`)) + record.text,
      /not kept: it is not UTF-8/,
    )
  }
})
