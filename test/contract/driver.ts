/** Contract of every driver. A library: the test file of each driver calls it with a way to make one. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { SocketAddress } from '../../src/core/workers/socket-address.ts'
import { startFailureText, WorkerStartError } from '../../src/core/workers/start-failure.ts'
import { type ObservedExit, observedExitText } from '../../src/core/workers/worker-exit.ts'
import type { Driver, WorkerSpec } from '../../src/ports/driver.ts'
import type { Notifier } from '../../src/ports/notifier.ts'
import { statusAt } from '../support/answers.ts'
import { patient } from '../support/patience.ts'
import { platformContract } from './driver-platform.ts'

/**
 * Behavior of a worker of the contract: it ends on the stop signal, it ignores the signal, it ends at once with code
 * 3, or it responds to every request with 200 at its PORT and PORT_HEALTH.
 */
export type Behavior = 'obedient' | 'stubborn' | 'failing' | 'serving'

/** A machine with one driver on it. */
export interface DriverHarness {
  readonly notifier: Notifier
  readonly driver: Driver
  /** Something to start; a new worker at each call. */
  spec(behavior: Behavior, changes?: Partial<WorkerSpec>): WorkerSpec
  /** True if workers share the ports of the machine, so that no two can have the same. */
  readonly sharesPorts: boolean
  /** True if workers that serve really listen. */
  readonly answers: boolean
  /** An image and arguments that can never be started. */
  readonly unusable: { readonly image: string; readonly args: string }
  /** Waits until a started worker does as it should. */
  ready(worker: WorkerId): Promise<void>
  /** Waits until a worker has noticed that it was asked to end. How often it was so far. */
  asked(worker: WorkerId): Promise<number>
  /** True if all of a worker is frozen, without a call of the driver. */
  frozen(worker: WorkerId): Promise<boolean>
  /** Waits until a `stubborn` worker responds to a signal that is sent now. */
  responds(worker: WorkerId): Promise<void>
  /** The server dies without a word and another one starts: a new driver on the same machine. */
  restart(): Promise<Driver>
  /** Ends all that still runs. */
  close(): Promise<void>
  /** The hand of the platform that places workers; left out for a machine. */
  readonly platform?: PlatformHand
}

/** A platform with machines of its own, as the contract needs it. */
export interface PlatformHand {
  /** A worker to start that finds no place: no node has room for it now, or no node is of its kind. */
  homeless(kind: 'no_room' | 'no_such_node'): Promise<WorkerSpec>
  /** Gives one that finds no room the room that it needs. */
  makeRoom(worker: WorkerId): Promise<void>
  /**
   * Takes a worker away as somebody other than its server does, such as for the drain of its node.
   * It ends if it is `obedient`.
   */
  remove(worker: WorkerId): Promise<void>
}

/** Waits until `condition` holds, looking again at each notification about workers. */
export async function untilFleet(notifier: Notifier, condition: () => Promise<boolean>): Promise<void> {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const unsubscribe = notifier.subscribe('fleet', resolve)
    try {
      if (await condition()) return
      await promise
    } finally {
      unsubscribe()
    }
  }
}

/** Exit of a worker, once it ended. */
export async function nextExit(notifier: Notifier, driver: Driver, worker: WorkerId): Promise<ObservedExit> {
  await untilFleet(notifier, async () => (await driver.observe(worker)).state === 'exited')
  const seen = await driver.observe(worker)
  assert.equal(seen.state, 'exited')
  return (seen as Extract<typeof seen, { state: 'exited' }>).exit
}

/** The error that a driver throws for a worker that it cannot start. */
export function isRefusal(thrown: unknown): thrown is AppError {
  return thrown instanceof AppError && thrown.code === 'invalid' && thrown.message.length > 10
}

/** Abilities that some drivers lack. */
export interface DriverTraits {
  /** True if it can freeze workers; true when left out. */
  readonly freezes?: boolean
  /**
   * True for a platform that places workers, whose harness has {@link DriverHarness.platform}; false when left out.
   */
  readonly places?: boolean
  /**
   * True if its calls mostly wait, so that parts of the contract run side by side, each on a machine of its own;
   * false when left out.
   */
  readonly waits?: boolean
}

/** Runs the contract. */
export function driverContract(name: string, open: () => Promise<DriverHarness>, traits: DriverTraits = {}): void {
  const part = (about: string, contract: (harness: () => DriverHarness) => void) =>
    describe(about, { concurrency: 1 }, () => {
      let harness: DriverHarness
      beforeEach(async () => {
        harness = await open()
      })
      afterEach(() => harness.close())
      contract(() => harness)
    })
  describe(`the ${name} driver`, { timeout: patient(280_000), concurrency: traits.waits === true ? 5 : 1 }, () => {
    part('ends of workers', endContract)
    part('starts and adoptions', startContract)
    part('freezes', (traits.freezes ?? true) ? freezeContract : withoutFreezes)
    part('addresses', addressContract)
    part('places', harness => {
      const placedBy = traits.places === true ? 'platform' : 'machine'
      test(`workers get their place from a ${placedBy}`, () => {
        assert.equal(harness().driver.placedBy(harness().spec('obedient').image), placedBy)
        assert.equal(harness().driver.placedBy(''), placedBy)
      })
      if (traits.places === true) platformContract(harness)
    })
  })
}

async function start(harness: DriverHarness, behavior: Behavior) {
  const spec = harness.spec(behavior)
  const handle = await harness.driver.start(spec)
  return { spec, handle, worker: spec.workerId }
}

async function startReady(harness: DriverHarness, behavior: Behavior) {
  const started = await start(harness, behavior)
  await harness.ready(started.worker)
  return started
}

/** Workers that end by themselves, when they are asked, and when they are killed. */
function endContract(harness: () => DriverHarness): void {
  test('a started worker runs until it is stopped, and its exit is reported', async () => {
    const { worker, handle } = await startReady(harness(), 'obedient')
    assert.notEqual(handle, '')
    assert.equal((await harness().driver.observe(worker)).state, 'running')
    await harness().driver.terminate(worker)
    const exit = await nextExit(harness().notifier, harness().driver, worker)
    assert.deepEqual([exit.code, exit.signal], [0, null])
    assert.match(observedExitText(exit), /code 0/)
  })

  test('the end of a worker by itself is reported with its code', async () => {
    const { worker } = await start(harness(), 'failing')
    const exit = await nextExit(harness().notifier, harness().driver, worker)
    assert.deepEqual([exit.code, exit.signal], [3, null])
    assert.match(observedExitText(exit), /code 3/)
  })

  test('a worker that does not end when asked runs on until it is killed', async () => {
    const { worker } = await startReady(harness(), 'stubborn')
    await harness().driver.terminate(worker)
    await harness().asked(worker)
    assert.equal((await harness().driver.observe(worker)).state, 'running')
    await harness().driver.kill(worker)
    const exit = await nextExit(harness().notifier, harness().driver, worker)
    assert.deepEqual([exit.code, exit.signal], [null, 'SIGKILL'])
    assert.match(observedExitText(exit), /SIGKILL/)
  })

  test('a worker that is stopped twice receives one signal', async () => {
    const { worker } = await startReady(harness(), 'stubborn')
    await Promise.all([harness().driver.terminate(worker), harness().driver.terminate(worker)])
    assert.equal(await harness().asked(worker), 1)
    await harness().driver.terminate(worker)
    assert.equal(await harness().asked(worker), 1)
  })

  test('every call can be repeated after the end', async () => {
    const { worker } = await startReady(harness(), 'obedient')
    await harness().driver.kill(worker)
    await nextExit(harness().notifier, harness().driver, worker)
    await harness().driver.freeze(worker)
    await harness().driver.thaw(worker)
    await harness().driver.terminate(worker)
    await harness().driver.kill(worker)
    assert.equal((await harness().driver.observe(worker)).state, 'exited')
    await harness().driver.release(worker)
    await harness().driver.release(worker)
    assert.equal((await harness().driver.observe(worker)).state, 'exited')
  })

  test('a worker that runs cannot be released', async () => {
    const { worker } = await startReady(harness(), 'obedient')
    await assert.rejects(harness().driver.release(worker), { code: 'conflict' })
    assert.equal((await harness().driver.observe(worker)).state, 'running')
  })
}

/** Workers that are started, and that the next server adopts. */
function startContract(harness: () => DriverHarness): void {
  test('starting the same worker again starts nothing and gives the same handle', async () => {
    const spec = harness().spec('obedient')
    const handles = await Promise.all([harness().driver.start(spec), harness().driver.start(spec)])
    assert.equal(handles[0], handles[1])
    const { freeWorkers } = await harness().driver.capacity()
    assert.equal(await harness().driver.start(spec), handles[0])
    assert.equal((await harness().driver.capacity()).freeWorkers, freeWorkers)
  })

  test('a worker that was never started does not exist, and every call about it does nothing', async () => {
    const { workerId } = harness().spec('obedient')
    await harness().driver.freeze(workerId)
    await harness().driver.thaw(workerId)
    await harness().driver.terminate(workerId)
    await harness().driver.kill(workerId)
    await harness().driver.release(workerId)
    assert.equal(await harness().driver.adopt(workerId, null), false)
    const seen = await harness().driver.observe(workerId)
    assert.equal(seen.state, 'exited')
  })

  test('a worker is adopted with its handle by the next server', async () => {
    const { worker, handle } = await startReady(harness(), 'obedient')
    const next = await harness().restart()
    assert.equal((await next.observe(worker)).state, 'exited', 'a driver knows only what it was told')
    assert.equal(await next.adopt(worker, handle), true)
    assert.equal(await next.adopt(worker, handle), true)
    assert.equal((await next.observe(worker)).state, 'running')
    await next.terminate(worker)
    const exit = await nextExit(harness().notifier, next, worker)
    assert.notEqual(observedExitText(exit), '')
  })

  test('a worker whose handle was lost with the server is adopted too', async () => {
    const { worker } = await startReady(harness(), 'stubborn')
    const next = await harness().restart()
    assert.equal(await next.adopt(worker, null), true)
    assert.equal((await next.observe(worker)).state, 'running')
    await next.kill(worker)
    await nextExit(harness().notifier, next, worker)
  })

  test('a worker that has ended is not adopted, and neither is an invalid handle', async () => {
    const ended = await startReady(harness(), 'obedient')
    await harness().driver.kill(ended.worker)
    await nextExit(harness().notifier, harness().driver, ended.worker)
    const running = await startReady(harness(), 'obedient')
    const next = await harness().restart()
    assert.equal(await next.adopt(ended.worker, ended.handle), false)
    assert.equal(await next.adopt(ended.worker, null), false)
    assert.equal(await next.adopt(running.spec.workerId, running.handle), true)
    assert.equal(await next.adopt(harness().spec('obedient').workerId, 'no handle'), false)
  })

  test('a worker that can never start is refused with a message, when it is saved and when it is started', async () => {
    const usable = harness().spec('obedient')
    assert.equal(await harness().driver.check(usable.image, usable.args), null)
    const { image, args } = harness().unusable
    const failure = await harness().driver.check(image, args)
    assert.ok(failure !== null && startFailureText(failure).length > 10)
    await assert.rejects(harness().driver.start({ ...usable, image, args }), thrown => {
      assert.ok(isRefusal(thrown) && thrown instanceof WorkerStartError)
      assert.deepEqual([thrown.failure, thrown.message], [failure, startFailureText(failure)])
      return true
    })
    assert.equal((await harness().driver.observe(usable.workerId)).state, 'exited')
    await harness().driver.start(usable)
  })

  test('the room for workers shrinks with each one and says what bounds it', async () => {
    const before = await harness().driver.capacity()
    assert.notEqual(before.bound, '')
    assert.ok(before.freeWorkers !== null)
    const { worker } = await startReady(harness(), 'obedient')
    assert.equal((await harness().driver.capacity()).freeWorkers, before.freeWorkers - 1)
    await harness().driver.kill(worker)
    await nextExit(harness().notifier, harness().driver, worker)
    assert.deepEqual(await harness().driver.capacity(), before)
  })
}

/** Workers that are frozen and thawed. */
function freezeContract(harness: () => DriverHarness): void {
  test('a frozen worker does nothing until it is thawed, and is there all the time', async () => {
    const { driver, frozen, responds } = harness()
    const { worker } = await startReady(harness(), 'stubborn')
    for (let round = 0; round < 3; round += 1) {
      await Promise.all([driver.freeze(worker), driver.freeze(worker)])
      assert.equal(await frozen(worker), true)
      await driver.freeze(worker)
      assert.equal((await driver.observe(worker)).state, 'running')
      await driver.thaw(worker)
      assert.equal(await frozen(worker), false)
      await driver.thaw(worker)
      await responds(worker)
    }
    await driver.kill(worker)
  })

  test('a worker that is thawed without having been frozen goes on', async () => {
    const { worker } = await startReady(harness(), 'stubborn')
    await harness().driver.thaw(worker)
    await harness().responds(worker)
    await harness().driver.kill(worker)
  })

  test('the last of several calls to freeze and thaw a worker counts', async () => {
    const { driver, frozen, responds } = harness()
    const { worker } = await startReady(harness(), 'stubborn')
    await Promise.all([driver.freeze(worker), driver.thaw(worker), driver.freeze(worker)])
    assert.equal(await frozen(worker), true)
    await Promise.all([driver.thaw(worker), driver.freeze(worker), driver.thaw(worker)])
    await responds(worker)
    await driver.kill(worker)
  })

  test('a frozen worker that is asked to end does so by itself', async () => {
    const { driver, notifier } = harness()
    const { worker } = await startReady(harness(), 'obedient')
    await driver.freeze(worker)
    await driver.terminate(worker)
    const exit = await nextExit(notifier, driver, worker)
    assert.deepEqual([exit.code, exit.signal], [0, null])
  })

  test('a frozen worker that does not end when asked runs on, and is not frozen again', async () => {
    const { driver, frozen, asked, responds } = harness()
    const { worker } = await startReady(harness(), 'stubborn')
    await driver.freeze(worker)
    await driver.terminate(worker)
    assert.equal(await asked(worker), 1)
    await driver.freeze(worker)
    assert.equal(await frozen(worker), false)
    await responds(worker)
    await driver.terminate(worker)
    assert.equal(await asked(worker), 1)
    await driver.kill(worker)
  })

  test('a frozen worker can be killed', async () => {
    const { driver, notifier } = harness()
    const { worker } = await startReady(harness(), 'stubborn')
    await driver.freeze(worker)
    await driver.kill(worker)
    const exit = await nextExit(notifier, driver, worker)
    assert.deepEqual([exit.code, exit.signal], [null, 'SIGKILL'])
  })

  test('a frozen worker is adopted frozen, and the next server thaws it', async () => {
    const { driver, frozen, responds, restart } = harness()
    const [known, lost] = [await startReady(harness(), 'stubborn'), await startReady(harness(), 'stubborn')]
    for (const { worker } of [known, lost]) await driver.freeze(worker)
    const next = await restart()
    assert.equal(await next.adopt(known.worker, known.handle), true)
    assert.equal(await next.adopt(lost.worker, null), true)
    for (const { worker } of [known, lost]) {
      assert.equal((await next.observe(worker)).state, 'running')
      assert.equal(await frozen(worker), true)
    }
    // The next server makes true what is written, whether it was already or not.
    await next.freeze(known.worker)
    assert.equal(await frozen(known.worker), true)
    for (const { worker } of [known, lost]) {
      await next.thaw(worker)
      await responds(worker)
      await next.kill(worker)
    }
  })

  test('a frozen worker that was adopted ends when it is asked', async () => {
    const { driver, notifier, restart } = harness()
    const { worker, handle } = await startReady(harness(), 'obedient')
    await driver.freeze(worker)
    const next = await restart()
    await next.adopt(worker, handle)
    await next.terminate(worker)
    await nextExit(notifier, next, worker)
  })
}

/** Workers of a driver that cannot freeze any. */
function withoutFreezes(harness: () => DriverHarness): void {
  test('a worker that cannot be frozen runs on, and the caller receives an error', async () => {
    const { driver, responds } = harness()
    const { worker } = await startReady(harness(), 'stubborn')
    await assert.rejects(driver.freeze(worker), { code: 'unavailable' })
    await driver.thaw(worker)
    assert.equal((await driver.observe(worker)).state, 'running')
    await responds(worker)
    await driver.kill(worker)
  })
}

/** Addresses of workers that serve. */
function addressContract(harness: () => DriverHarness): void {
  const startServing = async (port: number, healthPort: number) => {
    const spec = harness().spec('serving', { serves: { port, healthPort } })
    const handle = await harness().driver.start(spec)
    const served = await harness().driver.address(spec.workerId)
    assert.ok(served !== null, 'it has an address as soon as it was started')
    await harness().ready(spec.workerId)
    return { worker: spec.workerId, handle, served }
  }
  const answers = async (address: SocketAddress) => {
    if (harness().answers) assert.equal(await statusAt(address), 200)
  }

  test('a worker that serves answers at its address for as long as it runs', async () => {
    const { worker, served } = await startServing(8000, 8001)
    assert.notDeepEqual(served.traffic, served.health)
    await answers(served.traffic)
    await answers(served.health)
    assert.deepEqual(await harness().driver.address(worker), served)
    await harness().driver.kill(worker)
    await nextExit(harness().notifier, harness().driver, worker)
    assert.equal(await harness().driver.address(worker), null)
    await harness().driver.release(worker)
    assert.equal(await harness().driver.address(worker), null)
  })

  test('a worker with one port for both has one address', async () => {
    const { worker, served } = await startServing(80, 80)
    assert.deepEqual(served.traffic, served.health)
    await answers(served.traffic)
    await harness().driver.kill(worker)
  })

  test('no two workers have the same address', async () => {
    const all = await Promise.all([startServing(80, 80), startServing(80, 81), startServing(80, 80)])
    const places = all.map(({ served }) => served.traffic)
    const texts = places.map(({ host, port }) => (harness().sharesPorts ? String(port) : `${host}:${port}`))
    assert.equal(new Set(texts).size, 3, texts.join(', '))
    await Promise.all(places.map(answers))
    for (const { worker } of all) await harness().driver.kill(worker)
  })

  test('the next server finds the same address, whether it knows the handle or not', async () => {
    const [known, lost] = [await startServing(80, 81), await startServing(80, 80)]
    const next = await harness().restart()
    assert.equal(await next.address(known.worker), null)
    await next.adopt(known.worker, known.handle)
    await next.adopt(lost.worker, null)
    for (const { worker, served } of [known, lost]) {
      assert.deepEqual(await next.address(worker), served)
      await answers(served.traffic)
    }
    const another = await startServing(80, 81)
    for (const { served } of [known, lost]) {
      assert.notDeepEqual(another.served.traffic, served.traffic)
      assert.notDeepEqual(another.served.health, served.health)
    }
    for (const { worker } of [known, lost, another]) await next.kill(worker)
    await nextExit(harness().notifier, next, known.worker)
    assert.equal(await next.address(known.worker), null)
  })

  test('a worker that does not serve has no address', async () => {
    const spec = harness().spec('obedient')
    await harness().driver.start(spec)
    assert.equal(await harness().driver.address(spec.workerId), null)
    await harness().driver.kill(spec.workerId)
  })
}
