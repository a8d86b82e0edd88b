/** Turns of the event loop for bodies that take a while to read. */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { BodyTurns } from '../../src/server/body-turns.ts'

const LARGE = 8_192

function bodyOf(bytes: number): IncomingMessage {
  const headers = { 'content-length': String(bytes) }
  return Object.assign(Readable.from([Buffer.alloc(bytes)]), { headers }) as unknown as IncomingMessage
}

/** Sends bodies in this order. @returns whose they were, in the order in which they were let through */
async function throughOf(owners: readonly string[], bytes = LARGE): Promise<string[]> {
  const turns = new BodyTurns()
  const through: string[] = []
  const read = async (owner: string) => {
    for await (const piece of turns.pieces(bodyOf(bytes), () => owner)) assert.equal(piece.byteLength, bytes)
    through.push(owner)
  }
  await Promise.all(owners.map(read))
  return through
}

test('bodies of an account that sends many hold up those of another one for a turn, not until all of them are read', async () => {
  const many = Array.from({ length: 200 }, () => 'busy')
  const through = await throughOf([...many, 'other', 'third', 'other'])
  assert.equal(through.length, 203)
  assert.deepEqual(through.slice(0, 6), ['busy', 'other', 'third', 'busy', 'other', 'busy'])
})

test('the owner of a body is the one at its end, since who sends it is known only once its key was looked up', async () => {
  const turns = new BodyTurns()
  let owner = ''
  const asked: string[] = []
  for await (const _ of turns.pieces(bodyOf(LARGE), () => {
    asked.push(owner)
    return owner
  }))
    owner = 'known'
  assert.deepEqual(asked, ['known'])
})

test('small bodies wait for no turn', async () => {
  const turns = new BodyTurns()
  for await (const piece of turns.pieces(bodyOf(LARGE - 1), () => assert.fail('it waits')))
    assert.equal(piece.byteLength, LARGE - 1)
})
