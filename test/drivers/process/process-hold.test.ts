/** Suspended process workers: their threads are held, so that none begins a call of CUDA until they are resumed. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { signal } from '../../../src/drivers/base/process-table.ts'
import { removeGroup } from '../../../src/drivers/base/thread-hold.ts'
import { Cage } from '../../../src/drivers/cage/cage.ts'
import { findLimits } from '../../../src/drivers/cage/limits.ts'
import { tryCage } from '../../../src/drivers/cage/trial.ts'
import type { ProcessDriver } from '../../../src/drivers/process/process.ts'
import { nextExit } from '../../contract/driver.ts'
import { type Machine, openMachine } from '../../contract/driver-machine.ts'
import { CARD, FakeGpus, type LinkedWorker, noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'

const LOCK_MS = 5_000
const groups = noFakeGpus === false ? findLimits().freezer : null
const skip = noFakeGpus !== false ? noFakeGpus : groups === null ? 'no control groups can be made here' : false

const trial = tryCage()

let machine: Machine
let driver: ProcessDriver
beforeEach(async () => {
  machine = await openMachine()
  driver = machine.driver({ findGroups: () => groups })
})
afterEach(() => machine.close())

function specWithCard() {
  const spec = machine.spec('')
  const gpu = { index: 0, uuid: CARD, type: 'L4', memoryGb: 24 }
  return { ...spec, placement: { ...spec.placement, gpus: [gpu] } }
}

/** A worker with a card whose thread synchronizes in a loop, as threads of a server of models do while it idles. */
async function startWorker(gpus: FakeGpus, context: TestContext) {
  const words = gpus.words(100).map(word => `'${word}'`)
  const spec = specWithCard()
  let handle = ''
  const linked = await gpus.linked(async env => {
    const args = `'${process.execPath}' ${words.join(' ')}`
    handle = await driver.start({ ...spec, args, env: { ...spec.env, ...env } })
  })
  await linked.ask('synchronize')
  context.after(async () => {
    signal(-pid, 'SIGKILL')
    await linked.ended
    removeGroup(group)
  })
  const group = join(groups!, `runyard-${spec.workerId}`)
  const { pid } = JSON.parse(handle) as { pid: number }
  return { ...linked, workerId: spec.workerId, handle, pid, group }
}

async function suspend(gpus: FakeGpus, workerId: WorkerId) {
  const family = (await driver.processes(workerId))!
  const outcome = await gpus.suspender().suspend(family, LOCK_MS, { freeze: () => driver.freeze(workerId) })
  assert.ok(outcome.outcome === 'suspended', JSON.stringify(outcome))
  return { ...outcome, family }
}

async function assertRuns({ ask, sum }: LinkedWorker): Promise<void> {
  assert.equal((await ask('sum')).sum, sum)
  const { turns } = await ask('turns')
  while ((await ask('turns')).turns === turns);
}

describe('a suspended process worker', { skip, timeout: patient(120_000) }, () => {
  test('survives the calls of its own threads, with all that it has started, and goes on where it was', async t => {
    const gpus = new FakeGpus(t)
    const worker = await startWorker(gpus, t)
    const { pid: child } = await worker.ask('child 50')
    const { card, processes, family, holdProblem } = await suspend(gpus, worker.workerId)
    assert.equal(holdProblem, null)
    assert.deepEqual(new Set(processes.map(({ pid }) => pid)), new Set([worker.pid, child as number]))
    for (const { pid } of processes) assert.match(readFileSync(`/proc/${pid}/cgroup`, 'utf8'), /^0::.*\/held$/m)
    // All of it runs again that is not held.
    await driver.thaw(worker.workerId)
    assert.equal(await gpus.suspender().state(worker.pid), 'checkpointed')
    await driver.freeze(worker.workerId)
    const outcome = await gpus.suspender().resume(card, processes, family, () => driver.thaw(worker.workerId))
    assert.equal(outcome.outcome, 'resumed', JSON.stringify(outcome))
    await assertRuns(worker)
    assert.equal(existsSync(join(worker.group, 'held')), false)
    await driver.kill(worker.workerId)
    await worker.ended
  })

  test('that cannot be frozen after its suspend runs as before, and is not held', async t => {
    const gpus = new FakeGpus(t)
    const worker = await startWorker(gpus, t)
    const freeze = () => Promise.reject(new Error('its processes do not come to rest'))
    const family = (await driver.processes(worker.workerId))!
    const outcome = await gpus.suspender().suspend(family, LOCK_MS, { freeze })
    const problem = 'it cannot be frozen: its processes do not come to rest'
    assert.deepEqual(outcome, { outcome: 'undone', problem })
    assert.equal(existsSync(join(worker.group, 'held')), false)
    await assertRuns(worker)
  })

  test('ends where its threads are not held', async t => {
    const gpus = new FakeGpus(t)
    const worker = await startWorker(gpus, t)
    const family = (await driver.processes(worker.workerId))!
    const unheld = { ...family, hold: async () => 'not tried' }
    const outcome = await gpus.suspender().suspend(unheld, LOCK_MS)
    assert.ok(outcome.outcome === 'suspended')
    assert.equal(outcome.holdProblem, 'not tried')
    await worker.ended
  })

  test('is killed when it should end, and leaves no group behind', async t => {
    const gpus = new FakeGpus(t)
    const worker = await startWorker(gpus, t)
    await suspend(gpus, worker.workerId)
    const exit = nextExit(machine.notifier, driver, worker.workerId)
    await driver.terminate(worker.workerId)
    assert.equal((await exit).signal, 'SIGKILL')
    await driver.release(worker.workerId)
    assert.equal(existsSync(worker.group), false)
  })

  test('is resumed by the next server', async t => {
    const gpus = new FakeGpus(t)
    const worker = await startWorker(gpus, t)
    const { card } = await suspend(gpus, worker.workerId)
    driver.close()
    const next = machine.driver({ findGroups: () => groups })
    assert.equal(await next.adopt(worker.workerId, worker.handle), true)
    const family = (await next.processes(worker.workerId))!
    const recovered = await gpus.suspender().recover(card, family, () => next.thaw(worker.workerId))
    assert.ok(recovered.outcome === 'suspended', JSON.stringify(recovered))
    const outcome = await gpus.suspender().resume(card, recovered.processes, family)
    assert.equal(outcome.outcome, 'resumed', JSON.stringify(outcome))
    await assertRuns(worker)
  })

  test('whose server died in the middle is recovered by the next one', async t => {
    const gpus = new FakeGpus(t)
    const worker = await startWorker(gpus, t)
    const family = (await driver.processes(worker.workerId))!
    const held = Promise.withResolvers<void>()
    const rest = Promise.withResolvers<string>()
    const hold = async (threads: readonly number[]) => {
      assert.equal(await family.hold(threads), null)
      held.resolve()
      return rest.promise
    }
    const unfinished = gpus.suspender().suspend({ ...family, hold }, LOCK_MS)
    await held.promise
    driver.close()
    const next = machine.driver({ findGroups: () => groups })
    await next.adopt(worker.workerId, worker.handle)
    const adopted = (await next.processes(worker.workerId))!
    const thaw = () => next.thaw(worker.workerId)
    assert.deepEqual(await gpus.suspender().recover(CARD, adopted, thaw), { outcome: 'running' })
    await assertRuns(worker)
    await next.kill(worker.workerId)
    await worker.ended
    rest.resolve('its server is gone')
    await unfinished
  })

  test('survives in a cage, too', { skip: 'problem' in trial && trial.problem }, async t => {
    assert.ok(!('problem' in trial))
    const gpus = new FakeGpus(t)
    const shared = gpus.shared()
    const places = { hidden: [], readable: [], writable: [shared], diskGb: 0, layers: false, network: null }
    const cage = new Cage({ ...trial, limits: findLimits(), ...places })
    driver = machine.driver({ cage, findGroups: () => null })
    const spec = specWithCard()
    const { workerId } = spec
    const worker = await gpus.linked(async env => {
      const args = `'${process.execPath}' --disable-warning=ExperimentalWarning '${shared}/fake-worker.ts' 100`
      await driver.start({ ...spec, args, env: { ...spec.env, ...env } })
    }, shared)
    await worker.ask('synchronize')
    const { card, processes, family, holdProblem } = await suspend(gpus, workerId)
    assert.deepEqual([processes.length, holdProblem], [1, null])
    const outcome = await gpus.suspender().resume(card, processes, family, () => driver.thaw(workerId))
    assert.equal(outcome.outcome, 'resumed', JSON.stringify(outcome))
    await assertRuns(worker)
    await suspend(gpus, workerId)
    const exit = nextExit(machine.notifier, driver, workerId)
    await driver.terminate(workerId)
    await exit
    await driver.release(workerId)
    assert.equal(existsSync(join(groups!, `runyard-${workerId}`)), false)
  })
})
