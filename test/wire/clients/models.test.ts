/** One base URL for all models: official clients against two queue endpoints and two load-balancing ones. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { createOpenAI } from '@ai-sdk/openai'
import { embed, generateText, streamText, transcribe } from 'ai'
import OpenAI from 'openai'
import { patient } from '../../support/patience.ts'
import { ask, makeEndpoint } from '../support/client.ts'
import { langChainSkip, openAiSkip, python } from '../support/python.ts'
import { rawAsk } from '../support/raw-http.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const BALANCED = { type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 8, workersMin: 1, workersMax: 1 }
const QUEUE = { workersMin: 1, workersMax: 1, idleTimeout: 3600 }
const user = (content: string) => [{ role: 'user' as const, content }]
const PAGE = 'https://app.example'
const TEXT = 'héllo wörld 🌍 how are you'

describe('one base URL for all models', { timeout: patient(120_000) }, () => {
  let server: Server
  let client: OpenAI
  let vllm: string

  before(async () => {
    server = await startServer({ args: ['--cors-origin', PAGE] })
    client = new OpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: server.apiKey, maxRetries: 0 })
    const queue = (name: string) =>
      makeEndpoint(server, { folder: fixture('node-openai'), settings: { ...QUEUE, name } })
    const balanced = (name: string, env: Record<string, string>) =>
      makeEndpoint(server, { folder: fixture('balanced-openai'), env, settings: { ...BALANCED, name } })
    await Promise.all([queue('words'), queue('echo')])
    vllm = await balanced('qwen', { SHAPE: 'vllm', MODELS: 'Qwen/Qwen3-8B,lora-1' })
    await balanced('llama', { SHAPE: 'llama', MODELS: 'llama-3.gguf' })
    await until('all to be ready', async () => {
      const { data } = (await ask(server, '/openai/v1/models')).json
      return data.every(({ runyard }: { runyard: { state: string } }) => runyard.state === 'ready')
    })
  })

  /** The output of a script that gets the base URL and the key. */
  const inPython = async (script: string) => {
    const running = promisify(execFile)(python, ['-c', script, `${server.url}/openai/v1`])
    running.child.stdin?.end(`${server.apiKey}\n`)
    return JSON.parse((await running).stdout)
  }

  const wordsOf = async (model: string) => {
    let text = ''
    const stream = await client.chat.completions.create({ model, messages: user(TEXT), stream: true })
    for await (const event of stream) text += event.choices[0]?.delta.content ?? ''
    return text.trim()
  }

  test('the list has every model by the name of its endpoint', async () => {
    const names: string[] = []
    for await (const { id } of client.models.list()) names.push(id)
    assert.deepEqual(names.sort(), ['echo', 'llama', 'qwen', 'qwen/Qwen/Qwen3-8B', 'qwen/lora-1', 'words'])
    assert.equal((await client.models.retrieve('qwen')).owned_by, 'runyard')
  })

  test('a chat is answered whole and streamed by each of them', async () => {
    const served = {
      words: 'words',
      echo: 'echo',
      qwen: 'Qwen/Qwen3-8B',
      'qwen/lora-1': 'lora-1',
      llama: 'llama-3.gguf',
    }
    for (const [model, read] of Object.entries(served)) {
      const whole = await client.chat.completions.create({ model, messages: user(TEXT) })
      assert.deepEqual([whole.choices[0]?.message.content, whole.model], [TEXT, read])
      assert.equal(await wordsOf(model), TEXT, model)
    }
    const { data } = await client.embeddings.create({ model: 'qwen', input: 'abc', encoding_format: 'float' })
    assert.deepEqual(data[0]?.embedding, [3])
  })

  test('a large request passes, with its model at the end', async () => {
    const content = 'x'.repeat(8_000_000)
    for (const model of ['qwen', 'words']) {
      const body = { messages: user(content), model }
      const whole = await client.chat.completions.create(body)
      assert.equal(whole.choices[0]?.message.content?.length, content.length)
    }
  })

  test('a page that is allowed reads the answers of all models, and no other page does', async () => {
    for (const model of ['words', 'qwen'])
      for (const [origin, shown] of [
        [PAGE, PAGE],
        ['https://evil.example', null],
      ] as const) {
        const body = { model, messages: user('a') }
        const { status, headers } = await ask(server, '/openai/v1/chat/completions', { body, headers: { origin } })
        assert.deepEqual([status, headers.get('access-control-allow-origin')], [200, shown], `${model} ${origin}`)
      }
  })

  test('an unknown model is its exception, with the nearest name', async () => {
    await assert.rejects(wordsOf('qwem'), (error: InstanceType<typeof OpenAI.APIError>) => {
      assert.ok(error instanceof OpenAI.NotFoundError)
      assert.match(error.message, /^404 there is no model 'qwem'; did you mean 'qwen'\? there are /)
      return true
    })
  })

  test('a key that names a model calls it, and its open stream ends when the key is revoked', async () => {
    const scope = { type: 'restricted', management: 'none', jobs: 'none', models: ['qwen/lora-1'] }
    const { json } = await ask(server, '/v2/account/keys', { body: { name: 'lora', scope } })
    const limited = new OpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: json.key, maxRetries: 0 })
    const models: string[] = []
    for await (const { id } of limited.models.list()) models.push(id)
    assert.deepEqual(models, ['qwen/lora-1'])
    const lora = { model: 'qwen/lora-1', messages: user('a b') }
    assert.equal((await limited.chat.completions.create(lora)).model, 'lora-1')
    await assert.rejects(limited.chat.completions.create({ ...lora, model: 'qwen' }), OpenAI.NotFoundError)
    const headers = { authorization: `Bearer ${json.key}` }
    const direct = await ask(server, `/lb/${vllm}/v1/chat/completions`, { headers, body: lora })
    assert.equal(direct.status, 403)
    const long = { ...lora, messages: user('a '.repeat(1_000)), stream: true as const, sleep_ms: 50 }
    const stream = await limited.chat.completions.create(long)
    await assert.rejects(async () => {
      for await (const event of stream) {
        assert.ok(event)
        await ask(server, `/v2/account/keys/${json.id}`, { method: 'DELETE' })
      }
    })
  })

  test('files are sent as forms', async () => {
    const file = new File(['x'.repeat(3_000_000)], 'speech.wav', { type: 'audio/wav' })
    const { text } = await client.audio.transcriptions.create({ model: 'llama', file })
    assert.deepEqual(JSON.parse(text), { model: 'llama-3.gguf', file: 'speech.wav', bytes: 3_000_000, length: 0 })
    const direct = new OpenAI({ baseURL: `${server.url}/v2/${vllm}/openai/v1`, apiKey: server.apiKey, maxRetries: 0 })
    const given = await direct.audio.transcriptions.create({ model: 'lora-1', file })
    assert.equal(JSON.parse(given.text).model, 'lora-1')
  })

  test('every operation comes to both kinds of endpoints, whole and streamed', async () => {
    const image = (name: string) => new File(['x'], name, { type: 'image/png' })
    for (const model of ['llama', 'words']) {
      const completion = { model, prompt: 'a b' }
      assert.equal((await client.completions.create(completion)).choices[0]?.text, 'a b', model)
      let text = ''
      for await (const event of await client.completions.create({ ...completion, stream: true }))
        text += event.choices[0]?.text ?? ''
      assert.equal(text, 'a b', model)
      assert.equal((await client.responses.create({ model, input: 'a b' })).output_text, 'a b', model)
      text = ''
      for await (const event of await client.responses.create({ model, input: 'a b', stream: true }))
        if (event.type === 'response.output_text.delta') text += event.delta
      assert.equal(text, 'a b', model)
      const { data } = await client.embeddings.create({ model, input: 'abc', encoding_format: 'float' })
      assert.equal(data[0]?.embedding[0], 3)
      const ranked = await ask(server, '/openai/v1/rerank', { body: { model, query: 'a', documents: ['a', 'b'] } })
      assert.deepEqual(ranked.json.results, [{ index: 0 }, { index: 1 }], model)
      const drawn = await client.images.generate({ model, prompt: 'a b' })
      assert.equal(Buffer.from(drawn.data![0]!.b64_json!, 'base64').toString(), 'a b', model)
      const edited = { model, prompt: 'a', image: [image('1.png'), image('2.png')] }
      if (model === 'words')
        assert.equal(
          Buffer.from((await client.images.edit(edited)).data![0]!.b64_json!, 'base64').toString(),
          'a 1.png',
        )
      else await client.images.edit(edited)
      const heard = await client.audio.transcriptions.create({ model, file: image('a.wav') })
      assert.match(heard.text, /a\.wav/)
      const body = { model, max_tokens: 1, messages: user('a'), stream: true }
      const streamed = (await ask(server, '/openai/v1/messages', { body })).text
      assert.match(streamed, /^event: message_start\ndata: .*\n\nevent: message_stop\ndata: .*\n\n$/, model)
    }
    const speech = await client.audio.speech.create({ model: 'llama', input: 'abc', voice: 'alloy' })
    assert.equal(speech.headers.get('content-type'), 'audio/mpeg')
    assert.deepEqual([...new Uint8Array(await speech.arrayBuffer())], [0, 255, 3])
  })

  test('the form of Anthropic works, and no key comes to the worker', async () => {
    const { status, json } = await ask(server, '/openai/v1/messages', {
      headers: { authorization: null, 'x-api-key': server.apiKey },
      body: { model: 'qwen', max_tokens: 1, messages: user('a') },
    })
    assert.deepEqual([status, json.content[0].text, json.keys], [200, 'Qwen/Qwen3-8B', []])
  })

  /** A client that leaves after the first of a thousand words. */
  const leaving = async (from: OpenAI, at: Server, id: string, model: string) => {
    const stopped = new AbortController()
    const before = (await ask(at, `/lb/${id}/left`)).json.left
    const body = { model, messages: user('a '.repeat(1_000)), stream: true as const, sleep_ms: 50 }
    const stream = await from.chat.completions.create(body, { signal: stopped.signal })
    for await (const event of stream) {
      assert.ok(event)
      break
    }
    stopped.abort()
    const words = await until('the worker to see it', async () => {
      const { json } = await ask(at, `/lb/${id}/left`)
      return json.left > before && json.words
    })
    // The worker counts, so that no slow machine changes it: all of them would take 50 s at least.
    assert.ok(words < 500, `${words} of 1000 words were made`)
  }

  test('a client that leaves ends its request at the worker, long before its answer would end', () =>
    leaving(client, server, vllm, 'qwen'))

  test('the Python client works as that for JavaScript', { skip: openAiSkip }, async () => {
    const script = `
import openai, sys, json
client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.stdin.readline().strip(), max_retries=0, timeout=60)
seen = {"models": sorted(model.id for model in client.models.list())}
for model in ("qwen", "words"):
    messages = [{"role": "user", "content": "a b c"}]
    whole = client.chat.completions.create(model=model, messages=messages).choices[0].message.content
    parts = client.chat.completions.create(model=model, messages=messages, stream=True)
    seen[model] = [whole, "".join(part.choices[0].delta.content or "" for part in parts).strip()]
print(json.dumps(seen))`
    const { models, ...texts } = await inPython(script)
    assert.equal(models.length, 6)
    assert.deepEqual(texts, { qwen: ['a b c', 'a b c'], words: ['a b c', 'a b c'] })
  })

  test('LangChain invokes, streams and embeds', { skip: langChainSkip }, async () => {
    const script = `
import sys, json
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
at = {"base_url": sys.argv[1], "api_key": sys.stdin.readline().strip(), "max_retries": 0, "timeout": 60}
seen = {}
for model in ("qwen", "llama", "words", "echo"):
    chat = ChatOpenAI(model=model, **at)
    whole = chat.invoke("a b c")
    seen[model] = [whole.content, whole.response_metadata["model_name"], "".join(part.content for part in chat.stream("a b c")).strip()]
seen["embedding"] = OpenAIEmbeddings(model="qwen", check_embedding_ctx_length=False, **at).embed_documents(["abc"])
print(json.dumps(seen))`
    assert.deepEqual(await inPython(script), {
      qwen: ['a b c', 'Qwen/Qwen3-8B', 'a b c'],
      llama: ['a b c', 'llama-3.gguf', 'a b c'],
      words: ['a b c', 'words', 'a b c'],
      echo: ['a b c', 'echo', 'a b c'],
      embedding: [[1]],
    })
  })

  test('the AI SDK generates, streams, embeds and transcribes', async () => {
    const provider = createOpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: server.apiKey })
    for (const name of ['qwen', 'llama', 'words', 'echo']) {
      const asked = { model: provider.chat(name), prompt: 'a b c', maxRetries: 0 }
      assert.equal((await generateText(asked)).text, 'a b c', name)
      let text = ''
      for await (const part of streamText(asked).textStream) text += part
      assert.equal(text.trim(), 'a b c', name)
    }
    const { embedding } = await embed({ model: provider.embedding('qwen'), value: 'abc', maxRetries: 0 })
    assert.deepEqual(embedding, [1])
    const audio = Buffer.from('RIFF0000WAVEfmt ')
    const { text } = await transcribe({ model: provider.transcription('llama'), audio, maxRetries: 0 })
    assert.equal(JSON.parse(text).model, 'llama-3.gguf')
    const missing = { model: provider.chat('qwem'), prompt: 'a', maxRetries: 0 }
    await assert.rejects(generateText(missing), /there is no model 'qwem'; did you mean 'qwen'\?/)
  })

  test('streams of a cold model begin at once, and its worker reads the name that it serves', async () => {
    const gate = join(mkdtempSync(join(tmpdir(), 'gate-')), 'open')
    const env = { SHAPE: 'vllm', MODELS: 'Cold/Model', GATE: gate }
    const settings = { ...BALANCED, name: 'cold', workersMin: 0 }
    await makeEndpoint(server, { folder: fixture('balanced-openai'), env, settings })
    const chat = { model: 'cold', messages: user(TEXT) }
    const begun = await client.chat.completions.create({ ...chat, stream: true }).withResponse()
    const causes = ['about_to_start', 'worker_starting']
    assert.ok(causes.includes(begun.response.headers.get('x-runyard-wait') ?? ''))
    assert.ok(begun.response.headers.get('x-request-id'))
    const refused = { ...chat, stream: true as const, refuse: 400 }
    const other = await client.chat.completions.create(refused)
    const whole = client.chat.completions.create(chat)
    writeFileSync(gate, '')
    let text = ''
    for await (const event of begun.data) text += event.choices[0]?.delta.content ?? ''
    assert.equal(text.trim(), TEXT)
    assert.equal((await whole).model, 'Cold/Model')
    await assert.rejects(async () => {
      for await (const event of other) assert.fail(JSON.stringify(event))
    }, /too long/)
    await assert.rejects(
      client.chat.completions.create(refused),
      OpenAI.BadRequestError,
      'a ready model has its status',
    )
  })

  test('errors of the gateway have the form that the client reads, at the base URLs of its kind alone', async () => {
    const settings = { ...BALANCED, name: 'paused', workersMin: 0, workersMax: 0 }
    const id = await makeEndpoint(server, { folder: fixture('balanced-openai'), settings })
    const message = 'no workers available'
    const at = async (path: string) => {
      const { status, json } = await ask(server, path, { body: { model: 'paused', messages: [] } })
      assert.equal(status, 400)
      return json
    }
    for (const base of ['/openai', `/v2/${id}/openai`]) {
      const error = { message, type: 'invalid_request_error', param: null, code: 'invalid' }
      assert.deepEqual(await at(`${base}/v1/chat/completions`), { error })
      const other = { type: 'error', error: { type: 'invalid_request_error', message } }
      assert.deepEqual(await at(`${base}/v1/messages`), other)
    }
    for (const path of ['/v1/chat/completions', '/v1/messages'])
      assert.deepEqual(await at(`/lb/${id}${path}`), { error: message })
    await assert.rejects(
      client.chat.completions.create({ model: 'paused', messages: [] }),
      (error: InstanceType<typeof OpenAI.APIError>) => {
        assert.deepEqual([error.message, error.type], [`400 ${message}`, 'invalid_request_error'])
        return true
      },
    )
  })

  test('the name models below the domain, and threads that read HTTP, change nothing', async () => {
    const threads = await startServer({ args: ['--http-threads', '2', '--lb-domain', 'lb.example'] })
    const env = { SHAPE: 'vllm', MODELS: 'Cold/Model' }
    const settings = { ...BALANCED, name: 'cold', workersMin: 0 }
    const id = await makeEndpoint(threads, { folder: fixture('balanced-openai'), env, settings })
    const baseURL = `${threads.url}/openai/v1`
    const named = new OpenAI({ baseURL, apiKey: threads.apiKey, maxRetries: 0 })
    const asked = { model: 'cold', messages: user(TEXT), stream: true as const }
    const cold = await named.chat.completions.create(asked).withResponse()
    assert.ok(cold.response.headers.get('x-runyard-wait'))
    let text = ''
    for await (const event of cold.data) text += event.choices[0]?.delta.content ?? ''
    assert.equal(text.trim(), TEXT)
    const idsAt = async (host: string, path: string) => {
      const headers = { Host: host, Authorization: `Bearer ${threads.apiKey}` }
      const { body } = await rawAsk(threads.port, `GET ${path}`, { headers })
      return JSON.parse(body).data.map((model: { id: string }) => model.id)
    }
    assert.deepEqual(await idsAt('models.lb.example', '/openai/v1/models'), ['cold'])
    assert.deepEqual(await idsAt(`${id}.lb.example`, '/v1/models'), ['Cold/Model'])
    await leaving(named, threads, id, 'cold')
  })
})
