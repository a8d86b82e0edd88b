import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { MockFleet } from '../../src/drivers/mock/mock.ts'
import { createNoDriver, createRoutedDriver } from '../../src/drivers/routed.ts'
import type { Driver, WorkerSpec } from '../../src/ports/driver.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { PLAIN_WORKER } from '../support/worker-spec.ts'

const MAX = 5
const id = (name: string) => name as WorkerId

function spec(name: string, image: string): WorkerSpec {
  return {
    ...PLAIN_WORKER,
    workerId: id(name),
    endpointId: 'endpoint' as EndpointId,
    image,
    args: '',
  }
}

const routes = (folders: Driver, containers: Driver) => [
  { takes: (image: string) => image.startsWith('dir:'), driver: folders },
  { takes: () => true, driver: containers },
]

function machine() {
  const notifier = createNotifier()
  const fleets = { process: new MockFleet(), docker: new MockFleet() }
  const open = () => {
    const opened = (name: 'process' | 'docker') => {
      const capacity = (running: number) => ({ freeWorkers: MAX - running, bound: name })
      return Object.defineProperty(fleets[name].driver({ notifier, capacity }), 'name', { value: name })
    }
    return createRoutedDriver(routes(opened('process'), opened('docker')), MAX)
  }
  return { fleets, open }
}

test('folders run as processes and everything else in containers, and both count towards the limit', async () => {
  const { fleets, open } = machine()
  const driver = open()
  assert.deepEqual([driver.nameFor('dir:app'), driver.nameFor('python:3')], ['process', 'docker'])
  await driver.start(spec('a', 'dir:app'))
  await driver.start(spec('b', 'python:3'))
  assert.deepEqual([fleets.process.running(), fleets.docker.running()], [['a'], ['b']])
  const { freeWorkers, bound } = await driver.capacity()
  assert.equal(freeWorkers, MAX - 2)
  assert.match(bound, /5 workers/)
  await driver.terminate(id('a'))
  await driver.kill(id('b'))
  for (const name of ['a', 'b']) assert.equal((await driver.observe(id(name))).state, 'exited')
  assert.deepEqual([fleets.process.terminated.size, fleets.docker.killed.size], [1, 1])
})

const OFF = { kind: 'workers_off', problem: 'they are off' } as const

test('where containers are off, processes have all the room', async () => {
  const { fleets } = machine()
  const folders = fleets.process.driver({ notifier: createNotifier() })
  const driver = createRoutedDriver(routes(folders, createNoDriver(OFF)), MAX)
  assert.equal((await driver.capacity()).freeWorkers, MAX)
  assert.deepEqual(await driver.check('python:3', ''), OFF)
})

test('after a restart each worker is found again by the driver that was recorded with it', async () => {
  const { fleets, open } = machine()
  const first = open()
  const handle = await first.start(spec('a', 'python:3'))
  const next = open()
  assert.equal((await next.observe(id('a'))).state, 'exited')
  assert.equal(await next.adopt(id('a'), handle, 'none'), false)
  assert.equal(await next.adopt(id('a'), handle, 'docker'), true)
  assert.deepEqual(await next.observe(id('a')), { state: 'running' })
  await assert.rejects(next.release(id('a')), { code: 'conflict' })
  await next.kill(id('a'))
  await next.release(id('a'))
  assert.deepEqual(fleets.docker.left(), [])
})

test('a worker of an earlier run is released by the driver that started it', async () => {
  const { fleets, open } = machine()
  const driver = open()
  await driver.start(spec('a', 'dir:app'))
  fleets.process.exit(id('a'))
  await open().release(id('a'))
  assert.deepEqual(fleets.process.left(), [])
})
