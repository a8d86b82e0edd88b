/**
 * Unix time in whole ms when this relay started, and the monotonic clock since: it goes on evenly when
 * the machine's clock is set.
 */
export function relayNow(): number {
  return Math.floor(performance.timeOrigin + performance.now())
}

/** The machine's monotonic clock in whole ms, rounded down, which a server on the same machine reads too. */
export function machineMonotonic(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}
