import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { observedExitText } from '../../src/core/workers/worker-exit.ts'
import { MockFleet, type MockFleetHooks } from '../../src/drivers/mock/mock.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { PLAIN_WORKER } from '../support/worker-spec.ts'
import { type DriverHarness, driverContract, nextExit, type PlatformHand } from './driver.ts'

const NODE = { node: 'n1', gpuType: null, gpuCount: 0 }
const UNUSABLE = { kind: 'image_invalid', image: 'unusable' } as const

/** A fleet, as a machine or as a platform. */
async function open(hooks: MockFleetHooks = {}): Promise<DriverHarness & { readonly fleet: MockFleet }> {
  const notifier = createNotifier()
  const behaviors = new Map<WorkerId, string>()
  const asked: WorkerId[] = []
  const fleet = new MockFleet({
    ...hooks,
    onStart(spec) {
      behaviors.set(spec.workerId, spec.args)
      if (spec.args === 'failing') fleet.exit(spec.workerId, { code: 3 })
    },
    onTerminate(worker) {
      asked.push(worker)
      if (behaviors.get(worker) !== 'stubborn') fleet.exit(worker)
    },
  })
  const next = () =>
    fleet.driver({
      notifier,
      capacity: running => ({ freeWorkers: 8 - running, bound: 'the test' }),
      check: image => (image === 'unusable' ? UNUSABLE : null),
    })
  let driver = next()
  let count = 0
  return {
    notifier,
    get driver() {
      return driver
    },
    spec: (behavior, changes) => ({ ...spec(`worker${count++}`, behavior), ...changes }),
    sharesPorts: true,
    answers: false,
    unusable: { image: 'unusable', args: '' },
    ready: async () => {},
    async asked(worker) {
      assert.ok(fleet.terminated.has(worker))
      return asked.filter(id => id === worker).length
    },
    frozen: async worker => fleet.frozen.has(worker),
    async responds(worker) {
      assert.ok(fleet.running().includes(worker) && !fleet.frozen.has(worker))
    },
    restart: async () => {
      driver.close()
      driver = next()
      return driver
    },
    close: async () => driver.close(),
    fleet,
  }
}

driverContract('mock', () => open())

driverContract(
  'mock platform',
  async () => {
    const arrival = ({ env }: WorkerSpec) =>
      env.HOMELESS === undefined
        ? NODE
        : ({ kind: env.HOMELESS as 'no_room', said: '0/3 nodes are available' } as const)
    const harness = await open({ arrival })
    const { fleet } = harness
    const platform: PlatformHand = {
      homeless: async kind => harness.spec('obedient', { env: { HOMELESS: kind } }),
      makeRoom: async worker => fleet.place(worker, NODE),
      async remove(worker) {
        const why = { kind: 'deleted', said: '' } as const
        fleet.leave(worker, why)
        fleet.reclaim(worker, why)
      },
    }
    return Object.defineProperties(harness, { platform: { value: platform } }) as typeof harness & {
      readonly platform: PlatformHand
    }
  },
  { places: true },
)

test('the next start of the mock fails on request, and only that', async () => {
  const driver = new MockFleet().driver({ notifier: createNotifier() })
  driver.fleet.failNextStart({ kind: 'image_vanished', image: 'a' })
  await assert.rejects(driver.start(spec('a', '')), {
    code: 'invalid',
    message: "image 'a' was downloaded but does not exist",
  })
  await driver.start(spec('a', ''))
  assert.deepEqual(driver.fleet.running(), ['a'])
  assert.equal(driver.fleet.started.length, 1)
})

test('a mock worker without a script ends when it is asked, and by the hand of the test', async () => {
  const notifier = createNotifier()
  const driver = new MockFleet().driver({ notifier })
  for (const name of ['a', 'b', 'c']) await driver.start(spec(name, ''))
  await driver.terminate('a' as WorkerId)
  driver.fleet.exit('b' as WorkerId, { signal: 'SIGSEGV' })
  await driver.kill('c' as WorkerId)
  assert.equal(observedExitText(await nextExit(notifier, driver, 'a' as WorkerId)), 'exited with code 0')
  assert.equal(observedExitText(await nextExit(notifier, driver, 'b' as WorkerId)), 'was killed by SIGSEGV')
  assert.deepEqual([...driver.fleet.terminated, ...driver.fleet.killed], ['a', 'c'])
})

test('a server that dies in the middle of a start leaves a worker that the next one finds', async () => {
  const never = new Promise<void>(() => {})
  const fleet = new MockFleet({ onStart: () => never })
  const first = fleet.driver({ notifier: createNotifier() })
  void first.start(spec('a', ''))
  await Promise.resolve()
  first.close()
  const next = fleet.driver({ notifier: createNotifier() })
  assert.equal(await next.adopt('a' as WorkerId, null), true)
})

function spec(name: string, args: string): WorkerSpec {
  const workerId = name as WorkerId
  return {
    ...PLAIN_WORKER,
    workerId,
    endpointId: 'endpoint' as EndpointId,
    image: 'image',
    args,
  }
}
