/** Loaded into a process before all else (`--import`): at SIGUSR2 it hangs for good, without using the processor. */
process.on('SIGUSR2', () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
})
