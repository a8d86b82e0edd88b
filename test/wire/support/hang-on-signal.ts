/**
 * Preloaded into a process (`--import`): on SIGUSR2 the process hangs for good, without using the processor. Just
 * before that it makes the file of HANG_MARK, since a busy process handles a signal late.
 */
import { writeFileSync } from 'node:fs'

process.on('SIGUSR2', () => {
  writeFileSync(process.env.HANG_MARK!, '')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
