/** A thousand WebSockets, while all workers are replaced and while the server stops. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { patient } from '../../support/patience.ts'
import { type Balanced, balancedEndpoint, Chat, changeBalanced, ofSockets } from '../support/balanced.ts'
import { healthOf } from '../support/client.ts'
import { skip } from '../support/python.ts'
import { startServer } from '../support/server.ts'
import { sleep, until } from '../support/until.ts'

const SOCKETS = 1_000
const PATIENCE_MS = 100_000

describe('WebSockets and the end of their workers', { skip, timeout: patient(200_000) }, () => {
  test('a thousand keep their workers while all are replaced, new ones get new workers, and no socket is closed', async () => {
    const server = await startServer()
    const endpoint = await balancedEndpoint(server, {
      ...ofSockets,
      env: { WIRE_VERSION: 'old' },
      requestCount: SOCKETS,
      workers: { min: 2, max: 4, idleTimeout: 1 },
    })
    await until('two workers', async () => (await workersOf(endpoint)).ready === 2, PATIENCE_MS)
    const chats = await connectAll(endpoint, SOCKETS)
    const before = await sayAll(chats, 'first')
    assert.deepEqual(new Set(before.map(({ version }) => version)), new Set(['old']))
    assert.equal(new Set(before.map(({ worker }) => worker)).size, 2)

    await changeBalanced(endpoint, { env: { WIRE_VERSION: 'new' } })
    await until(
      'a new socket to get a new worker',
      async () => {
        const chat = new Chat(endpoint, '/')
        const { version } = JSON.parse(String(await chat.say('hello')))
        assert.equal((await chat.end()).code, 1000)
        return version === 'new'
      },
      PATIENCE_MS,
    )
    await until('both old workers to be on their way out', () => drained() >= 2, PATIENCE_MS)
    assert.deepEqual(
      await sayAll(chats, 'second'),
      before.map(answer => ({ ...answer, said: 'second' })),
    )
    assert.equal(server.events('worker.exited').length, 0)

    const codes = await Promise.all(chats.map(chat => chat.end()))
    assert.deepEqual(new Set(codes.map(({ code }) => code)), new Set([1000]))
    await until('the old workers to end', () => server.events('worker.exited').length === 2, PATIENCE_MS)
    const old = new Set(before.map(({ worker }) => worker))
    assert.ok(server.events('worker.exited').every(({ workerId }) => old.has(String(workerId))))
    await server.stop()

    function drained(): number {
      return server.events('worker.moved').filter(({ to }) => to === 'DRAINING').length
    }
  })

  test('what outlasts the drain of a server that stops is closed by its worker with its own code', async () => {
    const server = await startServer({ args: ['--drain-timeout', '1'] })
    const endpoint = await balancedEndpoint(server, { ...ofSockets, requestCount: 100, workers: { max: 1 } })
    const chats = await connectAll(endpoint, 50)
    await sayAll(chats, 'hello')
    const stopped = server.stop()
    const codes = await Promise.all(chats.map(chat => chat.ended()))
    assert.deepEqual(new Set(codes.map(({ code }) => code)), new Set([1001]))
    assert.equal((await stopped).code, 0)
  })

  test('a worker whose socket is silent for longer than the idle time stays, and is idle from the end of the socket', async () => {
    const server = await startServer()
    const endpoint = await balancedEndpoint(server, { ...ofSockets, workers: { max: 1, idleTimeout: 1 } })
    const chat = new Chat(endpoint, '/')
    const { worker } = JSON.parse(String(await chat.say('one')))
    await sleep(3_000)
    assert.equal(JSON.parse(String(await chat.say('two'))).worker, worker)
    const endsAt = Date.now()
    assert.equal((await chat.end()).code, 1000)
    const drained = await until(
      'its worker to be idle',
      () => server.events('worker.moved').find(({ to }) => to === 'DRAINING'),
      PATIENCE_MS,
    )
    const idleMs = Date.parse(String(drained.time)) - endsAt
    assert.ok(idleMs > 900, `it drained ${idleMs} ms after the end of the socket`)
    await server.stop()
  })

  const workersOf = async ({ server, id }: Balanced) => (await healthOf(server, id)).workers
})

/** Opens sockets, a hundred at a time. */
async function connectAll(endpoint: Balanced, count: number): Promise<Chat[]> {
  const chats: Chat[] = []
  while (chats.length < count) {
    const some = Array.from({ length: Math.min(100, count - chats.length) }, () => new Chat(endpoint, '/'))
    chats.push(...(await Promise.all(some.map(chat => chat.opened()))))
  }
  return chats
}

interface Echoed {
  readonly worker: string
  readonly version: string
  readonly said: string
}

/** Answers of all chats to a message. */
function sayAll(chats: readonly Chat[], message: string): Promise<Echoed[]> {
  return Promise.all(chats.map(async chat => JSON.parse(String(await chat.say(message))) as Echoed))
}
