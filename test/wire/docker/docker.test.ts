/** Workers in containers: the official SDK and ours, and each way in which a container can fail, with its reason. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { engineAt, engineUrl, noDocker } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { openRegistry, type TestRegistry } from '../../support/registry.ts'
import { atEnd } from '../support/cleanup.ts'
import { ask, graphql, healthOf, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import {
  type ContainerWish,
  containerEndpoint,
  explanationOf,
  startContainerServer,
  volumeWith,
} from '../support/containers.ts'
import type { Server } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A handler that takes more memory than it may, the first time. */
const GREEDY = `
import os, time, runpod
def handler(job):
    if not os.path.exists("/runpod-volume/greedy"):
        open("/runpod-volume/greedy", "w").close()
        while not os.path.exists("/runpod-volume/limited"):
            time.sleep(0.05)
        bytearray(900 << 20)
    return "enough"
runpod.serverless.start({"handler": handler})
`

/** Starting the SDK takes seconds of computing. */
const START_MS = 60_000

describe('workers in containers', { skip: noDocker, timeout: patient(280_000) }, () => {
  const engine = engineAt(engineUrl)
  let server: Server
  let depot: TestRegistry
  let files: { id: string; folder: string }
  before(async () => {
    server = await startContainerServer()
    depot = await openRegistry()
    files = await volumeWith(server, 'python-worker')
  })
  after(() => depot.close())

  const ours = async () => {
    const label = `dev.runyard.installation=${readFileSync(join(server.dataDir, 'installation'), 'utf8').trim()}`
    return engine.listContainers({ all: true, filters: { label: [label] } })
  }
  const containerOf = (worker: string) => engine.getContainer(`runyard-${worker}`)
  /** RunPod's SDK with the handler of the other tests, which leaves notes on the endpoint's volume. */
  const pythonEndpoint = (env: Record<string, string> = {}, settings: object = {}) =>
    containerEndpoint(server, {
      words: ['python3', '-u', '/runpod-volume/handler.py'],
      env: { WIRE_FOLDER: '/runpod-volume', ...env },
      settings: { networkVolumeId: files.id, idleTimeout: 3600, ...settings },
    })
  const begun = (job: string) =>
    until('the handler to begin', () => existsSync(join(files.folder, `begun-${job}`)), START_MS)
  const causeOf = async (wish: ContainerWish, pattern: RegExp, cause = 'image_error') => {
    const endpoint = await containerEndpoint(server, wish)
    const job = await submit(server, endpoint, {})
    const reason = await until(
      `the reason ${pattern}`,
      async () => {
        const found = await explanationOf(server, endpoint)
        return pattern.test(found.summary) && found
      },
      START_MS,
    )
    assert.equal(reason.cause, cause)
    assert.notEqual(reason.action, null)
    assert.equal((await statusOf(server, endpoint, job)).status, 'IN_QUEUE', 'no job is lost')
    await ask(server, `/v2/serverless/${endpoint}`, { method: 'DELETE' })
    return reason
  }

  test("RunPod's Python SDK runs jobs in a container: results, errors, several at once, cancelling, its output", async () => {
    const endpoint = await pythonEndpoint({ WIRE_CAPACITY: '3' })
    const first = await runJob(server, endpoint, { hello: 'container' }, START_MS)
    assert.deepEqual([first.status, first.output.input], ['COMPLETED', { hello: 'container' }])
    const worker = first.workerId as string
    const failed = await runJob(server, endpoint, { raise: 'boom' })
    assert.equal(failed.status, 'FAILED')
    assert.match(failed.error ?? '', /boom/)
    const many = await Promise.all([1, 2, 3].map(n => submit(server, endpoint, { n, sleep: 1 })))
    const done = await Promise.all(many.map(job => whenFinal(server, endpoint, job)))
    assert.deepEqual(
      done.map(({ status, workerId }) => [status, workerId]),
      Array(3).fill(['COMPLETED', worker]),
    )
    const cancelled = await submit(server, endpoint, { sleep: 60 })
    await begun(cancelled)
    await ask(server, `/v2/${endpoint}/cancel/${cancelled}`, { method: 'POST' })
    await until('the handler to be stopped', () => existsSync(join(files.folder, `stopped-${cancelled}`)))
    assert.equal((await runJob(server, endpoint, {})).workerId, worker)
    const logs = await ask(server, `/ops/logs/${worker}`)
    assert.match(logs.text, /boom/)
  })

  test('our own SDK runs jobs in a container, and sees its environment', async () => {
    const script = `import { start } from '@runyard/worker'
      await start({ handler: ({ input }) => ({ ...input, volume: process.env.RUNPOD_VOLUME_PATH ?? null, host: (await import('node:os')).hostname() }) })`
    const source = script.replace('handler: (', 'handler: async (')
    const endpoint = await containerEndpoint(server, {
      words: ['node', '--input-type=module', '-e', source],
      settings: { idleTimeout: 1 },
    })
    const { status, output, workerId } = await runJob(server, endpoint, { a: 1 }, START_MS)
    assert.deepEqual([status, output], ['COMPLETED', { a: 1, volume: null, host: workerId }])
    await until('its container to be gone when it is idle', async () =>
      (await ours()).every(({ Labels }) => Labels['dev.runyard.worker'] !== workerId),
    )
  })

  test('an image that is nowhere, a wrong credential and a registry that is away each show as the reason', async () => {
    depot.publish('private', '1', 'hello')
    const { saveRegistryAuth } = await graphql(
      server,
      'mutation ($input: SaveRegistryAuthInput) { saveRegistryAuth(input: $input) { id } }',
      { input: { name: 'wrong', username: 'me', password: 'let me in' } },
    )
    const image = `${depot.host}/private:1`
    const reason = await causeOf({ image, registry: saveRegistryAuth.id }, /does not accept the credential/)
    assert.match(String(reason.action), /registry credential/)
    assert.doesNotMatch(JSON.stringify(reason), /let me in/)
    await causeOf({ image }, /requires a credential, and the template has none/)
    await causeOf({ image: '127.0.0.1:1/away:1' }, /127\.0\.0\.1:1 cannot be reached/)
    const open = await openRegistry(true)
    atEnd(open.close)
    await causeOf({ image: `${open.host}/nothing:1` }, /has no such image/)
    assert.ok(server.lines.every(line => !line.includes('let me in')))
  })

  test('an entry point that is missing or not executable, and a crash at the start, show as the reason', async () => {
    await causeOf({ words: ['/nowhere/start.sh'] }, /its program '\/nowhere\/start\.sh' does not exist in the image/)
    await causeOf({ words: ['/etc/passwd'] }, /its program '\/etc\/passwd' is not executable/)
    const crash = await causeOf(
      { words: ['python3', '-c', 'import nothing'] },
      /the last [2-9] worker.*exited with code 1/,
      'crash_loop',
    )
    assert.ok(crash.evidence.includes("ModuleNotFoundError: No module named 'nothing'"), crash.evidence.join('\n'))
  })

  test('a worker that is killed for its memory gives its job back, which runs again', async () => {
    const endpoint = await containerEndpoint(server, {
      words: ['python3', '-u', '-c', GREEDY],
      settings: { networkVolumeId: files.id },
    })
    const job = await submit(server, endpoint, {})
    await until('the handler to begin', () => existsSync(join(files.folder, 'greedy')), START_MS)
    const { workerId: worker = '' } = await statusOf(server, endpoint, job)
    const bytes = 400 * 1024 * 1024
    await containerOf(worker).update({ Memory: bytes, MemorySwap: bytes })
    writeFileSync(join(files.folder, 'limited'), '')
    const reason = await until(
      'the reason',
      async () => {
        const found = await explanationOf(server, endpoint)
        return found.cause === 'out_of_memory' && found
      },
      START_MS,
    )
    assert.match(String(reason.action), /more memory/)
    const { status, retries, workerId } = await whenFinal(server, endpoint, job, START_MS)
    assert.deepEqual([status, retries], ['COMPLETED', 1])
    assert.notEqual(workerId, worker)
    const exited = await until('its end', () => server.events('worker.exited').find(event => event.workerId === worker))
    assert.equal(exited.cause, 'was killed because it used more than its 400 MB of memory')
  })

  test('a kill of the server does not touch a container: its job ends on the worker that had it', async () => {
    const endpoint = await pythonEndpoint()
    const job = await submit(server, endpoint, { sleep: 5 })
    await begun(job)
    const { workerId } = await statusOf(server, endpoint, job)
    await server.kill9()
    server = await startContainerServer({ dataDir: server.dataDir, port: server.port })
    const done = await whenFinal(server, endpoint, job)
    assert.deepEqual([done.status, done.workerId, done.retries ?? 0], ['COMPLETED', workerId, 0])
    assert.equal((await runJob(server, endpoint, {})).workerId, workerId)
    assert.equal((await healthOf(server, endpoint)).jobs.retried, 0)
  })

  test('a server that stops leaves no container behind', async () => {
    assert.ok((await ours()).length > 0)
    assert.deepEqual(await server.stop(), { code: 0, signal: null })
    assert.deepEqual(await ours(), [])
  })
})
