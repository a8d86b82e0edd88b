/** Guessing of keys: it is slowed down and reported, and never blocks a client with a key. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Answer, ask } from '../support/client.ts'
import { until } from '../support/until.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const MOST_FAILURES = 20
/** One address of each surface that takes keys, and what a valid key gets there. */
const SURFACES: readonly (readonly [path: string, body: object | undefined, status: number])[] = [
  ['/v2/serverless', undefined, 200],
  ['/v1/endpoints', undefined, 200],
  ['/v2/nobody/health', undefined, 404],
  ['/v2/nobody/openai/v1/models', undefined, 404],
  ['/graphql', { query: '{ myself { id } }' }, 200],
  ['/ops/why', undefined, 200],
  ['/lb/nobody/', undefined, 404],
]

let guesses = 0

/** Tries a key that nobody has; a client may say of itself that it is another each time. */
async function guess(
  server: ProbedServer,
  [path, body]: readonly [path: string, body?: object | undefined, status?: number],
  client = `198.51.100.${guesses}`,
): Promise<Answer> {
  guesses += 1
  return ask({ url: server.url, apiKey: `rpa_guess_${guesses}` }, path, {
    ...(body === undefined ? {} : { body }),
    headers: { 'x-forwarded-for': client },
  })
}

describe('guessed keys', () => {
  let server: ProbedServer
  let behindProxy: ProbedServer

  before(async () => {
    const args = ['--rate-limits', 'off']
    ;[server, behindProxy] = await Promise.all([
      startProbedServer({ args }),
      startProbedServer({ args: [...args, '--trusted-proxy', '127.0.0.1'] }),
    ])
    for (const surface of SURFACES) await ask(server, surface[0])
    server.forgetHolds()
  })

  /** Waits until a series of the metrics has a value; they are a second old at most. */
  async function counted(series: string, expected: number): Promise<void> {
    await until(`${series} to be ${expected}`, async () => {
      const { text } = await ask(server, '/metrics')
      return text.includes(`\n${series} ${expected}\n`)
    })
  }

  test('a guesser is answered 429 at every door, from any claimed address, while a valid key works', async () => {
    for (let failed = 0; failed < MOST_FAILURES; failed += 1) {
      assert.equal((await guess(server, SURFACES[failed % SURFACES.length]!)).status, 401)
    }
    for (const surface of SURFACES) {
      const [path, body, status] = surface
      const slowed = await guess(server, surface)
      const seconds = Number(slowed.headers.get('retry-after'))
      assert.equal(slowed.status, 429, path)
      assert.ok(seconds > 0 && seconds <= 60, `${path}: ${seconds}`)
      assert.match(slowed.text, /too many invalid API keys came from this address/)
      const valid = await ask(server, path, body === undefined ? {} : { body })
      assert.equal(valid.status, status, `${path}: ${valid.text}`)
    }
    const missing = await ask(server, '/v2/serverless', { headers: { authorization: null } })
    assert.equal(missing.status, 401, 'who has no key guesses none')
  })

  test('a worker with a wrong token is refused and not slowed down', async () => {
    for (let failed = 0; failed <= MOST_FAILURES; failed += 1) {
      assert.equal((await guess(server, ['/v2/nobody/job-take/w'])).status, 401)
    }
  })

  test('the operator sees the guesses in the metrics, and once a minute in the log, without the keys', async () => {
    await counted('runyard_key_failures_total{reason="unknown"}', MOST_FAILURES + SURFACES.length)
    await counted('runyard_key_failures_total{reason="worker_token"}', MOST_FAILURES + 1)
    const [first] = await until('the line', () => server.events('key.failed').length > 0 && server.events('key.failed'))
    assert.deepEqual([first?.level, first?.address, first?.reason, first?.count], ['warn', '127.0.0.1', 'unknown', 1])
    assert.ok(server.events('key.failed').length < 5, 'a guesser cannot fill the log')
    assert.doesNotMatch(server.lines.join('\n'), /rpa_guess/)
  })

  test('a key that asks again and again for what it may not do has one line a minute', async () => {
    const { json } = await ask(server, '/v2/account/keys', { body: { name: 'reads', scope: { type: 'read-only' } } })
    const reader = { url: server.url, apiKey: json.key }
    for (let times = 0; times < 30; times += 1) {
      assert.equal((await ask(reader, '/v2/serverless', { body: {} })).status, 403)
    }
    await counted('runyard_rights_refused_total{right="management:write"}', 30)
    const lines = await until('it', () => server.events('right.refused').length > 0 && server.events('right.refused'))
    assert.deepEqual([lines[0]?.level, lines[0]?.keyId, lines[0]?.right], ['warn', json.id, 'management:write'])
    assert.ok(lines.length < 5)
    assert.ok(!server.lines.join('\n').includes(json.key))
  })

  test('behind a trusted proxy each client counts alone, and what it says about itself helps it nothing', async () => {
    for (const door of ['/v2/serverless', '/lb/nobody/']) {
      const [mean, other] = [`203.0.113.${door.length}`, `192.0.2.${door.length}`]
      for (let failed = 0; failed < MOST_FAILURES; failed += 1) {
        assert.equal((await guess(behindProxy, [door], `198.51.100.${failed}, ${mean}`)).status, 401)
      }
      assert.equal((await guess(behindProxy, [door], mean)).status, 429)
      assert.equal((await guess(behindProxy, [door], other)).status, 401)
    }
  })

  test('no attempt blocks the server', () => server.assertNeverHeld())
})
