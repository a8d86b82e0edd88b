/** Large bodies are read in threads with the outcome that small ones have in the loop. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inlineBodies } from '../../sim/inline-bodies.ts'
import { BodyThreads } from '../../src/system/bodies/body-threads.ts'

/** In pieces that cut characters. */
function piecesOf(text: string, size = 7): Uint8Array[] {
  const bytes = new TextEncoder().encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size))
}

for (const [name, bodies] of Object.entries({ threads: new BodyThreads(), inline: inlineBodies })) {
  describe(name, () => {
    test('a submission keeps its texts character for character', async () => {
      const input = '{"a" : [1.0, 12345678901234567890, "ä€語\\u00e4"]}'
      const reading = await bodies.read('submission', piecesOf(`{"input":${input},"policy":{"ttl":20000}}`))
      assert.ok('submission' in reading)
      assert.equal(reading.submission.input, input)
      assert.equal(reading.submission.ttlMs, 20_000)
    })

    test('mistakes of a large body are reported as for a small one', async () => {
      assert.deepEqual(await bodies.read('submission', piecesOf('[]')), {
        failures: ['the body must be a JSON object with an "input" object'],
      })
      await assert.rejects(bodies.read('openAiCall', piecesOf('[1,'), '/v1/chat'), { code: 'invalid' })
    })

    test('many bodies at once each get their own outcome', async () => {
      const outputs = Array.from({ length: 20 }, (_, n) => `"${'x'.repeat(n)}"`)
      const readings = await Promise.all(outputs.map(each => bodies.read('result', piecesOf(`{"output":${each}}`))))
      assert.deepEqual(
        readings.map(reading => reading.kind === 'final' && reading.outcome.output),
        outputs,
      )
    })
  })
}

test('a thread that ends takes only the body with it that it was reading', async () => {
  const bodies = new BodyThreads({ program: new URL('./body-thread-that-ends.ts', import.meta.url) })
  const read = (output: string) => bodies.read('result', piecesOf(`{"output":"${output}"}`))
  const all = await Promise.allSettled(['1', 'END', '2', 'END', 'END', '3'].map(read))
  assert.deepEqual(
    all.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  assert.equal((all[1] as PromiseRejectedResult).reason.code, 'unavailable')
})

test('what was read is handed on once the server is ready for it', async () => {
  const ready = Promise.withResolvers<void>()
  const bodies = new BodyThreads({ ready: () => ready.promise })
  let isRead = false
  const read = bodies.read('result', piecesOf('{"output":1}')).then(() => {
    isRead = true
  })
  await new BodyThreads().read('result', piecesOf('{"output":2}'))
  assert.equal(isRead, false)
  ready.resolve()
  await read
})
