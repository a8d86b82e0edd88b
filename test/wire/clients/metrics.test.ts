/** Metrics that Prometheus reads from a real server. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ask, makeEndpoint, submit, whenFinal } from '../support/client.ts'
import { root, startServer } from '../support/server.ts'

test('a running server shows its jobs, its requests, its store and its process', async () => {
  const server = await startServer()
  const id = await makeEndpoint(server, { folder: `${root}/examples/hello-node` })
  await whenFinal(server, id, await submit(server, id, { name: 'World' }))
  const response = await fetch(`${server.url}/metrics`, { headers: { authorization: `Bearer ${server.apiKey}` } })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const text = await response.text()
  for (const line of [
    `runyard_jobs_submitted_total{endpoint="${id}"} 1`,
    `runyard_jobs_finished_total{endpoint="${id}",result="completed"} 1`,
    `runyard_job_execution_seconds_count{endpoint="${id}"} 1`,
    `runyard_worker_cold_start_seconds_count{endpoint="${id}"} 1`,
    'runyard_store_call_seconds_count{operation="jobs.insert"} 1',
    'runyard_store_up 1',
    'runyard_store_unavailable_total 0',
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line} is missing in\n${text}`)
  }
  assert.match(text, /^process_resident_memory_bytes \d+$/m)
  assert.match(text, /^nodejs_eventloop_lag_seconds \S+$/m)
  assert.equal((await ask(server, '/metrics', { headers: { authorization: null } })).status, 401)
  assert.equal((await ask(server, `/v2/${id}/metrics`)).json.readyWorkers.length, 1)
  await server.stop()
})

test('with --metrics-public no key is needed', async () => {
  const server = await startServer({ args: ['--metrics-public'] })
  assert.equal((await fetch(`${server.url}/metrics`)).status, 200)
  await server.stop()
})
