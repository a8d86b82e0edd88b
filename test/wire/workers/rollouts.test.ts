/** Releases that crash at once, with real processes, under steady load. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { balancedEndpoint, call, changeBalanced, inNode } from '../support/balanced.ts'
import { breaksAndMends, changeEndpoint, SteadyJobs, steadily } from '../support/broken-release.ts'
import { ask, healthOf, runJob } from '../support/client.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const BROKEN = { args: `'${process.execPath}' missing.mjs`, cause: /missing\.mjs|exited with code 1/ }

describe('a release that crashes under steady load', () => {
  let server: Server

  before(async () => {
    server = await startServer({ args: ['--worker', fixture('node-everyday')] })
  })

  test('fails no job of a queue, and one call undoes it', async () => {
    const id = 'nodeeveryday'
    await changeEndpoint(server, id, { workers: { max: 3, idleTimeout: 60 } })
    await runJob(server, id, {})
    const jobs = new SteadyJobs(server, id)
    await breaksAndMends(server, id, BROKEN)
    await jobs.allDone()
  })

  test('fails no request of a load-balancing endpoint, and one call undoes it', async () => {
    const endpoint = await balancedEndpoint(server, { ...inNode, workers: { max: 3, idleTimeout: 60 } })
    const request = async () => assert.equal((await call(endpoint, '/')).status, 200)
    await request()
    const end = steadily(request)
    await breaksAndMends(server, endpoint.id, BROKEN)
    assert.deepEqual(await end(), [])
  })
})

test('a release that is ready and answers requests with 500 is stopped, and they succeed again', async () => {
  const server = await startServer()
  const endpoint = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 2, idleTimeout: 60 } })
  const status = async () => (await call(endpoint, '/')).status
  for (let request = 0; request < 40; request += 1) assert.equal(await status(), 200)
  await changeBalanced(endpoint, { env: { WIRE_STATUS: '500' } })
  await until('the new release to answer', async () => (await status()) === 500)
  const rollout = async () => (await ask(server, `/v2/serverless/${endpoint.id}/releases`)).json.rollout
  await until('the stop', async () => (await status()) > 0 && (await rollout()).state === 'STOPPED')
  assert.match((await rollout()).reason, /^\d+ of \d+ requests failed on release 2, 0 of \d+ on release 1$/)
  await until('an answer of the release before', async () => (await status()) === 200)
  for (let request = 0; request < 40; request += 1) assert.equal(await status(), 200)
})

test('a canary gets a part of the requests, and all once it is promoted, and no request fails', async () => {
  const server = await startServer()
  const workers = { min: 2, max: 4, idleTimeout: 60 }
  const endpoint = await balancedEndpoint(server, { ...inNode, env: { WIRE_VERSION: 'old' }, workers })
  let versions: string[] = []
  const request = async () => {
    const { status, json } = await call(endpoint, '/')
    assert.equal(status, 200)
    versions.push(json.version)
  }
  await request()
  await until('both workers', async () => (await healthOf(server, endpoint.id)).workers.ready === 2)
  const end = steadily(request, 20)
  await changeBalanced(endpoint, { env: { WIRE_VERSION: 'new' }, rollout: { canary: 10 } })
  await until('the canary to serve', () => versions.includes('new'))
  versions = []
  await until('many requests', () => versions.length >= 60)
  const part = versions.filter(version => version === 'new').length / versions.length
  assert.ok(part > 0.1 && part < 0.6, `the canary got ${part} of the requests`)
  const path = `/v2/serverless/${endpoint.id}/releases/2/promote`
  assert.equal((await ask(server, path, { method: 'POST' })).status, 200)
  await until('all requests to be served by the promoted release', () =>
    versions.slice(-20).every(one => one === 'new'),
  )
  assert.deepEqual(await end(), [])
})
