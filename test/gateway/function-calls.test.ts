/** Calls that come from networks of workers, in which only functions of apps may speak as clients. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { functionCallProblem } from '../../src/server/function-calls.ts'

const problem = (authorization: string | undefined, url = '/v2/flash/run') =>
  functionCallProblem({ url, headers: authorization === undefined ? {} : { authorization } })

test('a function of an app calls with the token of its worker, and with nothing else', () => {
  assert.equal(problem('Bearer rpw_abc'), null)
  assert.equal(problem('bearer rpw_abc'), null)
  assert.equal(problem('rpw_abc', '/v2/e/job-take/w'), null, 'a worker sends it so')
  for (const authorization of [undefined, 'Bearer rpa_of_a_person', 'Basic rpw_abc', 'x rpw_abc'])
    assert.equal(problem(authorization)?.status, 403, String(authorization))
})

test('the program of a task has a token of its own', () => {
  assert.equal(problem('Bearer of the task', '/tasks/abc-8080.proxy.runpod.net/submit'), null)
  assert.equal(problem('Bearer of a person', '/v2/tasks/run')?.status, 403)
})
