/** Tokens of load-balanced requests: the sums are those that the worker said, over a kill of the server. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { answerOf, type Balanced, balancedEndpoint, call, open } from '../support/balanced.ts'
import { ask } from '../support/client.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const REQUESTS = 24
const PATH = '/v1/chat/completions'
/** Tokens of each request under load. */
const EACH = { prompt: 70, completion: 3 } as const
const sentBody = (fields: object) =>
  JSON.stringify({ model: 'tiny', messages: [], stream_options: { include_usage: true }, ...fields })

/** Sums of all requests, once they have this number. */
async function sumsOf(server: Server, requests: number) {
  return until(`sums of ${requests} requests`, async () => {
    const { json, text } = await ask(server, '/v2/billing/tokens')
    assert.ok(json.metadata, text)
    return json.metadata.totals.requests === requests && json
  })
}

/** Requests that the database of a server has, which no read of the server has made it store. */
function storedRequests({ dataDir }: Server): number {
  using database = new DatabaseSync(join(dataDir, 'runyard.sqlite'), { readOnly: true })
  const { requests } = database.prepare('SELECT coalesce(sum(requests), 0) AS requests FROM token_days').get()!
  return Number(requests)
}

/**
 * A server that is killed under load loses at most what came since it last stored sums, which it does by itself, and
 * stores no part of a request. Each request here has the same tokens.
 * @param before requests until now
 * @returns the server that is started again, and the requests that it knows
 */
async function killedUnderLoad(node: Balanced, before: number, args: readonly string[]) {
  const { server } = node
  const body = sentBody({ stream: true, prompt: EACH.prompt, completion: EACH.completion })
  let answered = 0
  let begun = 0
  let isOver = false
  const client = async () => {
    while (!isOver) {
      begun += 1
      const { status } = await call(node, PATH, { method: 'POST', body }).catch(() => ({ status: 0 }))
      if (status !== 200) return
      answered += 1
    }
  }
  const clients = Array.from({ length: 4 }, client)
  await until('sums to be stored in the middle of it', async () => storedRequests(server) > before)
  const stored = storedRequests(server)
  const target = answered + 20
  await until('more to be answered', async () => answered >= target)
  await server.kill9()
  isOver = true
  await Promise.all(clients)
  const next = await startServer({ args, dataDir: server.dataDir })
  const { totals } = (await ask(next, '/v2/billing/tokens')).json.metadata
  assert.ok(
    totals.requests >= stored && totals.requests <= before + begun,
    `${totals.requests} of ${stored} to ${begun}`,
  )
  return { next, totals, load: totals.requests - before }
}

/** A limit of requests is exact, whichever threads they come to. */
async function limitsHold(node: Balanced): Promise<void> {
  const minute = () => Math.floor(Date.now() / 60_000)
  const body = { name: 'limited', limits: { requestsPerMinute: 5 } }
  const { json } = await ask(node.server, '/v2/account/keys', { body })
  const began = minute()
  const headers = { authorization: `Bearer ${json.key}` }
  const sent = sentBody({ prompt: 0, completion: 0 })
  const calls = Array.from({ length: 20 }, () =>
    call(node, PATH, { method: 'POST', body: sent, headers, agent: new Agent() }),
  )
  const answers = await Promise.all(calls)
  const passed = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 429)
  assert.ok(passed.length === 5 || (minute() > began && passed.length <= 10), `${passed.length} passed`)
  assert.equal(passed.length + refused.length, 20)
  assert.equal(passed[0]?.headers['x-ratelimit-limit-requests'], '5')
  assert.equal(refused[0]?.json.error.code, 'rate_limit_exceeded')
  assert.ok(refused[0]?.headers['retry-after'])
}

/** A key with accounting has the tokens of its streams, and its client no event that it did not ask for. */
async function accountingHolds(server: Server, id: string): Promise<void> {
  const { json } = await ask(server, '/v2/account/keys', { body: { name: 'accounted', accounting: true } })
  assert.equal(json.accounting, true)
  const headers = { authorization: `Bearer ${json.key}` }
  const { requests, promptTokens } = (await ask(server, '/v2/billing/tokens')).json.metadata.totals
  for (const path of [`/openai${PATH}`, `/v2/${id}/openai${PATH}`]) {
    const body = { model: id, messages: [], stream: true, prompt: 7, completion: 2 }
    const { text } = await ask(server, path, { headers, body })
    assert.match(text, /^data: .*word 0.*\n\ndata: .*word 1.*\n\ndata: \[DONE\]\n\n$/)
    assert.ok(!text.includes('usage'), text)
    const asking = { ...body, stream_options: { include_usage: true } }
    assert.match((await ask(server, path, { headers, body: asking })).text, /"prompt_tokens":7/)
  }
  const { metadata } = await sumsOf(server, requests + 4)
  assert.equal(metadata.totals.promptTokens, promptTokens + 4 * 7)
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
  const { next, totals, load } = await killedUnderLoad(node, REQUESTS, args)
  total.promptTokens += load * EACH.prompt
  total.completionTokens += load * EACH.completion
  const requests = REQUESTS + load
  assert.deepEqual(totals, { requests, measuredRequests: requests, cachedTokens: 0, ...total })
  await send({ ...node, server: next })
  const all = requests + REQUESTS
  const after = (await sumsOf(next, all)).metadata.totals
  assert.deepEqual(after, { requests: all, measuredRequests: all, cachedTokens: 0, ...total })
  await limitsHold({ ...node, server: next })
  await accountingHolds(next, node.id)
})
