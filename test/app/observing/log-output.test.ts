import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import { LogLines } from '../../../src/system/observing/log.ts'

function opened() {
  const writes: string[] = []
  const log = pino({ level: 'debug', base: null, timestamp: false }, new LogLines({ write: text => writes.push(text) }))
  const passed = (path: string) => log.debug({ path }, 'gateway.request_finished')
  return {
    log,
    passed,
    writes,
    words: () => [...writes.join('').matchAll(/"(?:path|word)":"(\w+)"/g)].map(([, word]) => word),
  }
}

test('lines of the access log are written together, and all are there after the turn', async () => {
  const { passed, writes, words } = opened()
  passed('one')
  passed('two')
  assert.deepEqual(writes, [])
  await new Promise(setImmediate)
  assert.deepEqual([writes.length, words()], [1, ['one', 'two']])
  passed('three')
  await new Promise(setImmediate)
  assert.deepEqual(words(), ['one', 'two', 'three'])
})

test('any other line is written at once, of whatever level, behind what came before it', async () => {
  const { log, passed, words } = opened()
  passed('one')
  log.debug({ word: 'two' }, 'job.moved')
  assert.deepEqual(words(), ['one', 'two'])
  log.warn({ word: 'three' }, 'worker.problem')
  assert.deepEqual(words(), ['one', 'two', 'three'])
  await new Promise(setImmediate)
  assert.equal(words().length, 3)
})

test('buffered lines are bounded', () => {
  const { passed, words } = opened()
  for (let at = 0; at < 1_000; at += 1) passed('x'.repeat(200))
  assert.ok(words().length > 250)
})
