/** A body that is passed on as it arrives leaves the loop to others, whatever its pieces are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyRoom } from '../../../src/api/body.ts'
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
