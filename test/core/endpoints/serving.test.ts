import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  readMaxConcurrency,
  readServing,
  reservedPaths,
  servingProblem,
  servingVariableProblems,
  servingWithSecrets,
  shownHealthPath,
} from '../../../src/core/endpoints/serving.ts'

test('a worker serves port 80 and answers at /ping unless its variables say something else', () => {
  assert.deepEqual(readServing({}), { port: 80, healthPort: 80, healthPath: '/ping', initTimeoutMs: 480_000 })
  assert.deepEqual(readServing({ PORT: '8000' }), {
    port: 8000,
    healthPort: 8000,
    healthPath: '/ping',
    initTimeoutMs: 480_000,
  })
  assert.deepEqual(readServing({ PORT: '8000', PORT_HEALTH: '8001', HEALTH_CHECK_PATH: '/well?deep=1' }), {
    port: 8000,
    healthPort: 8001,
    healthPath: '/well?deep=1',
    initTimeoutMs: 480_000,
  })
  assert.equal(readServing({ RUNPOD_INIT_TIMEOUT: '1200' }).initTimeoutMs, 1_200_000)
  assert.equal(servingProblem({ PORT: '65535', PORT_HEALTH: '1', HEALTH_CHECK_PATH: '/' }), null)
})

test('the number of requests at once is limited only where a variable says so', () => {
  assert.equal(readMaxConcurrency({}), null)
  assert.equal(readMaxConcurrency({ RUNYARD_MAX_CONCURRENCY: '8' }), 8)
  assert.equal(servingProblem({ RUNYARD_MAX_CONCURRENCY: '8' }), null)
})

const WRONG: [Record<string, string>, RegExp][] = [
  ...['0', '65536', '', ' 80', '80.0', '-1', '1e3', 'http'].flatMap((text): [Record<string, string>, RegExp][] => [
    [{ PORT: text }, /^the variable PORT must be a port from 1 to 65535, not '/],
    [{ PORT_HEALTH: text }, /^the variable PORT_HEALTH must be a port from 1 to 65535, not '/],
  ]),
  ...['', 'ping', 'http://host/ping', '/a b', '/a\r\nx: y', '/ä', '/a#b', `/${'x'.repeat(2_000)}`].map(
    (text): [Record<string, string>, RegExp] => [
      { HEALTH_CHECK_PATH: text },
      /must be a path that begins with a slash/,
    ],
  ),
  ...['0', '-1', '', 'many', '1.5', '1000001'].map((text): [Record<string, string>, RegExp] => [
    { RUNYARD_MAX_CONCURRENCY: text },
    /^the variable RUNYARD_MAX_CONCURRENCY must be an integer from 1 to 1000000, not '/,
  ]),
  ...['0', '-1', '', '5m', '86401'].map((text): [Record<string, string>, RegExp] => [
    { RUNPOD_INIT_TIMEOUT: text },
    /^the variable RUNPOD_INIT_TIMEOUT must be a number of seconds from 1 to 86400, not '/,
  ]),
]

for (const [env, sentence] of WRONG) {
  test(`${JSON.stringify(env).slice(0, 60)} is refused with a sentence, and counts as not given`, () => {
    assert.match(servingProblem(env)!, sentence)
    assert.deepEqual(readServing(env), readServing({}))
    assert.equal(readMaxConcurrency(env), null)
  })
}

test('all mistakes are reported at once', () => {
  const wrong = { PORT: '0', RUNYARD_MAX_CONCURRENCY: 'all', OTHER: '0' }
  assert.match(
    servingProblem(wrong)!,
    /^the variable PORT must .*, not '0'; the variable RUNYARD_\w+ must .*, not 'all'$/,
  )
  assert.equal(servingVariableProblems(wrong).length, 2)
})

test('a path that refers to a secret stays a reference, where it is kept and where it is shown', () => {
  const saved = { PORT: '{{ RUNPOD_SECRET_port }}', HEALTH_CHECK_PATH: '/up?t={{ RUNPOD_SECRET_t }}' }
  const serving = servingWithSecrets(saved, { PORT: '8000', HEALTH_CHECK_PATH: '/up?t=hidden' })
  assert.deepEqual([serving.port, serving.healthPort, serving.healthPath], [8_000, 8_000, saved.HEALTH_CHECK_PATH])
  assert.equal(shownHealthPath(saved), '/up?t=%7B%7B%20RUNPOD_SECRET_t%20%7D%7D')
  assert.equal(shownHealthPath({ HEALTH_CHECK_PATH: '{{RUNPOD_SECRET_t}}' }), '/%7B%7BRUNPOD_SECRET_t%7D%7D')
  assert.equal(shownHealthPath({ HEALTH_CHECK_PATH: '/a%20b?c' }), '/a%20b?c')
})

test('a value that comes from a secret is not repeated, the secret is named', () => {
  const saved = { PORT: '{{ RUNPOD_SECRET_a }}{{ RUNPOD_SECRET_b }}', RUNYARD_MAX_CONCURRENCY: 'all' }
  assert.equal(
    servingProblem({ ...saved, PORT: 'hidden' }, saved),
    'the variable PORT must be a port from 1 to 65535, which the value of the secret a, b is not; ' +
      "the variable RUNYARD_MAX_CONCURRENCY must be an integer from 1 to 1000000, not 'all'",
  )
  assert.match(servingProblem(saved)!, /^the variable PORT must be a port from 1 to 65535, which /)
})

test('a save repeats no value in an error, and checks no value that is unchanged or refers to a secret', () => {
  const [wrongPort] = servingVariableProblems({ PORT: 'hunter2' })
  assert.deepEqual(wrongPort, { field: 'env', item: 'the variable PORT', problem: 'must be a port from 1 to 65535' })
  assert.deepEqual(servingVariableProblems({ PORT: '0' }, { PORT: '0' }), [])
  assert.equal(servingVariableProblems({ PORT: '0' }, { PORT: '00' }).length, 1)
  assert.deepEqual(
    servingVariableProblems({ PORT: '{{ RUNPOD_SECRET_PORT }}', HEALTH_CHECK_PATH: 'a{{RUNPOD_SECRET_x}}' }),
    [],
  )
})

const HOOKS = { RUNYARD_SLEEP_URL: '/sleep?level=1', RUNYARD_WAKE_URL: 'http://localhost:8000/wake_up' }

test('a worker has sleep hooks when both variables say where, on its own port', () => {
  const env = { ...HOOKS, PORT: '8000' }
  assert.deepEqual(readServing(env).sleepHooks, {
    sleepUrl: '/sleep?level=1',
    wakeUrl: 'http://localhost:8000/wake_up',
  })
  assert.equal(servingProblem(env), null)
  assert.deepEqual(reservedPaths(env), ['/sleep', '/wake_up'])
  assert.equal(readServing({ RUNYARD_SLEEP_URL: '/sleep' }).sleepHooks, undefined)
})

for (const [env, sentence] of [
  [{ RUNYARD_SLEEP_URL: '/s' }, 'the variable RUNYARD_WAKE_URL must be given where RUNYARD_SLEEP_URL is'],
  [{ RUNYARD_WAKE_URL: '/s' }, 'the variable RUNYARD_SLEEP_URL must be given where RUNYARD_WAKE_URL is'],
  [{ ...HOOKS, PORT: '8001' }, /^the variable RUNYARD_WAKE_URL must name the port of the worker, its PORT 8001, not/],
  [HOOKS, /^the variable RUNYARD_WAKE_URL must name the port of the worker, its PORT 80, not/],
] as const) {
  test(`sleep hooks that do not fit are refused: ${JSON.stringify(env)}`, () => {
    const problem = servingProblem(env)!
    if (typeof sentence === 'string') assert.equal(problem, sentence)
    else assert.match(problem, sentence)
    assert.equal(servingVariableProblems(env).length, 1)
    assert.deepEqual(servingVariableProblems(env, env), [], 'what was like that before is not judged again')
  })
}

test('a hook leads to no other host, however it is written', () => {
  for (const text of [
    'http://169.254.169.254/latest',
    'http://127.0.0.1@evil.example/sleep',
    'http://localhost.evil.example/sleep',
    'http://localhost:80@evil.example/',
    'https://127.0.0.1/sleep',
    'http://[::1]/sleep',
    'sleep',
    '/a b',
    '/a\r\nHost: x',
    '',
  ]) {
    assert.match(
      servingProblem({ RUNYARD_SLEEP_URL: text, RUNYARD_WAKE_URL: '/w' })!,
      /RUNYARD_SLEEP_URL must be a path/,
    )
  }
})

test('hooks that refer to secrets stay references, and are not judged when they are saved', () => {
  const saved = { RUNYARD_SLEEP_URL: '{{ RUNPOD_SECRET_s }}', RUNYARD_WAKE_URL: '/wake?t={{ RUNPOD_SECRET_t }}' }
  const serving = servingWithSecrets(saved, { RUNYARD_SLEEP_URL: '/sleep?t=1', RUNYARD_WAKE_URL: '/wake?t=hidden' })
  assert.deepEqual(serving.sleepHooks, { sleepUrl: saved.RUNYARD_SLEEP_URL, wakeUrl: saved.RUNYARD_WAKE_URL })
  assert.deepEqual(servingVariableProblems(saved), [])
})
