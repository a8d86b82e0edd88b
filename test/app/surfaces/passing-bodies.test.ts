/** A body that is passed on as it arrives leaves the loop to others, and has a pace of its own. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyRoom, isPassing } from '../../../src/api/body.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const MEGABYTE = 1_048_576

test('a large piece of a body is passed on in small ones, with turns of the loop between them', async () => {
  const clock = new VirtualClock()
  const room = new BodyRoom({ maxBytes: 64 * MEGABYTE, clock, spill: null })
  const sent = Buffer.alloc(12 * MEGABYTE, 'abc')
  const body = {
    pieces: async function* () {
      yield sent
      yield sent
    },
    drop: () => {},
  }
  const call = { request: new Request('http://localhost', { method: 'POST' }), env: { body: () => body } }
  const limit = { keptBytes: 20 * MEGABYTE, readBytes: 64 * MEGABYTE, passedBytes: 64 * MEGABYTE }
  const pieces: Uint8Array[] = []
  let piecesBeforeOthers = Number.POSITIVE_INFINITY
  const others = clock.settle().then(() => {
    piecesBeforeOthers = pieces.length
  })
  await room.of('a').limited(call, limit, async ({ passing }) => {
    for await (const piece of passing!.pieces) pieces.push(piece)
  })
  await others
  assert.ok(Buffer.concat(pieces).equals(Buffer.concat([sent, sent])))
  assert.ok(Math.max(...pieces.map(({ byteLength }) => byteLength)) <= MEGABYTE)
  assert.ok(piecesBeforeOthers < pieces.length, 'nothing else ran')
})

/** A body whose pieces come when the test sends them. */
function openedBody(clock: VirtualClock) {
  const sent = new TransformStream<Uint8Array, Uint8Array>(undefined, undefined, { highWaterMark: 1 })
  const writer = sent.writable.getWriter()
  const seen = { untimed: 0, dropped: 0 }
  const env = {
    body: () => ({
      pieces: () => sent.readable.values({ preventCancel: true }),
      drop() {
        seen.dropped += 1
      },
    }),
    untimed() {
      seen.untimed += 1
    },
  }
  const headers = { 'content-length': String(60 * MEGABYTE) }
  const request = new Request('http://localhost', { method: 'POST', headers })
  const room = new BodyRoom({ maxBytes: 64 * MEGABYTE, clock, spill: null })
  const limit = { keptBytes: 20 * MEGABYTE, passedBytes: 64 * MEGABYTE }
  let bytes = 0
  /** @param storeMs time that the server takes for each piece */
  const read = (storeMs: number) =>
    room.of('a').passing({ request, env }, limit, async body => {
      assert.ok(isPassing(body))
      for await (const piece of body.pieces) {
        bytes += piece.byteLength
        await new Promise<void>(resolve => void clock.after(storeMs, resolve))
      }
      return bytes
    })
  return { writer, seen, read }
}

test('it may take as long as the server needs for it, and its connection does not count the time', async () => {
  const clock = new VirtualClock()
  const { writer, seen, read } = openedBody(clock)
  const done = read(300_000)
  for (let piece = 0; piece < 20; piece += 1) {
    void writer.write(Buffer.alloc(3 * MEGABYTE))
    await clock.advance(300_000 * 12)
  }
  void writer.close()
  await clock.settle()
  assert.equal(await done, 60 * MEGABYTE)
  assert.deepEqual(seen, { untimed: 1, dropped: 0 })
})

test('one that comes slower than 64 KB a second after the first minute is refused', async () => {
  const clock = new VirtualClock()
  const { writer, seen, read } = openedBody(clock)
  const done = assert.rejects(read(0), {
    code: 'invalid',
    message: /^the request body came too slowly: .* 64 KB a second/,
  })
  // A minute and 16 s for the first megabyte.
  void writer.write(Buffer.alloc(MEGABYTE))
  await clock.advance(75_000)
  assert.equal(seen.dropped, 0)
  await clock.advance(2_000)
  await done
  assert.equal(seen.dropped, 1)
})
