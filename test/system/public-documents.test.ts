import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prepareDocuments } from '../../src/main/public-documents.ts'

/** A server whose time passes by hand. */
function open() {
  const made: string[] = []
  const timers: { ms: number; callback: () => void }[] = []
  const work = { busy: 0, after: (ms: number, callback: () => void) => void timers.push({ ms, callback }) }
  const surface = async ({ url }: Request) => {
    made.push(new URL(url).pathname)
    return new Response('')
  }
  prepareDocuments(surface, { after: work.after, busyShare: () => work.busy })
  /** Lets the only timer end. @returns its time */
  const pass = async () => {
    assert.equal(timers.length, 1)
    const { ms, callback } = timers.pop()!
    callback()
    await new Promise(setImmediate)
    return ms
  }
  return { made, work, timers, pass }
}

test('a quiet server makes its public documents a minute after its start, one after another', async () => {
  const { made, timers, pass } = open()
  assert.deepEqual([await pass(), made.length], [60_000, 1])
  assert.deepEqual([await pass(), made.length], [1_000, 2])
  assert.deepEqual([await pass(), made.length], [1_000, 3])
  assert.deepEqual(made, ['/v2/openapi.json', '/v2/docs', '/graphql'])
  await pass()
  assert.equal(timers.length, 0)
})

test('a busy server makes none, since each would hold up all requests, and looks again each minute', async () => {
  const { made, work, pass } = open()
  work.busy = 0.5
  await pass()
  assert.deepEqual([await pass(), await pass(), made.length], [60_000, 60_000, 0])
  work.busy = 0.01
  await pass()
  assert.equal(made.length, 1)
  work.busy = 0.5
  await pass()
  assert.equal(made.length, 1)
  work.busy = 0
  assert.deepEqual([await pass(), made.length], [60_000, 2])
})
