/** Real servers in containers as workers of load-balancing endpoints, each with an image of its own. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { buildImage } from '../../../src/drivers/docker/images/build.ts'
import { engineAt, engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { balancedEndpoint, Chat, call } from '../support/balanced.ts'
import { atEnd } from '../support/cleanup.ts'
import { healthOf } from '../support/client.ts'
import { startContainerServer } from '../support/containers.ts'
import { fixture, type Server } from '../support/server.ts'
import { secureVolume, startTask } from '../support/tasks.ts'
import { until } from '../support/until.ts'

describe('servers in containers', { skip: noDocker, timeout: patient(240_000) }, () => {
  const engine = engineAt(engineUrl)
  let server: Server
  before(async () => {
    server = await startContainerServer()
  })

  /** Makes the image of a fixture, as its Dockerfile says. */
  async function built(name: string): Promise<string> {
    const image = `runyard-wire-${name}-${process.pid}:1`
    await buildImage({ engine: engine.client, folder: fixture(name), name: image, args: { BASE: workerImage } })
    atEnd(() => engine.getImage(image).remove({ force: true }))
    return image
  }

  test('an application of FastAPI: paths, methods, a host of its own and a WebSocket, on the port that it expects', async () => {
    const image = await built('balanced-fastapi')
    const fastApi = await balancedEndpoint(server, { image, env: { PORT: '8123' } })
    const { status, json, worker } = await call(fastApi, '/items/7?q=x')
    assert.deepEqual([status, json], [200, { item: 7, q: 'x', worker }])
    const body = JSON.stringify({ name: 'tea', price: 2 })
    const headers = { 'content-type': 'application/json' }
    const made = await call(fastApi, '/items/8', { method: 'PUT', headers, body, byHost: true })
    assert.deepEqual([made.status, made.worker, made.headers.location], [201, worker, '/items/8'])
    const chat = new Chat(fastApi, '/chat/tea')
    assert.equal(await chat.say('hello'), 'tea: hello')
    chat.socket.send('bye')
    assert.deepEqual(await chat.ended(), { code: 4001, reason: 'bye from tea' })
    assert.equal((await healthOf(server, fastApi.id)).workers.ready, 1)
  })

  test('a server of WebSockets on port 80, whose sockets are closed with its own code when the server stops', async () => {
    const image = await built('balanced-sockets')
    const own = await startContainerServer({ args: ['--drain-timeout', '1'] })
    const sockets = await balancedEndpoint(own, { image })
    const chat = new Chat(sockets, '/')
    assert.equal(JSON.parse(String(await chat.say('hello'))).said, 'hello')
    const stopped = own.stop()
    assert.equal((await chat.ended()).code, 1001)
    assert.equal((await stopped).code, 0)
  })

  test('a task in an image of its own runs the program of apps, with its volumes at the paths that it names', async () => {
    const own = await startContainerServer({ args: ['--tls-self-signed'] })
    const near = await secureVolume(own, 'network-volumes', { name: 'near', size: 10, dataCenter: 'EU-RO-1' })
    const everywhere = await secureVolume(own, 'global-volumes', { name: 'all' })
    writeFileSync(join(near.folder, 'text'), 'of the client')
    const task = await startTask(own, {
      imageName: workerImage,
      dockerArgs: `sh -c 'PY=python3; "$PY" -c "import runpod_sdk_runtime, runpod" && exec "$PY" -m runpod_sdk_runtime.task.runner'`,
      volumeMounts: [
        { volumeId: near.id, volumeType: 'NETWORK_VOLUME', mountPath: '/data' },
        { volumeId: everywhere.id, volumeType: 'OBJECT_STORE_VOLUME', mountPath: '/srv/models' },
      ],
    })
    await until('the program answers', async () => (await task.ask('/ping')).status === 200)
    const source = readFileSync(join(fixture('python-app'), 'container_task.py'), 'utf8')
    const call = { function_name: 'meet', function_code: source, args: ['from the task'], kwargs: {} }
    const request = { ...call, execution_type: 'function', serialization_format: 'json', timeout: null }
    assert.equal((await task.ask('/submit', request)).status, 200)
    const result = async () => JSON.parse((await task.ask('/result')).text)
    await until('the task has ended', async () => (await result()).status === 'DONE')
    assert.deepEqual((await result()).response.json_result, {
      port: '8080',
      files: ['text'],
      mounts: ['/data', '/srv/models'],
    })
    assert.equal(readFileSync(join(everywhere.folder, 'result'), 'utf8'), 'from the task')
    assert.deepEqual(await task.end(), { data: { podTerminate: null } })
  })

  test('a server in Node survives a kill of Runyard, and ends with an orderly stop', async () => {
    const image = await built('balanced-node')
    const node = await balancedEndpoint(server, { image, workers: { max: 1, idleTimeout: 600 } })
    const { json, worker } = await call(node, '/')
    await server.kill9()
    server = await startContainerServer({ dataDir: server.dataDir, port: server.port })
    const again = await call({ ...node, server }, '/')
    assert.deepEqual([again.status, again.json, again.worker], [200, json, worker])
    assert.equal((await server.stop()).code, 0)
    assert.deepEqual(await leftOf(worker), [])
  })

  const leftOf = (worker: string) =>
    engine.listContainers({ all: true, filters: { label: [`dev.runyard.worker=${worker}`] } })
})
