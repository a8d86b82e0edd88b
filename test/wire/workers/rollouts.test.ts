/** Releases that crash at once, with real processes, under steady load. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask, runJob, statusOf, submit } from '../support/client.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { sleep, timed, until } from '../support/until.ts'

const BROKEN = { args: `${process.execPath} missing.mjs` }

describe('a release that crashes under steady load', () => {
  let server: Server

  before(async () => {
    server = await startServer({ args: ['--worker', fixture('node-everyday')] })
  })

  const change = async (id: string, body: object) =>
    assert.equal((await ask(server, `/v2/serverless/${id}`, { method: 'PATCH', body })).status, 200)
  const releasesOf = async (id: string) => (await ask(server, `/v2/serverless/${id}/releases`)).json
  const why = async (id: string) => (await ask(server, `/v2/${id}/explain`)).text

  /** Calls until the returned function is called, which gives what was wrong. */
  function steadily(call: () => Promise<void>): () => Promise<unknown[]> {
    let goesOn = true
    const wrong: unknown[] = []
    const calls: Promise<void>[] = []
    const loop = (async () => {
      while (goesOn) {
        calls.push(call().catch(thrown => void wrong.push(thrown)))
        await sleep(100)
      }
    })()
    return async () => {
      goesOn = false
      await loop
      await Promise.all(calls)
      return wrong
    }
  }

  async function breaksAndMends(id: string): Promise<void> {
    const { version } = (await releasesOf(id)).releases[0]
    await change(id, BROKEN)
    const { ms } = await timed(() =>
      until('why to name the cause', async () => /missing\.mjs|exited with code 1/.test(await why(id))),
    )
    assert.ok(ms < 10_000, `the cause is named after ${ms} ms`)
    await until('the rollout to stop', async () => (await releasesOf(id)).rollout.state === 'STOPPED')
    assert.match(await why(id), new RegExp(`runyard endpoints rollback ${id} ${version}`))
    await sleep(1_000)
    const path = `/v2/serverless/${id}/releases/${version}/rollback`
    assert.equal((await ask(server, path, { method: 'POST' })).status, 201)
    await until('the rollback to be complete', async () => {
      const { rollout, releases } = await releasesOf(id)
      return rollout.state === 'COMPLETE' && releases[0].workerCount > 0
    })
  }

  test('fails no job of a queue, and one call undoes it', async () => {
    const id = 'nodeeveryday'
    await change(id, { workers: { max: 3, idleTimeout: 60 } })
    await runJob(server, id, {})
    const jobs: string[] = []
    const end = steadily(async () => void jobs.push(await submit(server, id, {})))
    await breaksAndMends(id)
    assert.deepEqual(await end(), [])
    for (const job of jobs) {
      const { status, retries = 0 } = await until('the job to end', async () => {
        const now = await statusOf(server, id, job)
        return now.status !== 'IN_QUEUE' && now.status !== 'IN_PROGRESS' && now
      })
      assert.deepEqual([status, retries], ['COMPLETED', 0])
    }
  })
})
