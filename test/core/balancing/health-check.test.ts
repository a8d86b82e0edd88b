import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  FAILURES,
  type HealthAnswer,
  healthAfterAnswer,
  healthProblem,
  judgeHealth,
  UNHEALTHY_BUSY_MS,
  UNHEALTHY_MS,
  uncheckedHealth,
  type WorkerHealth,
} from '../../../src/core/balancing/health-check.ts'
import { NEVER_HEALTHY_MS, readServing } from '../../../src/core/endpoints/serving.ts'
import { problemText } from '../../../src/core/workers/worker-problem.ts'

const OK = { status: 200 }
const BUSY = { status: 204 }
const BROKEN = { status: 500 }
const REFUSED = { problem: 'nothing listens there', refused: true }
const CUT = { problem: 'the connection was cut before an answer', refused: false }

/** A worker that gives these answers, each when it is asked next. */
function answering(answers: readonly HealthAnswer[], start: WorkerHealth = uncheckedHealth(0, false)): WorkerHealth {
  return answers.reduce((health, answer) => healthAfterAnswer(health, answer, health.nextAtMs), start)
}

const times = (count: number, answer: HealthAnswer) => Array.from({ length: count }, () => answer)
const judged = (more: { runsForMs?: number | null; inFlight?: number } = {}) => ({
  serves: readServing({}),
  port: 80,
  runsForMs: 1_000_000,
  inFlight: 0,
  ...more,
})

test('a worker is healthy from its first 200 on, whatever came before', () => {
  for (const before of [[], times(50, REFUSED), times(9, CUT), times(9, BUSY), times(9, BROKEN)]) {
    assert.notEqual(answering(before).state, 'healthy')
    assert.equal(answering([...before, OK]).state, 'healthy')
  }
})

test('connections that fail while a server boots are no sign that it is ill', () => {
  assert.equal(answering([...times(100, REFUSED), ...times(100, CUT)]).state, 'starting')
})

test('a worker that answers something else than 200 and 204 is unhealthy after three times, also before it was ever well', () => {
  assert.equal(answering(times(FAILURES - 1, BROKEN)).state, 'starting')
  assert.equal(answering(times(FAILURES, { status: 404 })).state, 'unhealthy')
})

test('a healthy worker stays in rotation over single failures and leaves it after three in a row', () => {
  const well = answering([OK])
  for (const failure of [BROKEN, REFUSED, CUT]) {
    assert.equal(answering([failure, failure, OK, failure, failure], well).state, 'healthy')
    assert.equal(answering(times(FAILURES, failure), well).state, 'unhealthy')
    assert.equal(answering([...times(20, failure), OK], well).state, 'healthy')
  }
})

test('a worker that says that it initializes gets nothing from that moment on', () => {
  assert.equal(answering([OK, BUSY]).state, 'starting')
})

test('a worker is asked ten times a second at first, then every second, and rarely once it is well', () => {
  const pauseAfter = (health: WorkerHealth, answer: HealthAnswer, atMs: number) =>
    healthAfterAnswer(health, answer, atMs).nextAtMs - atMs
  const booting = uncheckedHealth(0, false)
  assert.equal(pauseAfter(booting, REFUSED, 0), 100)
  assert.equal(pauseAfter(booting, REFUSED, 5_000), 500)
  assert.equal(pauseAfter(booting, REFUSED, 300_000), 1_000)
  const well = answering([OK])
  assert.equal(pauseAfter(well, OK, 0), 5_000)
  assert.equal(pauseAfter(well, BROKEN, 0), 1_000)
  assert.equal(pauseAfter(answering(times(FAILURES, BROKEN), well), BROKEN, 400_000), 1_000)
})

test('a worker that never becomes healthy is ended after 8 minutes, with what it answered last', () => {
  const mute = answering(times(5, REFUSED))
  assert.equal(judgeHealth(mute, judged({ runsForMs: NEVER_HEALTHY_MS - 1 }), 0), null)
  assert.deepEqual(judgeHealth(mute, judged({ runsForMs: NEVER_HEALTHY_MS }), 0), {
    reason: 'never_healthy',
    problem: { kind: 'never_healthy', limitS: 480, health: { kind: 'not_listening', port: 80, variable: 'PORT' } },
  })
  const { problem } = judgeHealth(answering(times(5, { status: 404 })), judged(), 0)!
  assert.equal(problemText(problem), 'it was not healthy within 480 s of its start: it answers 404 at /ping')
  const unknown = judgeHealth(uncheckedHealth(0, false), judged(), 0)!.problem
  assert.equal(problemText(unknown), 'it was not healthy within 480 s of its start: it had no health check yet')
})

test('the time of a worker that was not started yet does not count', () => {
  assert.equal(judgeHealth(uncheckedHealth(0, false), judged({ runsForMs: null }), 10 * NEVER_HEALTHY_MS), null)
})

test('a worker that was healthy once is ended after 60 s without health, later while it has requests', () => {
  const ill = answering([OK, ...times(FAILURES, BROKEN)])
  const at = (forMs: number, inFlight: number) => judgeHealth(ill, judged({ inFlight }), ill.sinceMs + forMs)
  assert.equal(at(UNHEALTHY_MS - 1, 0), null)
  assert.deepEqual(at(UNHEALTHY_MS, 0), {
    reason: 'unhealthy',
    problem: { kind: 'unhealthy', forS: 60, health: { kind: 'health_status', status: 500, path: '/ping' } },
  })
  assert.equal(at(UNHEALTHY_BUSY_MS - 1, 1), null)
  assert.equal(at(UNHEALTHY_BUSY_MS, 1)!.reason, 'unhealthy')
  assert.equal(judgeHealth(answering([OK], ill), judged(), 10 ** 9), null)
})

test('a worker that initializes again has as long as at its start', () => {
  const again = answering([OK, BUSY])
  assert.equal(judgeHealth(again, judged(), again.sinceMs + NEVER_HEALTHY_MS - 1), null)
  assert.equal(judgeHealth(again, judged(), again.sinceMs + NEVER_HEALTHY_MS)!.reason, 'unhealthy')
})

test('a worker that an earlier run of the server has seen healthy gets nothing before it was asked', () => {
  const adopted = uncheckedHealth(0, true)
  assert.equal(adopted.state, 'starting')
  assert.equal(answering([OK], adopted).state, 'healthy')
  assert.equal(answering(times(FAILURES, REFUSED), adopted).state, 'unhealthy')
})

test('the result of a health check is a message', () => {
  const says = (last: HealthAnswer | null, env: Record<string, string> = {}) => {
    const problem = healthProblem({ last }, readServing(env), readServing(env).healthPort)
    return problem === null ? null : problemText(problem)
  }
  assert.equal(says(null), null)
  assert.equal(says(OK), null)
  assert.equal(says(BUSY), 'it answers 204 at /ping, so it initializes')
  assert.equal(says({ status: 503 }, { HEALTH_CHECK_PATH: '/well' }), 'it answers 503 at /well')
  assert.equal(says(REFUSED, { PORT_HEALTH: '81' }), 'nothing listens on port 81 (its variable PORT_HEALTH)')
  assert.equal(says(CUT), 'it does not answer at /ping on port 80: the connection was cut before an answer')
})
