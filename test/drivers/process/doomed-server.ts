/** A server for the tests that is killed: starts one worker and waits. Its one argument is JSON. */
import { createProcessDriver, type ProcessDriverOptions } from '../../../src/drivers/process/process.ts'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { createNotifier } from '../../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../../src/system/worker-logs/worker-logs.ts'

const { options, folder, spec } = JSON.parse(process.argv[2] as string) as {
  options: ProcessDriverOptions
  folder: string
  spec: WorkerSpec
}
const clock = systemClock
const logs = createWorkerLogs({ folder, clock })
await createProcessDriver({ ...options, clock, logs, notifier: createNotifier() }).start(spec)
