/**
 * Faults around running containers: full machines, pauses, checks that fail, workers that hang. No job is lost in
 * any.
 */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { engineAt, engineUrl, noDocker } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { ask, changeEndpoint, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import { containerEndpoint, explanationOf, startContainerServer, volumeWith } from '../support/containers.ts'
import type { Server } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A worker of ours, which starts within a second. A job may wait for a file of the volume. */
const NODE = `import { existsSync } from 'node:fs'
import { start } from '@runyard/worker'
const isThere = name => name === undefined || existsSync('/runpod-volume/' + name)
const handler = async ({ input }) => {
  while (!isThere(input.waitFor)) await new Promise(done => setTimeout(done, 50))
  return input
}
await start({ handler })`
const node = ['node', '--input-type=module', '-e', NODE]

const START_MS = 60_000

describe('faults around containers', { skip: noDocker, timeout: patient(280_000) }, () => {
  let server: Server
  let files: { id: string; folder: string }
  before(async () => {
    // All vCPUs of the machine are reserved once, so the second worker finds no vCPU.
    server = await startContainerServer({ args: ['--cpu-overcommit', '1'] })
    files = await volumeWith(server, 'python-worker')
  })
  const explained = (endpoint: string, cause: string) =>
    until(
      `the cause ${cause}`,
      async () => {
        const found = await explanationOf(server, endpoint)
        return found.cause === cause && found
      },
      START_MS,
    )
  const drop = (endpoint: string) => ask(server, `/v2/serverless/${endpoint}`, { method: 'DELETE' })
  /** RunPod's SDK with the handler of the other tests. */
  const python = (env: Record<string, string> = {}) =>
    containerEndpoint(server, {
      words: ['python3', '-u', '/runpod-volume/handler.py'],
      env: { WIRE_FOLDER: '/runpod-volume', ...env },
      settings: { networkVolumeId: files.id, idleTimeout: 3600 },
    })
  const begun = (job: string) =>
    until('the handler to begin', () => existsSync(join(files.folder, `begun-${job}`)), START_MS)
  /** Lets the jobs go on that wait for this file. */
  const put = (name: string) => writeFileSync(join(files.folder, name), '')

  test('a machine whose vCPUs are taken names their holder, and the job runs when they are free', async t => {
    const wide = { instanceIds: ['cpu3g-32-128'], idleTimeout: 1 }
    const first = await containerEndpoint(server, { words: node, settings: { ...wide, networkVolumeId: files.id } })
    t.after(() => drop(first))
    const long = await submit(server, first, { waitFor: 'explained' })
    await until('it to run', async () => (await statusOf(server, first, long)).status === 'IN_PROGRESS', START_MS)
    const second = await containerEndpoint(server, { words: node, settings: wide })
    t.after(() => drop(second))
    const waiting = await submit(server, second, { waited: true })
    const { summary, action } = await explained(second, 'no_capacity')
    assert.match(
      summary,
      /vCPUs? (are|is) wanted, and \d+ of the \d+ that may be promised are taken by endpoint container-/,
    )
    assert.match(String(action), /--cpu-overcommit/)
    put('explained')
    const { status, output } = await whenFinal(server, second, waiting, START_MS)
    assert.deepEqual([status, output], ['COMPLETED', { waited: true }])
    assert.equal((await whenFinal(server, first, long)).status, 'COMPLETED')
  })

  test('an endpoint with max 0 keeps its jobs and says so, and runs them when it is raised', async t => {
    const endpoint = await containerEndpoint(server, { words: node, settings: { workersMax: 0, idleTimeout: 1 } })
    t.after(() => drop(endpoint))
    const job = await submit(server, endpoint, { kept: true })
    const { action } = await explained(endpoint, 'paused')
    assert.match(String(action), /workersMax/)
    assert.equal((await statusOf(server, endpoint, job)).status, 'IN_QUEUE')
    await changeEndpoint(server, endpoint, { workersMax: 1 })
    assert.deepEqual((await whenFinal(server, endpoint, job, START_MS)).output, { kept: true })
  })

  test('a fitness check that fails in a container is named with its reason, and the job waits', async t => {
    const endpoint = await python({ WIRE_UNFIT: '1' })
    t.after(() => drop(endpoint))
    const job = await submit(server, endpoint, {})
    const { summary } = await explained(endpoint, 'fitness_failed')
    assert.match(summary, /device_check failed: RuntimeError: there is no such device/)
    assert.equal((await statusOf(server, endpoint, job)).status, 'IN_QUEUE')
  })

  test('a container that hangs is missed, ended although it is frozen, and its job runs on another', async t => {
    const endpoint = await python()
    t.after(() => drop(endpoint))
    await runJob(server, endpoint, {}, START_MS)
    const job = await submit(server, endpoint, { sleepOnce: 3600 })
    await begun(job)
    const { workerId = '' } = await statusOf(server, endpoint, job)
    await engineAt(engineUrl).getContainer(`runyard-${workerId}`).pause()
    const { summary, action } = await explained(endpoint, 'unhealthy')
    assert.match(summary, /it sent nothing for \d+ s/)
    assert.match(String(action), /runyard logs/)
    const done = await whenFinal(server, endpoint, job, START_MS)
    assert.deepEqual([done.status, done.retries], ['COMPLETED', 1])
    assert.notEqual(done.workerId, workerId)
  })

  test('a server that starts again while containers run says that they do', async () => {
    const endpoint = await python()
    const job = await submit(server, endpoint, { waitFor: 'restarted' })
    await begun(job)
    const { workerId } = await statusOf(server, endpoint, job)
    await server.kill9()
    server = await startContainerServer({ dataDir: server.dataDir, port: server.port })
    assert.equal((await explanationOf(server, endpoint)).cause, 'running')
    put('restarted')
    const done = await whenFinal(server, endpoint, job, START_MS)
    assert.deepEqual([done.status, done.workerId, done.retries ?? 0], ['COMPLETED', workerId, 0])
    await server.stop()
  })
})
