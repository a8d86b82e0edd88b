import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../src/core/ids.ts'
import type { ObservedExit } from '../../src/core/workers/worker-exit.ts'
import { type TrackedWorker, WorkerRunner } from '../../src/drivers/base/worker-runner.ts'
import type { Observation } from '../../src/ports/driver.ts'

const EXIT: ObservedExit = { code: 0, signal: null, cause: { kind: 'ended' } }

/** Workers that have ended, on a disk that fails once. */
class FailingRunner extends WorkerRunner<TrackedWorker> {
  readonly name = 'failing'
  readonly forgotten: (TrackedWorker | undefined)[] = []

  constructor() {
    super({ maxWorkers: 1, counted: 'workers', unknownExit: EXIT })
  }

  protected async begin(): Promise<string> {
    return 'handle'
  }

  protected workerHandle(): string {
    return 'handle'
  }

  protected async takeOver(worker: WorkerId): Promise<boolean> {
    this.workers.set(worker, { exit: EXIT })
    return false
  }

  protected observation(_: WorkerId, { exit }: TrackedWorker): Observation {
    return { state: 'exited', exit: exit ?? EXIT }
  }

  protected forget(_: WorkerId, known: TrackedWorker | undefined): void {
    this.forgotten.push(known)
    if (this.forgotten.length === 1) throw new Error('the disk failed')
  }
}

test('a release that failed removes the same worker when it is repeated', async () => {
  const runner = new FailingRunner()
  const worker = 'w1' as WorkerId
  await runner.adopt(worker, null)
  await assert.rejects(runner.release(worker), /the disk failed/)
  await runner.release(worker)
  assert.deepEqual(runner.forgotten, [{ exit: EXIT }, { exit: EXIT }])
  await runner.release(worker)
  assert.equal(runner.forgotten.at(-1), undefined)
})
