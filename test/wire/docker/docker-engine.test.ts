/** An engine of the test's own that is away, comes, is stopped and is killed while jobs run. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, linkSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { healthOf, statusOf, submit, whenFinal } from '../support/client.ts'
import { containerEndpoint, explanationOf, startContainerServer, volumeWith } from '../support/containers.ts'
import { root, type Server } from '../support/server.ts'
import { until } from '../support/until.ts'

const START_MS = 60_000

describe('an engine that comes and goes', { skip: noDocker, timeout: patient(200_000) }, () => {
  const folder = noDocker === false ? temporaryFolder() : ''
  let server: Server
  let endpoint: string
  let notes: string
  const tool = (...words: string[]) =>
    execFileSync(`${root}/.ci/docker`, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()
  const containers = (...filter: string[]) =>
    execFileSync('docker', ['-H', `unix://${folder}/docker.sock`, 'ps', '-aq', ...filter], { encoding: 'utf8' })
  const running = async (input: object) => {
    const id = await submit(server, endpoint, input)
    await until('the handler to begin', () => existsSync(join(notes, `begun-${id}`)), START_MS)
    return { id, worker: (await statusOf(server, endpoint, id)).workerId as string }
  }
  const exitOf = (worker: string) =>
    until('its end', () => server.events('worker.exited').find(({ workerId }) => workerId === worker), START_MS)

  before(async () => {
    // The downloads for the image are those of the engine of all tests.
    linkSync(join(dirname(engineUrl.replace('unix://', '')), 'files.tar'), join(folder, 'files.tar'))
    atEnd(() => tool('stop', folder))
    server = await startContainerServer({}, `unix://${folder}/docker.sock`)
    const files = await volumeWith(server, 'python-worker')
    notes = files.folder
    endpoint = await containerEndpoint(server, {
      // Ends with the first signal, which RunPod's SDK would take ten seconds for when it has a job.
      words: ['sh', '-c', 'setsid python3 -u /runpod-volume/handler.py & wait'],
      env: { WIRE_FOLDER: '/runpod-volume' },
      settings: { networkVolumeId: files.id, idleTimeout: 3600 },
    })
  })

  test('without one the job waits, with the places that were searched; once it is there the job runs', async () => {
    const job = await submit(server, endpoint, { first: true })
    const { cause, summary } = await explanationOf(server, endpoint)
    assert.equal(cause, 'engine_away')
    assert.match(
      summary,
      new RegExp(`container engine is away: none was found at unix://${folder}/docker.sock; start Docker or Podman`),
    )
    tool('start', folder)
    tool('image', folder, workerImage)
    const { status } = await whenFinal(server, endpoint, job, START_MS)
    assert.equal(status, 'COMPLETED')
    assert.equal(server.events('engine.found').length, 1)
  })

  test('one that is stopped ends its containers: the job runs again when it is back, with the reason', async () => {
    const { id, worker } = await running({ sleepOnce: 60 })
    tool('stop', folder, '--for-a-while')
    const { cause } = await exitOf(worker)
    assert.match(String(cause), /when the container engine was stopped or restarted$/)
    assert.equal((await statusOf(server, endpoint, id)).status, 'IN_QUEUE')
    const away = await until('the engine to be missed', async () => {
      const found = await explanationOf(server, endpoint)
      return found.cause === 'engine_away' && found
    })
    assert.match(String(away.action), /start the container engine/)
    tool('start', folder)
    const { status, retries, workerId } = await whenFinal(server, endpoint, id, START_MS)
    assert.deepEqual([status, retries], ['COMPLETED', 1])
    assert.notEqual(workerId, worker)
  })

  test('one that is killed leaves its containers at work; what its next start ends runs again', async () => {
    const short = await running({ sleep: 3 })
    process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL')
    const done = await whenFinal(server, endpoint, short.id, START_MS)
    assert.deepEqual([done.status, done.workerId], ['COMPLETED', short.worker])
    const long = await running({ sleepOnce: 60 })
    assert.equal(long.worker, short.worker)
    tool('start', folder)
    const { status, workerId } = await whenFinal(server, endpoint, long.id, START_MS)
    assert.equal(status, 'COMPLETED')
    assert.notEqual(workerId, long.worker)
    assert.match(String((await exitOf(long.worker)).cause), /when the container engine was stopped or restarted$/)
    assert.equal((await healthOf(server, endpoint)).jobs.failed, 0)
  })

  test('a server that starts while it is away takes its workers over as soon as it is back', async () => {
    const { id, worker } = await running({ sleep: 8 })
    process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL')
    await server.kill9()
    const again = { dataDir: server.dataDir, port: server.port }
    server = await startContainerServer(again, `unix://${folder}/docker.sock`)
    const { status, workerId } = await whenFinal(server, endpoint, id, START_MS)
    assert.deepEqual([status, workerId], ['COMPLETED', worker])
    await server.kill9()
    tool('start', folder)
    server = await startContainerServer(again, `unix://${folder}/docker.sock`)
    // The servers that were killed had no time to remove the containers of ended workers.
    await until('these containers to be removed', () => containers('--filter', 'status=exited') === '', START_MS)
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
    assert.equal(containers(), '')
  })
})
