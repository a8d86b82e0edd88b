import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { MAX_RESULT_BYTES } from '../../src/core/jobs/large-text.ts'
import { CallForwarder } from '../../src/relay/call-forwarder.ts'
import { Callers } from '../../src/relay/callers.ts'
import { SpoolFull } from '../../src/relay/spool.ts'

test('a relay whose server has not come yet keeps the largest result that any server takes', async t => {
  const limits: number[] = []
  const spool = {
    receive: async (_: unknown, maxBytes: number) => {
      limits.push(maxBytes)
      throw new SpoolFull('no room')
    },
  }
  const admission = { findCaller: () => ({ token: 'w', owner: 'a' }) }
  const parts = { spool, admission, callers: new Callers(), upstream: null, setAside: null, calmMs: 0 }
  const forwarder = new CallForwarder(parts as unknown as ConstructorParameters<typeof CallForwarder>[0])
  const server = createServer((call, response) => void forwarder.pass('result', call, response))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: '127.0.0.1', port, method: 'POST', agent: false }, resolve).on('error', reject).end('{}')
  })
  assert.equal(answer.statusCode, 503)
  answer.resume()
  assert.ok(limits[0]! > MAX_RESULT_BYTES.max, `only ${limits[0]} bytes are kept`)
})
