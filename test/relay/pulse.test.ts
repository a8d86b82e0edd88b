import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ANSWER_MS, type Effort, EVERY_MS, Pulse } from '../../src/relay/pulse.ts'

const STILL: Effort = { runnable: false, used: 7 }

/** Number of questions in a row until the relay counts as hung; null for more than 200. */
function questions(pulse: Pulse, from = 0, lateMs = 0, effort = (_: number): Effort | null => STILL): number | null {
  for (let n = 1; n <= 200; n += 1) {
    const askedAtMs = from + n * (ANSWER_MS + EVERY_MS)
    if (pulse.missed(askedAtMs, askedAtMs + ANSWER_MS + lateMs, effort(n - 1), effort(n))) return n
  }
  return null
}

test('a relay that does nothing and does not answer hangs, after several questions', () => {
  assert.equal(questions(new Pulse()), 3)
  const unseen = questions(new Pulse(), 0, 0, () => null)
  assert.equal(unseen, 3)
})

test('an answer in between is enough', () => {
  const pulse = new Pulse()
  for (let n = 0; n < 50; n += 1) {
    const askedAtMs = n * 10_000
    assert.equal(pulse.missed(askedAtMs, askedAtMs + ANSWER_MS, STILL, STILL), false)
    assert.equal(pulse.missed(askedAtMs, askedAtMs + ANSWER_MS, STILL, STILL), false)
    pulse.answered(askedAtMs + 5_000)
  }
})

test('a keeper that is late itself, on an overloaded machine or after a sleep, concludes nothing', () => {
  assert.equal(questions(new Pulse(), 0, 600), null)
})

test('a relay that works or waits for a processor has a minute', () => {
  assert.equal(
    questions(new Pulse(), 0, 0, n => ({ runnable: false, used: n })),
    20,
  )
  assert.equal(
    questions(new Pulse(), 0, 0, () => ({ runnable: true, used: 7 })),
    20,
  )
})

test('replacements back off: each time the wait doubles, until all was well for long', () => {
  const pulse = new Pulse()
  const taken: (number | null)[] = []
  for (let n = 0; n < 6; n += 1) {
    taken.push(questions(pulse, n * 60_000))
    pulse.replaced(n * 60_000 + 30_000)
    pulse.answered(n * 60_000 + 31_000)
  }
  assert.deepEqual(taken, [3, 6, 12, 24, 48, 48])
  pulse.answered(2_000_000)
  assert.equal(questions(pulse, 2_000_000), 3)
})
