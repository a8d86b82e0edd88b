/** Releases that crash at once, with real processes, under steady load. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { balancedEndpoint, call, inNode } from '../support/balanced.ts'
import { breaksAndMends, changeEndpoint, SteadyJobs, steadily } from '../support/broken-release.ts'
import { runJob } from '../support/client.ts'
import { fixture, type Server, startServer } from '../support/server.ts'

const BROKEN = { args: `${process.execPath} missing.mjs`, cause: /missing\.mjs|exited with code 1/ }

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
