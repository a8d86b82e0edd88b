/** Tokens of load-balanced requests: the sums are those that the worker said, over a kill of the server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { answerOf, type Balanced, balancedEndpoint, call, open } from '../support/balanced.ts'
import { ask } from '../support/client.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const REQUESTS = 24
const PATH = '/v1/chat/completions'
const sentBody = (fields: object) => JSON.stringify({ model: 'tiny', messages: [], ...fields })

/** Sums of all requests, once they have this number. */
async function sumsOf(server: Server, requests: number) {
  return until(`sums of ${requests} requests`, async () => {
    const { json, text } = await ask(server, '/v2/billing/tokens')
    assert.ok(json.metadata, text)
    return json.metadata.totals.requests === requests && json
  })
}

test('tokens of answers and streams add up, also when the server is killed and starts again', {
  timeout: patient(120_000),
}, async () => {
  const args = ['--http-threads', '2']
  const server = await startServer({ args })
  const image = `dir:${fixture('server-tokens')}`
  const node = await balancedEndpoint(server, {
    image,
    args: `'${process.execPath}' server.mjs`,
    requestCount: 64,
    workers: { min: 1, max: 1 },
  })
  const total = { promptTokens: 0, completionTokens: 0 }
  const send = async (to: Balanced) => {
    const answers = Array.from({ length: REQUESTS }, async (_, n) => {
      const body = sentBody({ stream: n % 2 === 0, prompt: 1_000 + n, completion: n })
      const { status, text } = await call(to, PATH, { method: 'POST', body })
      assert.equal(status, 200, text)
      total.promptTokens += 1_000 + n
      total.completionTokens += n
    })
    await Promise.all(answers)
  }
  await send(node)
  const { records, metadata } = await sumsOf(server, REQUESTS)
  assert.deepEqual([records.length, records[0].model, records[0].serverlessId], [1, 'tiny', node.id])
  const counted = { requests: REQUESTS, measuredRequests: REQUESTS, cachedTokens: 0 }
  assert.deepEqual(metadata.totals, { ...counted, ...total })

  const hanging = open(node, PATH, { method: 'POST' })
  hanging.on('error', () => {})
  hanging.end(sentBody({ stream: true, hangs: true, prompt: 5, completion: 5 }))
  const answer = await answerOf(hanging)
  answer.on('error', () => {}).resume()
  await server.kill9()
  const next = await startServer({ args, dataDir: server.dataDir })
  assert.deepEqual((await sumsOf(next, REQUESTS)).metadata.totals, { ...counted, ...total })
  await send({ ...node, server: next })
  const after = (await sumsOf(next, 2 * REQUESTS)).metadata.totals
  assert.deepEqual(after, { requests: 2 * REQUESTS, measuredRequests: 2 * REQUESTS, cachedTokens: 0, ...total })
})
