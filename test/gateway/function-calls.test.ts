/** Calls that come from networks of workers, in which only functions of apps may speak as clients. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../src/core/ids.ts'
import { functionCalls } from '../../src/server/function-calls.ts'
import { routing } from '../../src/server/mount.ts'

const findEndpoint = (name: string) => (name === 'words.example' ? ('abcdefgh1234' as EndpointId) : null)
const judge = functionCalls(routing({ domain: 'lb.example', ownHosts: [], closedHosts: [], findEndpoint }))

const problem = (
  authorization: string | undefined,
  url = '/v2/flash/run',
  more: readonly string[] = [],
  host = 'localhost',
) =>
  judge({
    url,
    headers: { host },
    rawHeaders: [...(authorization === undefined ? [] : ['Authorization', authorization]), ...more],
  })

test('a function of an app calls with the token of its worker, and with nothing else', () => {
  assert.equal(problem('Bearer rpw_abc'), null)
  assert.equal(problem('bearer rpw_abc'), null)
  assert.equal(problem('rpw_abc', '/v2/e/job-take/w'), null, 'a worker sends it so')
  for (const authorization of [undefined, 'Bearer rpa_of_a_person', 'Basic rpw_abc', 'x rpw_abc'])
    assert.equal(problem(authorization)?.status, 403, String(authorization))
})

test('the program of a task has a token of its own', () => {
  assert.equal(problem('Bearer of the task', '/tasks/abcdefgh1234-8080.proxy.runpod.net/submit'), null)
  assert.equal(problem('Bearer of a person', '/v2/tasks/run')?.status, 403)
})

test('the path of a task is none at the host of an endpoint, which has paths of its own', () => {
  const path = '/tasks/abcdefgh1234-8080.proxy.runpod.net/submit'
  for (const host of ['abcdefgh1234.localhost:8000', 'abcdefgh1234.lb.example', 'words.example', 'flash.localhost']) {
    assert.equal(problem('Bearer rpa_of_a_person', path, [], host)?.status, 403, host)
    assert.equal(problem('Bearer rpa_of_a_person', `http://${host}${path}`)?.status, 403, host)
    assert.equal(problem('Bearer rpw_abc', path, [], host), null, host)
  }
  assert.equal(problem('Bearer of the task', `http://localhost${path}`), null)
})

test('the key of a person does not come along with the token of a worker', () => {
  assert.equal(problem('Bearer rpw_abc', '/v2/flash/run?api_key=rpa_of_a_person')?.status, 403)
  assert.equal(problem('Bearer rpw_abc', '/v2/flash/run', ['authorization', 'Bearer rpa_of_a_person'])?.status, 403)
  const protocols = ['Sec-WebSocket-Protocol', 'runyard.key.rpa_of_a_person']
  assert.equal(problem('Bearer rpw_abc', '/v2/flash/socket', protocols)?.status, 403)
})

test('a path that leads out of the tasks is none of a task', () => {
  for (const path of [
    '/tasks/../v2/account/keys',
    '/tasks/%2e%2E/graphql',
    '/tasks//../graphql',
    '/tasks/..\\graphql',
    '/tasks/a/../../graphql',
  ])
    assert.equal(problem('Bearer rpa_of_a_person', path)?.status, 403, path)
})
