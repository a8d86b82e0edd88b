/**
 * Preloaded into a server (`--import`): looks every 10 ms how much processor time the thread of the event loop took
 * since the last look. One turn that takes long is one look that comes late. Processor time, because a busy machine
 * makes every look late, whatever the server does. Each hold above RECORD_MS is a line `<epoch ms> <ms of processor
 * time>` of the file that RUNYARD_TEST_HOLDS names.
 */
import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const LOOK_MS = 10
const RECORD_MS = 15

const file = process.env.RUNYARD_TEST_HOLDS
if (isMainThread && file !== undefined) {
  let lastUsage = process.threadCpuUsage()
  setInterval(() => {
    const used = process.threadCpuUsage(lastUsage)
    lastUsage = process.threadCpuUsage()
    const ms = (used.user + used.system) / 1000
    if (ms > RECORD_MS) appendFileSync(file, `${Date.now()} ${ms.toFixed(1)}\n`)
  }, LOOK_MS).unref()
}
