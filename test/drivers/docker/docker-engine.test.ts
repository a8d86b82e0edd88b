/** An engine that is too old, does not answer, breaks off or answers 503, played by the test. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { startFailureText } from '../../../src/core/workers/start-failure.ts'
import { Engine } from '../../../src/drivers/docker/engine/engine.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { patient } from '../../support/patience.ts'
import { fastClock, type Played, playEngine } from '../../support/played-engine.ts'

/** Reason why the engine is missing, for people; null if it exists. */
async function absence(engine: Engine): Promise<string | null> {
  const found = await engine.absence()
  return found === null ? null : startFailureText({ kind: 'engine_away', ...found })
}

/** @param clock a fast one brings deadlines within a test, on a busy machine also to calls that are being answered */
async function play(context: TestContext, played: Played, clock = fastClock) {
  const { url, ...playing } = await playEngine(context, played)
  let ups = 0
  let aways = 0
  const waiters = new Set<() => void>()
  const happened: string[] = []
  const wake = () => {
    for (const waiter of waiters) waiter()
  }
  const engine = new Engine({
    clock,
    label: 'a=b',
    addresses: () => engineAddresses(url, {}),
    note: () => {},
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
  context.after(() => engine.close())
  return {
    engine,
    ...playing,
    happened,
    ups: () => ups,
    aways: () => aways,
    async until(condition: () => boolean) {
      while (!condition()) await new Promise<void>(resolve => waiters.add(resolve))
    },
  }
}

test('the API is spoken in a version that the engine knows', { timeout: patient(20_000) }, async context => {
  const spoken = async (ApiVersion: string, MinAPIVersion: string) => {
    const played = { version: { ApiVersion, MinAPIVersion }, answers: new Map() }
    const { engine, paths } = await play(context, played, systemClock)
    return (await absence(engine)) ?? paths.find(path => path.endsWith('/info'))
  }
  assert.equal(await spoken('1.41', '1.12'), '/v1.41/info')
  assert.equal(await spoken('1.52', '1.44'), '/v1.44/info')
  assert.equal(await spoken('1.40', '1.12'), '/v1.40/info')
  assert.match(String(await spoken('1.30', '1.12')), /is too old: its API is 1\.30, and 1\.40 is needed/)
  assert.match(String(await spoken('', '')), /does not speak the API of Docker/)
})

test('one that does not answer is reported, and used as soon as it does', {
  timeout: patient(20_000),
}, async context => {
  const answers = new Map([['/info', () => {}]])
  const played = await play(context, { answers })
  assert.match(String(await absence(played.engine)), /does not answer as it should at unix:.*: no answer within 5 s/)
  answers.clear()
  await played.until(() => played.ups() === 1)
  assert.equal(await played.engine.absence(), null)
})

test('one that goes is noticed by its events, and found again', { timeout: patient(20_000) }, async context => {
  const played = await play(context, { answers: new Map() })
  await played.until(() => played.ups() === 1)
  await played.hangUp()
  await played.until(() => played.aways() === 1)
  assert.equal((await played.engine.absence())?.how, 'lost')
  await assert.rejects(played.engine.call({ method: 'GET', path: '/x' }), { status: null, away: true })
  await played.listen()
  await played.until(() => played.ups() === 2)
})

test('one that is found while the server lets go of it is let go of', { timeout: patient(20_000) }, async context => {
  const ended = Promise.withResolvers<void>()
  const answers = new Map<string, (response: ServerResponse) => void>()
  const played = await play(context, { answers }, systemClock)
  answers.set('/events', response => {
    played.engine.close()
    response.on('close', ended.resolve)
    response.writeHead(200).flushHeaders()
  })
  await ended.promise
  assert.equal(played.ups(), 0)
})

test('one that hangs while its events stay open counts as unavailable', { timeout: patient(20_000) }, async context => {
  const answers = new Map<string, (response: ServerResponse) => void>()
  const played = await play(context, { answers })
  await played.until(() => played.ups() === 1)
  answers.set('/_ping', () => {})
  await played.until(() => played.aways() === 1)
})

test('a call without a response ends by its deadline, and a 503 is reported', {
  timeout: patient(20_000),
}, async context => {
  const busy = (response: ServerResponse) => response.writeHead(503).end('{"message":"node is busy"}')
  const answers = new Map<string, (response: ServerResponse) => void>([
    ['/busy', busy],
    ['/slow', () => {}],
  ])
  const { engine } = await play(context, { answers }, systemClock)
  await engine.absence()
  await assert.rejects(engine.call({ method: 'GET', path: '/busy' }), { status: 503, message: 'node is busy' })
  await assert.rejects(engine.call({ method: 'GET', path: '/slow', deadlineMs: 100 }), {
    status: null,
    away: false,
    message: 'no answer within 0.1 s',
  })
})

test('events come whole however they are cut', { timeout: patient(20_000) }, async context => {
  const played = await play(context, { answers: new Map() })
  await played.until(() => played.ups() === 1)
  const event = (Action: string) => `${JSON.stringify({ Action, Actor: { ID: 'c', Attributes: { exitCode: '7' } } })}\n`
  const [first, second] = [event('die'), event('oom')]
  played.events[0]?.write(first.slice(0, 9))
  played.events[0]?.write(first.slice(9) + second)
  await played.until(() => played.happened.length === 2)
  assert.deepEqual(played.happened, ['die c 7', 'oom c 7'])
})
