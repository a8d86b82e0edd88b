/** Contract of drivers of platforms that place workers by themselves. A part of the contract in driver.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../src/core/ids.ts'
import type { Driver, Observation } from '../../src/ports/driver.ts'
import { type DriverHarness, nextExit, type PlatformHand, untilFleet } from './driver.ts'

type Seen<State extends Observation['state']> = Extract<Observation, { readonly state: State }>

/** Runs this part. */
export function platformContract(harness: () => DriverHarness): void {
  const hand = (): PlatformHand => {
    const { platform } = harness()
    assert.ok(platform !== undefined, 'the harness has no hand of the platform')
    return platform
  }
  /** Observation of a worker, once it is in this state. */
  const seenAs = async <State extends Observation['state']>(state: State, worker: WorkerId, driver?: Driver) => {
    const by = driver ?? harness().driver
    await untilFleet(harness().notifier, async () => (await by.observe(worker)).state === state)
    return (await by.observe(worker)) as Seen<State>
  }
  /** A worker that waits for a place, and its start. */
  const startHomeless = async (kind: 'no_room' | 'no_such_node' = 'no_room') => {
    const spec = await hand().homeless(kind)
    let isOver = false
    const start = harness().driver.start(spec)
    const over = start.then(
      () => (isOver = true),
      () => (isOver = true),
    )
    const { reason } = await seenAs('unplaced', spec.workerId)
    return { worker: spec.workerId, start, over, reason, isOver: () => isOver }
  }

  test('a worker that runs has a place with a name', async () => {
    const spec = harness().spec('obedient')
    await harness().driver.start(spec)
    await harness().ready(spec.workerId)
    const { place } = await seenAs('running', spec.workerId)
    assert.ok(place !== undefined && place.node !== '')
    assert.equal(place.gpuCount, spec.wish.gpuCount)
    await harness().driver.kill(spec.workerId)
  })

  test('a worker without room waits as long as it takes, says why, and starts when there is room', async () => {
    const { worker, start, reason, isOver } = await startHomeless()
    assert.equal(reason.kind, 'no_room')
    assert.doesNotMatch(reason.said, /\n/)
    assert.equal(await harness().driver.address(worker), null)
    assert.equal(isOver(), false)
    await hand().makeRoom(worker)
    assert.notEqual(await start, '')
    assert.ok((await seenAs('running', worker)).place !== undefined)
    await harness().ready(worker)
    await harness().driver.kill(worker)
  })

  test('a kind of node that does not exist is distinguished from a lack of room', async () => {
    const { worker, over, reason } = await startHomeless('no_such_node')
    assert.equal(reason.kind, 'no_such_node')
    await harness().driver.kill(worker)
    await over
  })

  test('a worker that waits for a place ends at once when it is asked, and its start is refused', async () => {
    for (const way of ['terminate', 'kill'] as const) {
      const { worker, start } = await startHomeless()
      const refused = assert.rejects(start)
      await harness().driver[way](worker)
      await refused
      const { exit } = await seenAs('exited', worker)
      assert.notEqual(exit.cause.kind, 'reclaimed', 'this server ended it')
      await harness().driver.release(worker)
    }
  })

  test('a worker that waits for a place is found by the next server, and goes on to start', async () => {
    const { worker, reason } = await startHomeless()
    const next = await harness().restart()
    assert.equal(await next.adopt(worker, null), true)
    assert.equal((await seenAs('unplaced', worker, next)).reason.kind, reason.kind)
    await hand().makeRoom(worker)
    assert.ok((await seenAs('running', worker, next)).place !== undefined)
    await next.kill(worker)
    await nextExit(harness().notifier, next, worker)
  })

  test('a worker that somebody else takes away is seen to be, and who is to blame', async () => {
    const spec = harness().spec('obedient')
    const { notifier, driver, ready } = harness()
    await driver.start(spec)
    await ready(spec.workerId)
    await hand().remove(spec.workerId)
    const { cause } = await nextExit(notifier, driver, spec.workerId)
    assert.equal(cause.kind, 'reclaimed')
    await driver.release(spec.workerId)
    await driver.release(spec.workerId)
    assert.equal(await driver.adopt(spec.workerId, null), false)
  })

  test('a worker that is taken away while it waits for a place has not failed to start', async () => {
    const { worker, start } = await startHomeless()
    const refused = assert.rejects(start)
    await hand().remove(worker)
    await refused
    assert.equal((await seenAs('exited', worker)).exit.cause.kind, 'reclaimed')
    await harness().driver.release(worker)
  })

  test('what this server ends itself was not taken away', async () => {
    const { notifier, driver, ready, spec } = harness()
    const [asked, killed] = [spec('obedient'), spec('stubborn')]
    for (const one of [asked, killed]) {
      await driver.start(one)
      await ready(one.workerId)
    }
    await driver.terminate(asked.workerId)
    await driver.kill(killed.workerId)
    for (const { workerId } of [asked, killed]) {
      assert.notEqual((await nextExit(notifier, driver, workerId)).cause.kind, 'reclaimed')
    }
  })
}
