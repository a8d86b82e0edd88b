/** The clock of the server as the console sees it, where that of the browser is wrong. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServerClock } from '../../console/server-clock.ts'

const HOUR_MS = 3_600_000

function answerAt(ms: number): { headers: Headers } {
  return { headers: new Headers({ date: new Date(ms).toUTCString() }) }
}

test('a browser whose clock is wrong counts by the clock of the server, and by its own again once it was set', () => {
  let local = 1_750_000_000_400
  const clock = new ServerClock(() => local)
  assert.equal(clock.now(), local)
  clock.note(answerAt(local + HOUR_MS))
  local += 5_000
  assert.equal(clock.now(), local + HOUR_MS - 400, 'dates of responses have whole seconds')
  clock.note({ headers: new Headers() })
  assert.equal(clock.now(), local + HOUR_MS - 400, 'a response without a date says nothing')
  local += HOUR_MS
  clock.note(answerAt(local))
  assert.equal(clock.now(), local)
})

test('a response that took two seconds does not move the time', () => {
  const clock = new ServerClock(() => 1_750_000_002_000)
  clock.note(answerAt(1_750_000_000_000))
  assert.equal(clock.now(), 1_750_000_002_000)
})
