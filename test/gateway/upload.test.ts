/** The body of a request on its way to a worker: when it is read, and when it rests. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import type { WorkerConnection } from '../../src/gateway/http1/worker-connection.ts'
import { Upload } from '../../src/gateway/proxy/upload.ts'

/** A request whose pauses are counted, and a worker that takes everything. */
function anUpload() {
  const incoming = Object.assign(new EventEmitter(), {
    reads: true,
    pause: () => (incoming.reads = false),
    resume: () => (incoming.reads = true),
    rawTrailers: [],
  })
  const socket = { cork() {}, uncork() {}, writable: true, writableLength: 0, write: () => true }
  const turns: (() => void)[] = []
  const upload = new Upload(
    incoming as unknown as IncomingMessage,
    false,
    next => turns.push(next),
    () => {},
  )
  upload.to({ socket, sent() {} } as unknown as WorkerConnection, 'POST / HTTP/1.1\r\n\r\n')
  return { incoming, upload, turns }
}

test('after each piece what the worker sent is read first, also when the worker has taken the piece at once', () => {
  const { incoming, upload, turns } = anUpload()
  incoming.emit('data', Buffer.from('piece'))
  assert.equal(incoming.reads, false)
  // A worker that refuses the body and closes: a write to the closed connection would lose its response.
  upload.drained()
  assert.equal(incoming.reads, false)
  for (const next of turns) next()
  assert.equal(incoming.reads, true)
})
