/**
 * Unix time in whole ms when this relay started, and the monotonic clock since: it goes on evenly when
 * the machine's clock is set.
 */
export function relayNow(): number {
  return Math.floor(performance.timeOrigin + performance.now())
}
