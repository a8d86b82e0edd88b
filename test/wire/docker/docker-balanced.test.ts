/** Real servers in containers as workers of load-balancing endpoints, each with an image of its own. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { buildImage } from '../../../src/drivers/docker/images/build.ts'
import { engineAt, engineUrl, noDocker, workerImage } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { balancedEndpoint, Chat, call } from '../support/balanced.ts'
import { atEnd } from '../support/cleanup.ts'
import { healthOf } from '../support/client.ts'
import { startContainerServer } from '../support/containers.ts'
import { fixture, type Server } from '../support/server.ts'

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
