/**
 * Preloaded into a server (`--import`): while the file that RUNYARD_TEST_RETAINED names exists, adds lines to it with
 * the bytes that the main thread retains after a collection of all garbage: its heap, and what this refers to outside.
 */
import { appendFileSync, existsSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isMainThread } from 'node:worker_threads'

const LOOK_MS = 200

const file = process.env.RUNYARD_TEST_RETAINED
if (isMainThread && file !== undefined) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setInterval(() => {
    if (!existsSync(file)) return
    collect()
    const { heapUsed, external } = process.memoryUsage()
    appendFileSync(file, `${heapUsed + external}\n`)
  }, LOOK_MS).unref()
}
