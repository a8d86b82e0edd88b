import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { listen } from '../../../src/server/listener.ts'

const REQUEST = 'GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'

/** A listener that is bound and not open. */
async function bound(t: TestContext) {
  const opening = Promise.withResolvers<void>()
  let answers = 0
  const surface = async () => {
    answers += 1
    return new Response('answered')
  }
  const options = { host: '127.0.0.1', port: 0, maxConnections: 10, opening: opening.promise }
  const listener = await listen(surface, options)
  t.after(() => listener.close(0))
  return { listener, open: opening.resolve, answers: () => answers }
}

test('a request that comes before a listener is open is answered once it is', async t => {
  const { listener, open, answers } = await bound(t)
  const early = connect(listener.port, '127.0.0.1')
  early.end(REQUEST)
  await once(early, 'connect')
  const gone = connect(listener.port, '127.0.0.1')
  await once(gone, 'connect')
  gone.write(REQUEST)
  gone.resetAndDestroy()
  await once(gone, 'close')
  assert.equal(answers(), 0)
  open()
  assert.match(await text(early), /^HTTP\/1\.1 200 OK\r\n.*answered/s)
  assert.equal(await (await fetch(listener.url)).text(), 'answered')
})

test('a client that ends its connection without a request is let go before a listener is open', async t => {
  const { listener } = await bound(t)
  const probe = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true })
  await once(probe, 'connect')
  probe.end()
  probe.resume()
  await once(probe, 'end')
})

test('connections that wait end with a listener that is never open', async t => {
  const { listener, answers } = await bound(t)
  const early = connect(listener.port, '127.0.0.1')
  await once(early, 'connect')
  early.write(REQUEST)
  await listener.close(0)
  const rest = await buffer(early).catch((error: NodeJS.ErrnoException) => error.code)
  assert.ok(rest === 'ECONNRESET' || (rest as Buffer).byteLength === 0)
  assert.equal(answers(), 0)
})
