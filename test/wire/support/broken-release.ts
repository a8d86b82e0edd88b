/** A release whose workers crash at once, while calls go on, and its rollback. */
import assert from 'node:assert/strict'
import { patient } from '../../support/patience.ts'
import { ask, statusOf, submit } from './client.ts'
import type { Server } from './server.ts'
import { sleep, timed, until } from './until.ts'

/** Time until the cause of the crashes has to be named. */
const NAMED_MS = 10_000

/**
 * Calls until the returned function is called, which gives what was wrong.
 * @param everyMs the interval between calls
 */
export function steadily(call: () => Promise<void>, everyMs = 100): () => Promise<unknown[]> {
  let goesOn = true
  const wrong: unknown[] = []
  const calls: Promise<void>[] = []
  const loop = (async () => {
    while (goesOn) {
      calls.push(call().catch(thrown => void wrong.push(thrown)))
      await sleep(everyMs)
    }
  })()
  return async () => {
    goesOn = false
    await loop
    await Promise.all(calls)
    return wrong
  }
}

/** Changes an endpoint. */
export async function changeEndpoint(server: Server, id: string, body: object): Promise<void> {
  const { status, text } = await ask(server, `/v2/serverless/${id}`, { method: 'PATCH', body })
  assert.equal(status, 200, text)
}

/**
 * Releases a version that crashes, waits until its rollout has stopped with its cause named,
 * and undoes it with one call.
 */
export async function breaksAndMends(
  server: Server,
  id: string,
  { args, cause }: { readonly args: string; readonly cause: RegExp },
): Promise<void> {
  const releases = async () => (await ask(server, `/v2/serverless/${id}/releases`)).json
  const explanation = async () => (await ask(server, `/v2/${id}/explain`)).text
  const { version } = (await releases()).releases[0]
  const { ms } = await timed(async () => {
    await changeEndpoint(server, id, { args })
    await until('why to name the cause', async () => cause.test(await explanation()))
  })
  assert.ok(ms < patient(NAMED_MS), `the cause is named after ${ms} ms`)
  await until('the rollout to stop', async () => (await releases()).rollout.state === 'STOPPED')
  assert.match(await explanation(), new RegExp(`runyard endpoints rollback ${id} ${version}`))
  await sleep(1_000)
  const path = `/v2/serverless/${id}/releases/${version}/rollback`
  assert.equal((await ask(server, path, { method: 'POST' })).status, 201)
  await until('the rollback to be complete', async () => {
    const { rollout, releases: all } = await releases()
    return rollout.state === 'COMPLETE' && all[0].workerCount > 0
  })
}

/** Jobs that are submitted all the time. */
export class SteadyJobs {
  readonly #server: Server
  readonly #endpoint: string
  readonly #jobs: string[] = []
  readonly #end: () => Promise<unknown[]>

  constructor(server: Server, endpoint: string, everyMs = 100) {
    this.#server = server
    this.#endpoint = endpoint
    this.#end = steadily(async () => void this.#jobs.push(await submit(server, endpoint, {})), everyMs)
  }

  /** Stops submitting jobs, and asserts that no job failed or ran a second time. */
  async allDone(): Promise<void> {
    assert.deepEqual(await this.#end(), [])
    for (const job of this.#jobs) {
      const { status, retries = 0 } = await until('the job to end', async () => {
        const now = await statusOf(this.#server, this.#endpoint, job)
        return now.status !== 'IN_QUEUE' && now.status !== 'IN_PROGRESS' && now
      })
      assert.deepEqual([status, retries], ['COMPLETED', 0])
    }
  }
}
