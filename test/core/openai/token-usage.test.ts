import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type AnswerForm,
  answerForm,
  modelName,
  reportsTokens,
  TOKEN_BYTES,
  TokenReader,
  type TokenUsage,
} from '../../../src/core/openai/token-usage.ts'

const MOST_KEPT = TOKEN_BYTES.head + 2 * TOKEN_BYTES.tail

function readIn(form: AnswerForm, bytes: Uint8Array, sizes: readonly number[] = []): TokenUsage | null {
  const reader = new TokenReader(form)
  let at = 0
  for (const size of sizes) {
    const piece = bytes.slice(at, at + size)
    reader.take(piece)
    piece.fill(0x7b)
    at += size
    assert.ok(reader.keptBytes <= MOST_KEPT)
  }
  reader.take(bytes.slice(Math.min(at, bytes.length)))
  assert.ok(reader.keptBytes <= MOST_KEPT)
  return reader.end()
}

const bytesOf = (text: string) => new TextEncoder().encode(text)
const ofJson = (value: unknown) => readIn('json', bytesOf(typeof value === 'string' ? value : JSON.stringify(value)))
const ofEvents = (...events: readonly unknown[]) =>
  readIn(
    'events',
    bytesOf(events.map(event => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('')),
  )
const used = (promptTokens: number, completionTokens: number, cachedTokens = 0, model: string | null = 'm') => ({
  model,
  promptTokens,
  completionTokens,
  cachedTokens,
})

test('the answers of servers of OpenAI form, and of that of Anthropic, say their tokens', () => {
  const usage = {
    prompt_tokens: 7,
    total_tokens: 12,
    completion_tokens: 5,
    prompt_tokens_details: { cached_tokens: 4 },
  }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'a "usage": {"prompt_tokens": 99} b' } }]
  assert.deepEqual(ofJson({ id: 'x', model: 'm', choices, usage }), used(7, 5, 4))
  assert.deepEqual(ofJson({ choices, model: 'm', usage, prompt_logprobs: null, timings: { a: [1] } }), used(7, 5, 4))
  assert.deepEqual(
    ofJson({ object: 'list', data: [{ embedding: [1] }], model: 'm', usage: { prompt_tokens: 3, total_tokens: 3 } }),
    used(3, 0),
  )
  assert.deepEqual(ofJson({ results: [], usage: { total_tokens: 9 } }), used(9, 0, 0, null))
  const response = { input_tokens: 6, output_tokens: 2, input_tokens_details: { cached_tokens: 1 }, total_tokens: 8 }
  assert.deepEqual(ofJson({ model: 'm', output: [], usage: response, metadata: {} }), used(6, 2, 1))
  const anthropic = { input_tokens: 6, output_tokens: 2, cache_read_input_tokens: 10, cache_creation_input_tokens: 4 }
  assert.deepEqual(ofJson({ model: 'm', content: [], usage: anthropic }), used(20, 2, 10))
  assert.deepEqual(ofJson(JSON.stringify({ model: 'm', usage }, null, 2)), used(7, 5, 4))
})

test('an answer without usage says none, nor does one that is cut or not in its form', () => {
  const usage = { prompt_tokens: 7, completion_tokens: 5 }
  for (const value of [
    '',
    'hello',
    '{"usage":',
    '{"usage":{"prompt_tokens":1}',
    { error: { message: 'no' } },
    { usage: null },
    { usage: { seconds: 3, type: 'duration' } },
    { usage: { prompt_tokens: -1 } },
    { usage: { prompt_tokens: 1.5, completion_tokens: '2' } },
    { usage: { prompt_tokens: 1e12 } },
    { choices: [{ usage }] },
    { data: { usage } },
    { text: JSON.stringify({ usage }) },
    `{"usage":${'['.repeat(9)}${']'.repeat(9)}}`,
    `{"usage":${'{"a":'.repeat(100_000)}`,
  ]) {
    assert.equal(ofJson(value), null, String(value).slice(0, 80))
  }
})

test('the end of a stream says its tokens, also beside events of other forms', () => {
  const chunk = { model: 'm', choices: [{ delta: { content: '"usage":{"prompt_tokens":1}' } }], usage: null }
  const usage = { prompt_tokens: 7, completion_tokens: 5 }
  assert.deepEqual(ofEvents(chunk, chunk, { model: 'm', choices: [], usage }, '[DONE]'), used(7, 5))
  const going = { ...chunk, usage: { prompt_tokens: 7, completion_tokens: 1 } }
  assert.deepEqual(ofEvents(going, { ...going, usage: { prompt_tokens: 7, completion_tokens: 2 } }), used(7, 2))
  assert.equal(ofEvents(chunk, '[DONE]'), null)
  const text = 'x'.repeat(100_000)
  const response = { model: 'm', output: [{ text }], usage: { input_tokens: 4, output_tokens: 9 } }
  assert.deepEqual(ofEvents({ type: 'response.completed', response }), used(4, 9))
  const start = {
    type: 'message_start',
    message: { model: 'm', usage: { input_tokens: 3, cache_read_input_tokens: 2, output_tokens: 1 } },
  }
  const long = Array.from({ length: 1_000 }, () => ({ type: 'content_block_delta', delta: { text: 'hello' } }))
  assert.deepEqual(
    ofEvents(start, ...long, { type: 'message_delta', usage: { output_tokens: 40 } }, { type: 'message_stop' }),
    used(5, 40, 2),
  )
})

test('the model is at the beginning of an answer, or at its end', () => {
  const usage = { prompt_tokens: 1, completion_tokens: 1 }
  const data = 'x'.repeat(50_000)
  assert.equal(ofJson({ model: 'a', data, usage })?.model, 'a')
  assert.equal(ofJson({ data, model: 'b', usage })?.model, 'b')
  assert.equal(ofJson({ data, usage, model: 'c\u0000\u202e' })?.model, 'c')
  assert.equal(ofJson({ model: 7, usage })?.model, null)
  assert.equal(ofJson({ model: 'm'.repeat(1_000), usage })?.model?.length, 191)
  assert.equal(modelName(' \n'), null)
})

test('property: pieces of any sizes say the same as the whole, and nothing is kept beyond the limit', () => {
  const sizes = fc.array(fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 40_000 })), {
    maxLength: 60,
  })
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.nat(60_000).map(length => 'é"\\{'.repeat(length / 4)),
  )
  const count = fc.nat(1_000_000_000)
  const property = fc.property(text, text, count, count, sizes, (content, tail, prompt, completion, cuts) => {
    const usage = { prompt_tokens: prompt, completion_tokens: completion }
    const document = {
      model: 'm',
      choices: [{ content, usage: { prompt_tokens: 1 } }],
      usage,
      after: tail.slice(0, 900),
    }
    assert.deepEqual(readIn('json', bytesOf(JSON.stringify(document)), cuts), used(prompt, completion))
    const events = `data: {"model":"m","choices":[{"delta":${JSON.stringify(content)}}]}\r\n\r\ndata: ${JSON.stringify(document)}\n\ndata: [DONE]\n\n`
    assert.deepEqual(readIn('events', bytesOf(events), cuts), used(prompt, completion))
  })
  fc.assert(property, { numRuns: 60 })
})

test('property: no bytes make it fail, and what it says are counts', () => {
  const part = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '"',
    '\\',
    ':',
    ',',
    '"usage"',
    '"model"',
    '1',
    '"prompt_tokens":2',
    'data: ',
    '\n',
  )
  const soup = fc.array(part, { maxLength: 400 }).map(parts => bytesOf(parts.join('')))
  const property = fc.property(
    fc.oneof(soup, fc.uint8Array({ maxLength: 3_000 })),
    fc.constantFrom('json', 'events'),
    (bytes, form) => {
      const usage = readIn(form as AnswerForm, bytes, [3, 1, 40])
      if (usage !== null)
        assert.ok(usage.cachedTokens <= usage.promptTokens && Number.isInteger(usage.completionTokens))
    },
  )
  fc.assert(property, { numRuns: 400 })
})

test('only answers of operations of OpenAI form are read', () => {
  for (const path of [
    '/v1/chat/completions',
    '/v1/embeddings?x=/v1/',
    '/prefix/v1/responses',
    '/completions',
    '/v1/audio/speech',
    ...[
      '/v1/ch%61t/completions',
      '/v1//completions',
      '/v1/completions/',
      '/x/../v1/./completions',
      '/v1%2Fcompletions',
    ],
  ]) {
    assert.equal(reportsTokens('POST', path), true, path)
    assert.equal(reportsTokens('GET', path), false, path)
  }
  for (const path of ['/', '/v1/models', '/v1/chat/completions/x', '/v1', '', '/chat', '/api/completions']) {
    assert.equal(reportsTokens('POST', path), false, path)
  }
  assert.deepEqual(['application/json', 'Application/JSON; charset=utf-8', 'text/event-stream;x'].map(answerForm), [
    'json',
    'json',
    'events',
  ])
  assert.deepEqual(['', 'text/html', 'audio/mpeg', 'application/jsonl'].map(answerForm), [null, null, null, null])
})
