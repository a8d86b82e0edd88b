import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ExchangeTimings } from '../../src/gateway/proxy/exchange-timings.ts'

function begin() {
  let nowMs = 1_000
  const timings = new ExchangeTimings({ monotonic: () => nowMs })
  const pass = (ms: number) => {
    nowMs += ms
    return nowMs
  }
  return { timings, pass }
}

test('the times of an exchange count each step from the end of the one before', () => {
  const { timings, pass } = begin()
  pass(5)
  timings.claim(5)
  timings.connect()
  pass(2)
  timings.connected()
  pass(30)
  timings.respond()
  pass(100)
  assert.deepEqual(timings.summary(), { waitMs: 5, connectMs: 2, firstByteMs: 30, totalMs: 137 })
})

test('waits for several workers add up, and a wait without a worker counts', () => {
  const { timings, pass } = begin()
  pass(5)
  timings.claim(5)
  timings.connect()
  pass(50)
  timings.retry()
  pass(7)
  timings.stopWaiting()
  assert.deepEqual(timings.summary(), { waitMs: 12, connectMs: null, firstByteMs: null, totalMs: 62 })
})

test('an exchange is quiet since its last step, or since the check that saw it move', () => {
  const { timings, pass } = begin()
  timings.connect()
  assert.equal(timings.quietMs(pass(10)), 10)
  timings.connected()
  assert.equal(timings.quietMs(pass(4)), 4)
  timings.move()
  assert.equal(timings.quietMs(pass(1)), null)
  assert.equal(timings.quietMs(pass(6)), 6)
  timings.respond()
  assert.equal(timings.quietMs(pass(1)), null)
})
