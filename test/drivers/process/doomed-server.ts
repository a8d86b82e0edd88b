/** A server for the tests that is killed: starts one worker and waits. Its one argument is JSON. */
import { ProcessDriver, type ProcessDriverOptions } from '../../../src/drivers/process/process.ts'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { createWorkerPipes } from '../../../src/pump/worker-pipes.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { createNotifier } from '../../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../../src/system/worker-logs/worker-logs.ts'

const { options, folder, pump, spec } = JSON.parse(process.argv[2] as string) as {
  options: ProcessDriverOptions
  folder: string
  pump: string
  spec: WorkerSpec
}
const clock = systemClock
const logs = createWorkerLogs({ folder, clock })
const pipes = createWorkerPipes({ folder: pump, logs: folder, clock, bootId: options.bootId, note: () => {} })
await new ProcessDriver({ ...options, clock, logs, pipes, notifier: createNotifier() }).start(spec)
