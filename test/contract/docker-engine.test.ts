/** An engine that is too old, does not answer, breaks off or answers 503, played by the test. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startFailureOf } from '../../src/core/worker-failure.ts'
import { Engine } from '../../src/drivers/docker/engine.ts'
import { engineAddresses } from '../../src/drivers/docker/engine-address.ts'
import { systemClock } from '../../src/system/clock.ts'

/** Fifty times as fast, so that deadlines come within a test. */
const clock = { ...systemClock, after: (ms: number, callback: () => void) => systemClock.after(ms / 50, callback) }

interface Played {
  version?: { ApiVersion: string; MinAPIVersion: string }
  /** What is done with a path; what is not here is answered with {}. */
  readonly answers: Map<string, (response: ServerResponse) => void>
}

async function play(context: TestContext, played: Played) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-engine-'))
  const socket = join(folder, 'engine.sock')
  const paths: string[] = []
  const events: ServerResponse[] = []
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?')[0] as string
    paths.push(path)
    const act = played.answers.get(path.replace(/^\/v1\.\d+/, ''))
    if (act !== undefined) return act(response)
    if (path === '/version') return response.end(JSON.stringify(played.version ?? V41))
    if (path.endsWith('/events')) {
      events.push(response)
      return response.flushHeaders()
    }
    response.end('{}')
  })
  const listen = () => new Promise<void>(resolve => server.listen(socket, resolve))
  const hangUp = () => {
    server.closeAllConnections()
    return new Promise(resolve => server.close(resolve))
  }
  await listen()
  let ups = 0
  let aways = 0
  const waiters = new Set<() => void>()
  const happened: string[] = []
  const wake = () => {
    for (const waiter of waiters) waiter()
  }
  const engine = new Engine({
    ...{ clock, label: 'a=b', addresses: () => engineAddresses(`unix://${socket}`, {}), note: () => {} },
    onUp: async () => {
      ups += 1
      wake()
    },
    onAway() {
      aways += 1
      wake()
    },
    onEvent({ action, container, attributes }) {
      happened.push(`${action} ${container} ${attributes.exitCode}`)
      wake()
    },
  })
  context.after(async () => {
    engine.close()
    await hangUp()
    rmSync(folder, { recursive: true })
  })
  return {
    ...{ engine, paths, events, happened, listen, hangUp, ups: () => ups, aways: () => aways },
    async until(condition: () => boolean) {
      while (!condition()) await new Promise<void>(resolve => waiters.add(resolve))
    },
  }
}

const V41 = { ApiVersion: '1.41', MinAPIVersion: '1.12' }

test('the API is spoken in a version that the engine knows', { timeout: 20_000 }, async context => {
  const spoken = async (ApiVersion: string, MinAPIVersion: string) => {
    const { engine, paths } = await play(context, { version: { ApiVersion, MinAPIVersion }, answers: new Map() })
    return (await engine.problem()) ?? paths.find(path => path.endsWith('/info'))
  }
  assert.equal(await spoken('1.41', '1.12'), '/v1.41/info')
  assert.equal(await spoken('1.52', '1.44'), '/v1.44/info')
  assert.equal(await spoken('1.40', '1.12'), '/v1.40/info')
  assert.match(String(await spoken('1.30', '1.12')), /is too old: its API is 1\.30, and 1\.40 is needed/)
  assert.match(String(await spoken('', '')), /does not speak the API of Docker/)
})

test('one that does not answer is said so, and used as soon as it does', { timeout: 20_000 }, async context => {
  const answers = new Map([['/info', () => {}]])
  const played = await play(context, { answers })
  assert.match(String(await played.engine.problem()), /does not answer as it should at unix:.*: no answer within 5 s/)
  answers.clear()
  await played.until(() => played.ups() === 1)
  assert.equal(await played.engine.problem(), null)
})

test('one that goes is noticed by its events, and found again', { timeout: 20_000 }, async context => {
  const played = await play(context, { answers: new Map() })
  await played.until(() => played.ups() === 1)
  await played.hangUp()
  await played.until(() => played.aways() === 1)
  assert.equal(startFailureOf(String(await played.engine.problem())), 'engine_away')
  await assert.rejects(played.engine.call({ method: 'GET', path: '/x' }), { status: null, away: true })
  await played.listen()
  await played.until(() => played.ups() === 2)
})

test('one that hangs although its events stay open is taken for gone', { timeout: 20_000 }, async context => {
  const answers = new Map<string, (response: ServerResponse) => void>()
  const played = await play(context, { answers })
  await played.until(() => played.ups() === 1)
  answers.set('/_ping', () => {})
  await played.until(() => played.aways() === 1)
})

test('a call that is not answered ends by its deadline, and a 503 is told', { timeout: 20_000 }, async context => {
  const busy = (response: ServerResponse) => response.writeHead(503).end('{"message":"node is busy"}')
  const answers = new Map<string, (response: ServerResponse) => void>([
    ['/busy', busy],
    ['/slow', () => {}],
  ])
  const { engine } = await play(context, { answers })
  await engine.problem()
  await assert.rejects(engine.call({ method: 'GET', path: '/busy' }), { status: 503, message: 'node is busy' })
  await assert.rejects(engine.call({ method: 'GET', path: '/slow', deadlineMs: 2_000 }), {
    ...{ status: null, away: false, message: 'no answer within 2 s' },
  })
})

test('events come whole however they are cut', { timeout: 20_000 }, async context => {
  const played = await play(context, { answers: new Map() })
  await played.until(() => played.ups() === 1)
  const event = (Action: string) => `${JSON.stringify({ Action, Actor: { ID: 'c', Attributes: { exitCode: '7' } } })}\n`
  const [first, second] = [event('die'), event('oom')]
  played.events[0]?.write(first.slice(0, 9))
  played.events[0]?.write(first.slice(9) + second)
  await played.until(() => played.happened.length === 2)
  assert.deepEqual(played.happened, ['die c 7', 'oom c 7'])
})
