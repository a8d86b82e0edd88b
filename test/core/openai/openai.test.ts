import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../../../src/core/errors.ts'
import { readChunk } from '../../../src/core/jobs/chunk.ts'
import type { Job } from '../../../src/core/jobs/job.ts'
import { readPythonLiteral } from '../../../src/core/json/python-literal.ts'
import { openAiAnswer, openAiRefusal, readOpenAiCall, workerErrorAnswer } from '../../../src/core/openai/openai.ts'
import { EventWriter, isJson, itemsFromChunks, PieceReader } from '../../../src/core/openai/openai-stream.ts'

const job = (fields: Partial<Job>) => fields as Job
const completed = (output: string | null) => openAiAnswer(job({ status: 'COMPLETED' }), output)
const error = (message: string, type: string, code: unknown = null) => ({
  error: { message, type, param: null, code },
})

test('the body goes into the job character for character, and a missing one is an empty object', () => {
  const call = readOpenAiCall('/v1/chat/completions', '{"seed": 12345678901234567890, "stream": true}')
  assert.equal(
    call.submission.input,
    '{"openai_route":"/v1/chat/completions","openai_input":{"seed": 12345678901234567890, "stream": true}}',
  )
  assert.equal(call.stream, true)
  for (const body of ['', ' \n']) {
    const { submission, stream } = readOpenAiCall('/v1/models', body)
    assert.deepEqual(JSON.parse(submission.input), { openai_route: '/v1/models', openai_input: {} })
    assert.equal(stream, false)
  }
  for (const body of ['{"stream": 1}', '{"stream": "true"}', '[true]']) {
    assert.equal(readOpenAiCall('/v1/x', body).stream, false)
  }
  assert.throws(() => readOpenAiCall('/v1/x', '--boundary'), /^AppError: the body is not JSON: /)
})

test('refusals have the form of OpenAI', () => {
  const cases: [AppError, number, string, string][] = [
    [new AppError('unauthorized', 'no'), 401, 'authentication_error', 'invalid_api_key'],
    [new AppError('forbidden', 'no'), 403, 'permission_error', 'forbidden'],
    [new AppError('not_found', 'no'), 404, 'not_found_error', 'not_found'],
    [new AppError('too_large', 'no'), 413, 'invalid_request_error', 'too_large'],
    [new AppError('unavailable', 'no'), 503, 'server_error', 'unavailable'],
  ]
  for (const [thrown, status, type, code] of cases) {
    const answer = openAiRefusal(thrown)
    assert.deepEqual([answer.status, JSON.parse(answer.text)], [status, error('no', type, code)])
  }
})

test('outputs are unwrapped', () => {
  const json = 'application/json'
  const plain = 'text/plain; charset=utf-8'
  const cases: [string, string, string][] = [
    ['[{"id": 12345678901234567890}]', json, '{"id": 12345678901234567890}'],
    ['{"a":1}', json, '{"a":1}'],
    [' [ {"a":1} ] ', json, '{"a":1}'],
    ['[{"a":1},{"b":2}]', json, '[{"a":1},{"b":2}]'],
    ['["{\\"a\\":", "1}"]', json, '{"a":1}'],
    ['"{\\"a\\":1}"', json, '{"a":1}'],
    ['"hello"', plain, 'hello'],
    ['["he","llo"]', plain, 'hello'],
    ['7', json, '7'],
  ]
  for (const [output, contentType, text] of cases) {
    assert.deepEqual(completed(output), { status: 200, contentType, text }, output)
  }
  for (const nothing of [null, 'null', '[]']) assert.equal(completed(nothing).status, 500)
})

test('error objects that a worker calls a success have their own status', () => {
  const cases: [string, number, unknown][] = [
    ['{"object":"error","message":"m","type":"NotFoundError","param":null,"code":404}', 404, 404],
    ['[{"object":"error","message":"m","type":"NotFoundError","param":null,"code":404}]', 404, 404],
    ['{"object":"error","message":"m","type":"NotFoundError","code":200}', 500, 200],
    ['{"object":"error","message":"m","type":"NotFoundError"}', 500, null],
    ['["{\\"object\\":\\"error\\",\\"message\\":\\"m\\",\\"type\\":\\"NotFoundError\\",\\"code\\":400}"]', 400, 400],
  ]
  for (const [output, status, code] of cases) {
    const answer = completed(output)
    assert.deepEqual([answer.status, JSON.parse(answer.text)], [status, error('m', 'NotFoundError', code)], output)
  }
})

test('the errors of failed jobs get their status and their words', () => {
  const inner = '{"error": {"message": "The model `nope` does not exist.", "type": "NotFoundError", "code": 404}}'
  const repr = `{'message': 'vLLM returned HTTP 404: ${inner}', 'type': 'worker_error', 'code': None}`
  const cases: [string, number, unknown][] = [
    [repr, 404, JSON.parse(inner)],
    [`vLLM returned HTTP 400: ${inner}`, 400, JSON.parse(inner)],
    [JSON.stringify({ error_type: 'x', error_message: `vLLM returned HTTP 503: ${inner}` }), 503, JSON.parse(inner)],
    ['vLLM returned HTTP 502: Bad\nGateway', 502, error('Bad\nGateway', 'worker_error')],
    ['vLLM returned HTTP 502: ', 502, error('vLLM returned HTTP 502', 'worker_error')],
    ['vLLM returned HTTP 302: no', 500, error('vLLM returned HTTP 302: no', 'worker_error')],
    [JSON.stringify({ error_message: 'boom', error_traceback: 'secret' }), 500, error('boom', 'worker_error')],
    ["{'message': 'too long', 'type': 'BadRequestError', 'code': 400}", 400, error('too long', 'BadRequestError', 400)],
    ["{'error': {'message': 'm', 'type': 't', 'code': None}}", 500, error('m', 't')],
    ['CUDA out of memory', 500, error('CUDA out of memory', 'worker_error')],
    ["{'broken", 500, error("{'broken", 'worker_error')],
    ['"said"', 500, error('said', 'worker_error')],
  ]
  for (const [text, status, body] of cases) {
    const answer = workerErrorAnswer(text)
    assert.deepEqual([answer.status, JSON.parse(answer.text)], [status, body], text)
  }
  const ends: [Partial<Job>, number][] = [
    [{ status: 'FAILED', error: null }, 500],
    [{ status: 'TIMED_OUT', error: null }, 504],
    [{ status: 'CANCELLED', error: null }, 499],
  ]
  for (const [fields, status] of ends) assert.equal(openAiAnswer(job(fields), null).status, status)
})

test('Python literals are read as Python means them', () => {
  const cases: [string, unknown][] = [
    ['None', null],
    ['{}', {}],
    [' [1, -2.5, 1e3, True, False,] ', [1, -2.5, 1000, true, false]],
    ["('a', \"it's\")", ['a', "it's"]],
    ["{'a': {'b': [()]}, 2: 'x'}", { a: { b: [[]] }, 2: 'x' }],
    [String.raw`'\n\t\\\'\x41\u00e4\U0001f600\101\q'`, "\n\t\\'Aä😀A\\q"],
    ['[nan, inf, -inf]', [null, null, null]],
  ]
  for (const [text, value] of cases) assert.deepEqual(readPythonLiteral(text), { value }, text)
  const wrong = [
    '',
    '{',
    "{'a'}",
    "{'a': }",
    '[1 2]',
    "'open",
    '[,]',
    'exec("x")',
    '1 2',
    String.raw`'\U00110000'`,
    '{[]: 1}',
  ]
  for (const text of [...wrong, '['.repeat(100_000)]) assert.equal(readPythonLiteral(text), null, text.slice(0, 20))
  assert.deepEqual(Object.keys(readPythonLiteral("{'__proto__': 1}")?.value as object), ['__proto__'])
})

function repr(value: unknown): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'string') return stringRepr(value)
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`
  if (typeof value !== 'object') return String(value)
  return `{${Object.entries(value)
    .map(([key, item]) => `${repr(key)}: ${repr(item)}`)
    .join(', ')}}`
}

function stringRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'"
  const inner = text.replaceAll(/[\\\p{Cc}]/gu, character => {
    const known = ({ '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' } as Record<string, string>)[character]
    return known ?? `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
  return quote + inner.replaceAll(quote, `\\${quote}`) + quote
}

test('the reader of Python literals gives back every value, and never throws', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), value => {
      const plain = JSON.parse(JSON.stringify(value))
      assert.deepEqual(readPythonLiteral(repr(plain)), { value: plain })
    }),
  )
  const pieces = fc.constantFrom(
    "'",
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    '(',
    ')',
    ':',
    ',',
    ' ',
    'None',
    '1',
    '-',
    '.',
    'x',
    'u',
  )
  const noise = fc.oneof(
    fc.string(),
    fc.array(pieces, { maxLength: 30 }).map(parts => parts.join('')),
  )
  fc.assert(
    fc.property(noise, text => {
      const reading = readPythonLiteral(text)
      assert.ok(reading === null || 'value' in reading)
    }),
    { numRuns: 1_000 },
  )
})

/** Events that a client receives for these outputs. */
function events(outputs: readonly unknown[]): string {
  const reader = new PieceReader()
  const writer = new EventWriter()
  const chunks = outputs.flatMap(output => (readChunk(JSON.stringify({ output })) as { items: string[] }).items)
  const pieces = itemsFromChunks(chunks).map(item => reader.take(item))
  const texts = pieces.map(piece => {
    if (piece === null) return ''
    if (piece.kind !== 'joined') return writer.write(piece)
    return isJson(piece.json) ? writer.write({ kind: 'json', json: piece.json }) : ''
  })
  return texts.join('') + writer.done()
}

test('text goes out as it is, values as events, and the end is sent once', () => {
  const cases: [unknown[], string][] = [
    [['data: {"a":', '1}\n\ndata: [DO', 'NE]\n\n'], 'data: {"a":1}\n\ndata: [DONE]\n\n'],
    [['data: 1\r\n\r\n', 'data: [DONE]\r\n\r\n'], 'data: 1\r\n\r\ndata: [DONE]\r\n\r\n'],
    [['data: 1\n\n'], 'data: 1\n\ndata: [DONE]\n\n'],
    [['data: 1'], 'data: 1\n\ndata: [DONE]\n\n'],
    [[{ text: '[DONE]' }], 'data: {"text":"[DONE]"}\n\ndata: [DONE]\n\n'],
    [[[{ a: 1 }, { b: 2 }], 'data: 3\n\n'], 'data: {"a":1}\n\ndata: {"b":2}\n\ndata: 3\n\ndata: [DONE]\n\n'],
    [[[], '', null], 'data: [DONE]\n\n'],
    [[], 'data: [DONE]\n\n'],
  ]
  for (const [outputs, text] of cases) assert.equal(events(outputs), text)
  assert.equal(new EventWriter().failed('{"error":1}'), 'data: {"error":1}\n\n')
})

test('chunks that were split because of their size arrive whole', () => {
  const long = { text: 'ä€"'.repeat(700_000), n: 1 }
  assert.equal(events([long]), `data: ${JSON.stringify(long)}\n\ndata: [DONE]\n\n`)
  assert.equal(events([[{ a: 1 }, long]]), `data: {"a":1}\n\ndata: ${JSON.stringify(long)}\n\ndata: [DONE]\n\n`)
  const text = `data: ${'y'.repeat(2_500_000)}\n\n`
  assert.equal(events([text]), `${text}data: [DONE]\n\n`)
})

test('a list of a great many items is one event, and texts in it are one text', () => {
  const many = Array.from({ length: 20_000 }, (_, n) => n)
  assert.equal(events([many]), `data: ${JSON.stringify(many)}\n\ndata: [DONE]\n\n`)
  assert.equal(events([many.map(String)]), `${many.join('')}\n\ndata: [DONE]\n\n`)
})

test('a value that only looks like a piece goes out as it is', () => {
  for (const value of [
    { part: 2, parts: 3, json: '1' },
    { part: 1, parts: 1, json: '1' },
  ]) {
    assert.equal(events([value]), `data: ${JSON.stringify(value)}\n\ndata: [DONE]\n\n`)
  }
  const broken = { part: 1, parts: 2, json: '{' }
  assert.equal(events([broken, { a: 1 }]), 'data: {"a":1}\n\ndata: [DONE]\n\n')
})
