import assert from 'node:assert/strict'
import { test } from 'node:test'
import pino from 'pino'
import type { AccessLogEntry } from '../../../src/core/balancing/access-log-entry.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { LogLines, logEvents } from '../../../src/system/observing/log.ts'

function opened() {
  const writes: string[] = []
  const timers: { ms: number; end: () => void }[] = []
  const lines = new LogLines({ write: text => writes.push(text) }, (ms, end) => timers.push({ ms, end }))
  const log = pino({ level: 'debug', base: null, timestamp: false }, lines)
  const emit = logEvents(log)
  const passed = (path: string) => emit('gateway.request_finished', { ...entry, path })
  return {
    log,
    passed,
    writes,
    timers,
    words: () => [...writes.join('').matchAll(/"(?:path|word)":"(\w+)"/g)].map(([, word]) => word),
  }
}

test('lines of the access log are written together, within 10 ms', () => {
  const { passed, writes, timers, words } = opened()
  passed('one')
  passed('two')
  assert.deepEqual([writes, timers.length, timers[0]?.ms], [[], 1, 10])
  timers.pop()?.end()
  assert.deepEqual([writes.length, words()], [1, ['one', 'two']])
  passed('three')
  timers.pop()?.end()
  assert.deepEqual(words(), ['one', 'two', 'three'])
})

test('any other line is written at once, of whatever level, behind what came before it', () => {
  const { log, passed, timers, words } = opened()
  passed('one')
  log.debug({ word: 'two' }, 'job.moved')
  assert.deepEqual(words(), ['one', 'two'])
  log.warn({ word: 'three' }, 'worker.problem')
  assert.deepEqual(words(), ['one', 'two', 'three'])
  timers.pop()?.end()
  assert.equal(words().length, 3)
})

test('buffered lines are bounded', () => {
  const { passed, words } = opened()
  for (let at = 0; at < 1_000; at += 1) passed('x'.repeat(200))
  assert.ok(words().length > 250)
})

const entry: AccessLogEntry = {
  kind: 'request',
  endpointId: 'e1' as EndpointId,
  requestId: 'r"1',
  method: 'GET',
  path: '/a\u0001"\\\u00e4',
  status: 502,
  complete: false,
  workerId: null,
  tries: 1,
  waitMs: 0.25,
  connectMs: null,
  firstByteMs: null,
  totalMs: 12.5,
  bytesIn: 1,
  bytesOut: 0,
}

test('the line of a request in the access log is the one that the log would write', () => {
  const lines: string[] = []
  const formatters = { level: (label: string) => ({ level: label }) }
  const options = { level: 'debug', base: null, timestamp: () => ',"time":"now"', formatters }
  const log = pino(options, { write: line => lines.push(line) })
  log.debug(entry, 'gateway.request_finished')
  logEvents(log)('gateway.request_finished', entry)
  assert.equal(lines.length, 2)
  assert.equal(lines[1], lines[0])
})

test('a log above debug has no access log', () => {
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: line => lines.push(line) })
  logEvents(log)('gateway.request_finished', entry)
  assert.deepEqual(lines, [])
})
