/** Addresses that workers call, by the kind of their platform. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import type { ContainerUrls } from '../../../src/services/workers/worker-addresses.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const GATEWAY = 'http://172.18.0.1:41000'

/** An address that exists until a test removes it. */
class Address implements ContainerUrls {
  problem: string | null = null
  currentUrl: string | null = GATEWAY

  async url(): Promise<string> {
    if (this.problem !== null) throw new AppError('unavailable', this.problem)
    return this.currentUrl ?? ''
  }
}

async function restart(rig: Rig, containers: ContainerUrls): Promise<void> {
  await rig.crash()
  await rig.start(undefined, containers)
}

const originOf = (rig: Rig) => new URL(rig.worker(-1).spec.protocolEnv.RUNPOD_WEBHOOK_GET_JOB!).origin

test('a container calls the address for containers, and a process the other one', async t => {
  const rig = await openRig(t)
  await restart(rig, new Address())
  const { worker } = await rig.endpointWithWorker()
  assert.equal(originOf(rig), GATEWAY)
  assert.equal(worker.spec.protocolEnv.NO_PROXY, '172.18.0.1')
  await rig.endpointWithWorker({ template: { imageName: 'dir:/handlers/one' } })
  assert.equal(originOf(rig), 'http://127.0.0.1:9000')
})

test('a container that could not call the server is not started; the reason is shown, and it is tried again', async t => {
  const rig = await openRig(t)
  const address = new Address()
  address.problem = 'containers cannot reach this server: the engine runs without root'
  await restart(rig, address)
  const endpoint = await rig.endpoint({ workersMax: 1 })
  const id = await rig.submit(endpoint)
  await rig.clock.advance(1_000)
  assert.equal(rig.fleet.started.length, 0)
  assert.match(JSON.stringify(await rig.why(endpoint)), /the engine runs without root/)
  address.problem = null
  await rig.clock.advance(60_000)
  assert.equal(await rig.worker(-1).takeJob(), id)
})

test('after a restart containers with the present address stay, and others are replaced', async t => {
  const rig = await openRig(t)
  const address = new Address()
  await restart(rig, address)
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await restart(rig, address)
  await rig.clock.advance(1_100)
  assert.equal((await worker.record()).state, 'STARTING')
  address.currentUrl = 'http://172.19.0.1:41000'
  await restart(rig, address)
  await rig.clock.advance(1_100)
  assert.equal((await worker.record()).stopReason, 'address_changed')
  const id = await rig.submit(endpoint)
  assert.equal(originOf(rig), 'http://172.19.0.1:41000')
  assert.equal(await rig.worker(-1).takeJob(), id)
})
