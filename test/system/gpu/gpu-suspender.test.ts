/** Suspending CUDA processes by a driver library for tests, which also fails in the ways that drivers do. */
import assert from 'node:assert/strict'
import { ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { describeLack, type ProcessStart, type SuspendOutcome } from '../../../src/core/hardware/gpu-suspension.ts'
import { readProcess } from '../../../src/drivers/base/process-table.ts'
import type { ProcessFamily } from '../../../src/ports/gpu-suspender.ts'
import { CARD, FakeGpus, type FakeWorker, MIB, noFakeGpus, unheld } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { removeFolder } from '../../support/remove-folder.ts'

const LOCK_MS = 5_000
/** Time for a call where one should hang. */
const SHORT_MS = patient(700)

type Suspended = SuspendOutcome & { outcome: 'suspended' }

async function suspended(gpus: FakeGpus, worker: { family: ProcessFamily }): Promise<Suspended> {
  const outcome = await gpus.suspender().suspend(worker.family, LOCK_MS)
  assert.equal(outcome.outcome, 'suspended', JSON.stringify(outcome))
  return outcome as Suspended
}

async function usedMib(gpus: FakeGpus): Promise<number> {
  const { cards } = await gpus.meter.measure(new Set())
  return cards[0]!.usedBytes / MIB
}

/** A family that changes: each look at its processes calls the next function, and the last one from then on. */
function changingFamily(...looks: (() => readonly ProcessStart[])[]): ProcessFamily {
  return unheld(async () => (looks.length > 1 ? looks.shift()! : looks[0]!)())
}

function unlistable(): never {
  throw new Error('EMFILE: too many open files')
}

/** From now on no process can be started, as at the limit of open files: Node gives it no streams then. */
function refuseStarts(context: TestContext): void {
  const starter = ChildProcess.prototype as unknown as { spawn(): number }
  context.mock.method(starter, 'spawn', function (this: ChildProcess) {
    process.nextTick(() => this.emit('error', new Error('spawn EMFILE')))
    return -24
  })
}

/** The worker continues as before. */
async function assertRuns(worker: FakeWorker): Promise<void> {
  assert.equal((await worker.ask('sum')).sum, worker.sum)
}

function outcomeProblem(outcome: SuspendOutcome, wanted: 'undone' | 'lost'): string {
  assert.equal(outcome.outcome, wanted, JSON.stringify(outcome))
  return (outcome as { problem: string }).problem
}

describe('suspending', { skip: noFakeGpus, timeout: patient(240_000) }, () => {
  test('a worker of two processes gives its card, another one uses all of it, and it goes on where it was', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(8_000)
    const { pid: child } = await worker.ask('child 4000')
    const { card, processes, isEmpty } = await suspended(gpus, worker)
    assert.deepEqual([card, isEmpty], [CARD, true])
    const bytes = new Map(processes.map(each => [each.pid, each.bytes / MIB]))
    assert.deepEqual(
      bytes,
      new Map([
        [worker.pid, 8_512],
        [child as number, 4_512],
      ]),
    )
    assert.equal(await usedMib(gpus), 0)
    assert.equal(await gpus.suspender().state(worker.pid), 'checkpointed')
    const other = await gpus.worker(24_000)
    await other.kill()
    const resumed = await gpus.suspender().resume(card, processes, worker.family)
    assert.equal(resumed.outcome, 'resumed')
    assert.equal(await gpus.suspender().state(worker.pid), 'running')
    await assertRuns(worker)
  })

  test('a worker that is frozen after its suspend goes on after a thaw and a resume', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    const { card, processes } = await suspended(gpus, worker)
    process.kill(worker.pid, 'SIGSTOP')
    while (readProcess(worker.pid)?.stopped !== true) await new Promise(setImmediate)
    assert.deepEqual(await gpus.suspender().resume(card, processes, worker.family), {
      outcome: 'stopped',
      pid: worker.pid,
    })
    const refuse = () => Promise.reject(new Error('the engine is away'))
    const refused = await gpus.suspender().resume(card, processes, worker.family, refuse)
    assert.deepEqual(refused, { outcome: 'not_thawed', problem: 'the engine is away' })
    const thaw = async () => {
      process.kill(worker.pid, 'SIGCONT')
      while (readProcess(worker.pid)?.stopped !== false) await new Promise(setImmediate)
    }
    assert.equal((await gpus.suspender().resume(card, processes, worker.family, thaw)).outcome, 'resumed')
    await assertRuns(worker)
  })

  test('a family without CUDA has nothing to suspend', async t => {
    const gpus = new FakeGpus(t)
    const own = { pid: process.pid, startTime: readProcess(process.pid)!.startTime }
    const outcome = await gpus.suspender().suspend(
      unheld(async () => [own]),
      LOCK_MS,
    )
    assert.deepEqual(outcome, { outcome: 'nothing' })
  })

  test('memory that the driver lists for a while longer is waited for', async t => {
    const gpus = new FakeGpus(t, { quirks: 'lingers' })
    const { isEmpty, times } = await suspended(gpus, await gpus.worker(100))
    assert.equal(isEmpty, true)
    assert.ok(times.emptyMs > 100, `${times.emptyMs}`)
  })

  test('persistence mode that is off is no obstacle', async t => {
    const gpus = new FakeGpus(t, { persistence: 0 })
    const worker = await gpus.worker(100)
    const { card, processes } = await suspended(gpus, worker)
    assert.equal((await gpus.suspender().resume(card, processes, worker.family)).outcome, 'resumed')
    await assertRuns(worker)
  })
})

describe('a suspend that fails', { skip: noFakeGpus, timeout: patient(240_000) }, () => {
  test('work that outlasts the lock leaves all processes as they were', async t => {
    const gpus = new FakeGpus(t, { quirks: 'busy' })
    const worker = await gpus.worker(100)
    await worker.ask('child 50')
    const problem = outcomeProblem(await gpus.suspender().suspend(worker.family, 200), 'undone')
    assert.match(problem, new RegExp(`lock of process ${worker.pid}: CUDA_ERROR_NOT_READY`))
    await assertRuns(worker)
    gpus.set({})
    await suspended(gpus, worker)
  })

  test('one that its caller breaks off before the first copy leaves all processes as they were', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    await worker.ask('child 50')
    const states: string[] = []
    const proceed = async () => {
      states.push(await gpus.suspender().state(worker.pid))
      return false
    }
    const problem = outcomeProblem(await gpus.suspender().suspend(worker.family, LOCK_MS, { proceed }), 'undone')
    assert.deepEqual([problem, states], ['it got work', ['locked']])
    await assertRuns(worker)
    await suspended(gpus, worker)
  })

  test('a lock whose answer is lost is undone', async t => {
    const gpus = new FakeGpus(t, { quirks: 'lost-lock' })
    const worker = await gpus.worker(100)
    const problem = outcomeProblem(await gpus.suspender(SHORT_MS).suspend(worker.family, 100), 'undone')
    assert.match(problem, /did not answer in time/)
    assert.equal(await gpus.suspender().state(worker.pid), 'running')
    await assertRuns(worker)
  })

  test('a lock that ends its process is a loss', async t => {
    const gpus = new FakeGpus(t, { quirks: 'segv-lock' })
    const worker = await gpus.worker(100)
    const problem = outcomeProblem(await gpus.suspender().suspend(worker.family, LOCK_MS), 'lost')
    assert.equal(problem, `the lock ended process ${worker.pid}`)
  })

  test('a process that begins to use CUDA after the lock undoes it', async t => {
    const gpus = new FakeGpus(t)
    const [worker, late] = [await gpus.worker(100), await gpus.worker(50)]
    const family = changingFamily(
      () => [worker],
      () => [worker, late],
    )
    const problem = outcomeProblem(await gpus.suspender().suspend(family, LOCK_MS), 'undone')
    assert.equal(problem, `process ${late.pid} began to use CUDA in the meantime`)
    await assertRuns(worker)
  })

  test('one that begins to use it after the checkpoint is suspended too', async t => {
    const gpus = new FakeGpus(t)
    const [worker, late] = [await gpus.worker(100), await gpus.worker(50)]
    const family = changingFamily(
      () => [worker],
      () => [worker],
      () => [worker, late],
    )
    const { card, processes } = await suspended(gpus, { family })
    assert.deepEqual(
      processes.map(({ pid }) => pid),
      [worker.pid, late.pid],
    )
    assert.equal((await gpus.suspender().resume(card, processes, family)).outcome, 'resumed')
    await assertRuns(late)
  })

  test('where that one cannot be locked, those that are suspended come back', async t => {
    const gpus = new FakeGpus(t)
    const [worker, late] = [await gpus.worker(100), await gpus.worker(50)]
    const family = changingFamily(
      () => [worker],
      () => [worker],
      () => {
        gpus.set({ quirks: 'busy' })
        return [worker, late]
      },
    )
    outcomeProblem(await gpus.suspender().suspend(family, 200), 'undone')
    await assertRuns(worker)
    await assertRuns(late)
  })

  test('processes that cannot be listed are not touched, locked ones are unlocked, suspended ones come back', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    for (const looks of [0, 1, 2]) {
      const family = changingFamily(...Array.from({ length: looks }, () => () => [worker]), unlistable)
      const problem = outcomeProblem(await gpus.suspender().suspend(family, LOCK_MS), 'undone')
      assert.equal(problem, 'its processes cannot be listed: EMFILE: too many open files')
      assert.equal(await gpus.suspender().state(worker.pid), 'running')
      await assertRuns(worker)
    }
  })

  test('a helper that cannot be started after the lock undoes it: nobody knows who else uses CUDA', async t => {
    const gpus = new FakeGpus(t)
    const [worker, late] = [await gpus.worker(100), await gpus.worker(50)]
    const family = changingFamily(
      () => [worker],
      () => {
        refuseStarts(t)
        return [worker, late]
      },
    )
    const problem = outcomeProblem(await gpus.suspender().suspend(family, LOCK_MS), 'undone')
    assert.equal(problem, 'the process that calls the driver cannot be started: spawn EMFILE')
    await assertRuns(worker)
    t.mock.restoreAll()
    assert.equal(await gpus.suspender().state(worker.pid), 'running')
  })

  test('a machine that cannot start a helper suspends nothing', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    const suspender = gpus.suspender()
    const family = changingFamily(() => {
      refuseStarts(t)
      return [worker]
    })
    assert.deepEqual(await suspender.suspend(family, LOCK_MS), {
      outcome: 'refused',
      lack: { why: 'no_helper', problem: 'the process that calls the driver cannot be started: spawn EMFILE' },
    })
    await assertRuns(worker)
  })

  test('managed memory cannot be copied: the process is lost', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100, 'managed')
    const problem = outcomeProblem(await gpus.suspender().suspend(worker.family, LOCK_MS), 'lost')
    assert.match(problem, /CUDA_ERROR_NOT_SUPPORTED/)
    assert.equal(await gpus.suspender().state(worker.pid), 'failed')
  })

  test('a checkpoint that hangs is given up', async t => {
    const gpus = new FakeGpus(t, { quirks: 'hang-checkpoint' })
    const worker = await gpus.worker(100)
    const problem = outcomeProblem(await gpus.suspender(SHORT_MS).suspend(worker.family, LOCK_MS), 'lost')
    assert.match(problem, /checkpoint of process \d+: the driver did not answer in time/)
  })
})

describe('a resume', { skip: noFakeGpus, timeout: patient(240_000) }, () => {
  test('without room is not tried, since a driver may never try it again, and works later', async t => {
    const gpus = new FakeGpus(t, { quirks: 'sticky-oom' })
    const worker = await gpus.worker(8_000)
    const { card, processes } = await suspended(gpus, worker)
    const other = await gpus.worker(20_000)
    const refused = await gpus.suspender().resume(card, processes, worker.family)
    assert.deepEqual(refused, {
      outcome: 'no_room',
      neededBytes: (8_512 + 256) * MIB,
      freeBytes: (24_576 - 20_512) * MIB,
    })
    await other.kill()
    assert.equal((await gpus.suspender().resume(card, processes, worker.family)).outcome, 'resumed')
    await assertRuns(worker)
  })

  test('of a process that holds imported memory is a loss', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    await worker.ask('import')
    const { card, processes } = await suspended(gpus, worker)
    const outcome = await gpus.suspender().resume(card, processes, worker.family)
    const problem = `restore of process ${worker.pid}: CUDA_ERROR_INVALID_VALUE`
    assert.deepEqual(outcome, { outcome: 'lost', problem })
  })

  test('that hangs is given up', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    const { card, processes } = await suspended(gpus, worker)
    gpus.set({ quirks: 'hang-restore' })
    const outcome = await gpus.suspender(SHORT_MS).resume(card, processes, worker.family)
    assert.equal(outcome.outcome, 'lost')
  })

  test('of a process that was killed during it says so, and its memory is free', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    const { card, processes } = await suspended(gpus, worker)
    await worker.kill()
    const problem = `process ${worker.pid} has ended`
    assert.deepEqual(await gpus.suspender().resume(card, processes, worker.family), { outcome: 'lost', problem })
    assert.equal(await usedMib(gpus), 0)
  })

  test('on a card that is not listed is not tried', async t => {
    const gpus = new FakeGpus(t)
    const worker = await gpus.worker(100)
    const { processes } = await suspended(gpus, worker)
    const outcome = await gpus.suspender().resume('GPU-gone', processes, worker.family)
    assert.deepEqual(outcome, { outcome: 'unknown_room', problem: 'GPU GPU-gone is not listed' })
  })
})

describe('what keeps processes from being suspended', { skip: noFakeGpus, timeout: patient(240_000) }, () => {
  const cases: readonly [string, Record<string, string | number>, RegExp][] = [
    ['a driver that is too old', { driver: '570.86.10' }, /driver 570.86.10 is too old; 575.57 is the first/],
    ['a card in parts', { mig: 1 }, /GPU 0 is partitioned \(MIG\)/],
  ]
  for (const [name, settings, words] of cases) {
    test(name, async t => {
      const gpus = new FakeGpus(t, settings)
      const worker = await gpus.worker(100)
      const outcome = await gpus.suspender().suspend(worker.family, LOCK_MS)
      assert.ok(outcome.outcome === 'refused')
      assert.match(describeLack(outcome.lack), words)
      await assertRuns(worker)
    })
  }

  test('a machine without the library, and one without cards', async t => {
    const gpus = new FakeGpus(t)
    gpus.env.LD_LIBRARY_PATH = '/nowhere'
    const { lack, driver } = await gpus.suspender().readiness()
    assert.deepEqual([lack, driver], [{ why: 'no_library' }, '580.159.04'])
    gpus.env.PATH = '/nowhere'
    assert.deepEqual((await gpus.suspender().readiness()).lack, { why: 'no_card' })
  })

  test('the Multi-Process Service', async t => {
    const gpus = new FakeGpus(t)
    const folder = mkdtempSync(join(tmpdir(), 'runyard-mps-'))
    t.after(() => removeFolder(folder))
    const program = join(folder, 'nvidia-cuda-mps-control')
    writeFileSync(program, '#!/bin/sh\nread line\n', { mode: 0o755 })
    const child = spawn(program, { stdio: ['pipe', 'ignore', 'ignore'] })
    t.after(() => child.kill())
    await new Promise(resolve => child.once('spawn', resolve))
    while (!processName(child.pid!).startsWith('nvidia-cuda-mps')) await new Promise(setImmediate)
    assert.deepEqual((await gpus.suspender().readiness()).lack, { why: 'mps' })
  })

  test('a process on two cards, and one that is stopped', async t => {
    const gpus = new FakeGpus(t, { cards: 2 })
    const worker = await gpus.worker(100)
    const elsewhere = await gpus.worker(100, '', { CUDA_VISIBLE_DEVICES: '1' })
    const both = unheld(async () => [worker, elsewhere])
    const outcome = await gpus.suspender().suspend(both, LOCK_MS)
    assert.deepEqual(outcome, { outcome: 'refused', lack: { why: 'several_cards', count: 2 } })
    process.kill(worker.pid, 'SIGSTOP')
    while (readProcess(worker.pid)?.stopped !== true) await new Promise(setImmediate)
    const stopped = await gpus.suspender().suspend(worker.family, LOCK_MS)
    assert.deepEqual(stopped, { outcome: 'refused', lack: { why: 'stopped', pid: worker.pid } })
  })

  test('memory on the card for which the machine has no room', async t => {
    const gpus = new FakeGpus(t, { cardMib: 8_000_000 })
    const worker = await gpus.worker(7_000_000)
    const outcome = await gpus.suspender().suspend(worker.family, LOCK_MS)
    assert.ok(outcome.outcome === 'refused' && outcome.lack.why === 'host_memory')
    assert.equal(outcome.lack.neededBytes, (7_000_512 + 512) * MIB)
    assert.match(describeLack(outcome.lack), /needs 7001024 MiB of memory, and \d+ MiB are available/)
    await assertRuns(worker)
  })
})

function processName(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'latin1')
}
