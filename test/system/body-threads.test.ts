/** Large bodies are read in threads with the outcome that small ones have in the loop. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inlineBodies } from '../../sim/inline-bodies.ts'
import { DEFAULT_OWNER as OWNER, type OwnerId } from '../../src/core/ids.ts'
import { BodyThreads } from '../../src/system/bodies/body-threads.ts'

const OTHER = 'user_other' as OwnerId

/** In pieces that cut characters. */
function splitPieces(text: string, size = 7): Uint8Array[] {
  const bytes = new TextEncoder().encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size))
}

for (const [name, bodies] of Object.entries({ threads: new BodyThreads(), inline: inlineBodies })) {
  describe(name, () => {
    test('a submission keeps its texts character for character', async () => {
      const input = '{"a" : [1.0, 12345678901234567890, "ä€語\\u00e4"]}'
      const reading = await bodies.read(OWNER, 'submission', splitPieces(`{"input":${input},"policy":{"ttl":20000}}`))
      assert.ok('submission' in reading)
      assert.equal(reading.submission.input, input)
      assert.equal(reading.submission.ttlMs, 20_000)
    })

    test('mistakes of a large body are reported as for a small one', async () => {
      assert.deepEqual(await bodies.read(OWNER, 'submission', splitPieces('[]')), {
        failures: ['the body must be a JSON object with an "input" object'],
      })
      await assert.rejects(bodies.read(OWNER, 'openAiCall', splitPieces('[1,'), '/v1/chat'), { code: 'invalid' })
    })

    test('many bodies at once each get their own outcome', async () => {
      const outputs = Array.from({ length: 20 }, (_, n) => `"${'x'.repeat(n)}"`)
      const readings = await Promise.all(
        outputs.map(each => bodies.read(OWNER, 'result', splitPieces(`{"output":${each}}`))),
      )
      assert.deepEqual(
        readings.map(reading => reading.kind === 'final' && reading.outcome.output),
        outputs,
      )
    })
  })
}

test('a thread that ends takes only the body with it that it was reading', async () => {
  const bodies = new BodyThreads({ program: new URL('./body-thread-that-ends.ts', import.meta.url) })
  const read = (output: string) => bodies.read(OWNER, 'result', splitPieces(`{"output":"${output}"}`))
  const all = await Promise.allSettled(['1', 'END', '2', 'END', 'END', '3'].map(read))
  assert.deepEqual(
    all.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  assert.equal((all[1] as PromiseRejectedResult).reason.code, 'unavailable')
})

test('what was read is handed on once the server is ready for it', async () => {
  const ready = Promise.withResolvers<void>()
  const bodies = new BodyThreads().whenReady(() => ready.promise)
  let isRead = false
  const read = bodies.read(OWNER, 'result', splitPieces('{"output":1}')).then(() => {
    isRead = true
  })
  await new BodyThreads().read(OWNER, 'result', splitPieces('{"output":2}'))
  assert.equal(isRead, false)
  ready.resolve()
  await read
})

test('bodies of one account do not delay those of another', async () => {
  const bodies = new BodyThreads()
  const slow = splitPieces(`{"input":{"a":[${'[],'.repeat(100_000)}1]}}`, 65_536)
  let read = 0
  const flood = Array.from({ length: 24 }, () => bodies.read(OTHER, 'submission', slow).then(() => (read += 1)))
  await bodies.read(OWNER, 'result', splitPieces('{"output":1}'))
  const before = read
  await Promise.all(flood)
  assert.ok(before < 12, `${before} of the other account's were read first`)
})

test('an account whose bodies wait in too great a number is refused, and others are not', async () => {
  const bodies = new BodyThreads({ limits: { waiting: 2, waitingOfAll: 3 } })
  const read = (owner: OwnerId) => bodies.read(owner, 'result', splitPieces('{"output":1}'))
  const all = await Promise.allSettled([OTHER, OTHER, OTHER, OTHER, OTHER, OWNER, OWNER, OWNER].map(read))
  const codes = all.map(one => (one.status === 'fulfilled' ? 'read' : one.reason.code))
  // Two are read for the other account and two wait; of this one, one is read and one waits, and then
  // the room of all is used up.
  assert.deepEqual(codes, ['read', 'read', 'read', 'read', 'rate_limited', 'read', 'read', 'unavailable'])
})
