import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TokenUsage } from '../../src/core/openai/token-usage.ts'
import { parseResponseHead } from '../../src/gateway/http1/response-head.ts'
import { AnswerTokens } from '../../src/gateway/proxy/answer-tokens.ts'

const BODY = Buffer.from('{"model":"m","usage":{"prompt_tokens":3,"completion_tokens":4}}')

/** The reports of an answer with this head. */
function reported(status: number, fields: string): (TokenUsage | null)[] {
  const reports: (TokenUsage | null)[] = []
  const tokens = new AnswerTokens(usage => reports.push(usage))
  tokens.begin(parseResponseHead(`HTTP/1.1 ${status} OK\r\n${fields}\r\nContent-Length: ${BODY.length}`, false))
  tokens.take(BODY)
  tokens.end()
  return reports
}

test('a successful answer of JSON or events reports its tokens once', () => {
  const usage = { model: 'm', promptTokens: 3, completionTokens: 4, cachedTokens: 0 }
  assert.deepEqual(reported(200, 'content-type: application/json'), [usage])
  assert.deepEqual(reported(201, 'Content-Type: application/json; charset=utf-8\r\nContent-Encoding: identity'), [
    usage,
  ])
  assert.deepEqual(reported(200, 'Content-Type: text/event-stream'), [usage])
})

test('a compressed answer counts without tokens; an error, an answer of another type or none counts nothing', () => {
  assert.deepEqual(reported(200, 'Content-Type: application/json\r\nContent-Encoding: gzip'), [null])
  for (const [status, fields] of [
    [404, 'Content-Type: application/json'],
    [200, 'Content-Type: audio/mpeg'],
    [200, 'X-Other: 1'],
  ] as const) {
    assert.deepEqual(reported(status, fields), [], fields)
  }
  const reports: unknown[] = []
  new AnswerTokens(usage => reports.push(usage)).end()
  assert.deepEqual(reports, [])
})
