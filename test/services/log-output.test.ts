import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { Lines } from '../../src/system/log.ts'

function opened() {
  const writes: string[] = []
  const log = pino({ level: 'debug', base: null, timestamp: false }, new Lines({ write: text => writes.push(text) }))
  return { log, writes, words: () => [...writes.join('').matchAll(/"msg":"(\w+)"/g)].map(([, word]) => word) }
}

test('lines of level debug are written together, and none is missing after the turn', async () => {
  const { log, writes, words } = opened()
  log.debug('one')
  log.debug('two')
  assert.deepEqual(writes, [])
  await new Promise(setImmediate)
  assert.deepEqual([writes.length, words()], [1, ['one', 'two']])
  log.debug('three')
  await new Promise(setImmediate)
  assert.deepEqual(words(), ['one', 'two', 'three'])
})

test('any other line is written at once, behind what came before it', async () => {
  const { log, words } = opened()
  log.debug('one')
  log.warn('two')
  assert.deepEqual(words(), ['one', 'two'])
  log.info('three')
  assert.deepEqual(words(), ['one', 'two', 'three'])
  await new Promise(setImmediate)
  assert.equal(words().length, 3)
})

test('what waits is bounded', () => {
  const { log, words } = opened()
  for (let at = 0; at < 1_000; at += 1) log.debug({ path: 'x'.repeat(200) }, 'passed')
  assert.ok(words().length > 500)
})
