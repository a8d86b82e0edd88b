/** Preloaded into a process (`--import`): on SIGUSR2 the process hangs for good, without using the processor. */
process.on('SIGUSR2', () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
