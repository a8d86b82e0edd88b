/** Pauses of a server, and the slow responses that they explain. */

/** A time in which a server did one thing, or waited for one: milliseconds of the machine's monotonic clock. */
export interface Pause {
  readonly cause: string
  readonly fromMs: number
  readonly toMs: number
}

/** The time of a response, from the request. */
export interface ResponseTime {
  readonly fromMs: number
  readonly toMs: number
}

/** The pauses of one cause, and the slow responses that it explains. */
export interface CauseCount {
  readonly cause: string
  readonly slow: number
  readonly pauses: number
  /** Duration of the longest and of the middle one, in milliseconds. */
  readonly longestMs: number
  readonly middleMs: number
}

/** The cause of responses of which no pause has the time. */
export const UNEXPLAINED = 'none of these'

/** Share of the excess of a slow response that a cause has to fill. */
const EXPLAINS = 0.3

/**
 * Gives each slow response to the cause whose pauses fill most of it, if they fill a third of what it took beyond
 * the usual.
 * @param usualMs duration of a usual response
 * @param pauses in any order; those of one cause do not overlap
 * @returns causes that explain a response, or have pauses, the one of most responses first
 */
export function explainSlow(slow: readonly ResponseTime[], usualMs: number, pauses: readonly Pause[]): CauseCount[] {
  const sorted = pauses.toSorted((a, b) => a.toMs - b.toMs)
  const longestMs = sorted.reduce((longest, { fromMs, toMs }) => Math.max(longest, toMs - fromMs), 0)
  const slowByCause = new Map<string, number>()
  for (const response of slow) {
    const cause = causeOf(response, usualMs, sorted, longestMs)
    slowByCause.set(cause, (slowByCause.get(cause) ?? 0) + 1)
  }
  const byCause = Map.groupBy(pauses, ({ cause }) => cause)
  return [...new Set([...slowByCause.keys(), ...byCause.keys()])]
    .map(cause => {
      const durations = (byCause.get(cause) ?? []).map(({ fromMs, toMs }) => toMs - fromMs).sort((a, b) => a - b)
      return {
        cause,
        slow: slowByCause.get(cause) ?? 0,
        pauses: durations.length,
        longestMs: durations.at(-1) ?? 0,
        middleMs: durations[durations.length >> 1] ?? 0,
      }
    })
    .sort((a, b) => b.slow - a.slow || b.longestMs - a.longestMs)
}

function causeOf({ fromMs, toMs }: ResponseTime, usualMs: number, sorted: readonly Pause[], longestMs: number): string {
  const overlapByCause = new Map<string, number>()
  for (let at = firstEndingAfter(sorted, fromMs); at < sorted.length; at += 1) {
    const pause = sorted[at]!
    // Those behind it end later still, and none is longer than that.
    if (pause.toMs - longestMs > toMs) break
    const overlapMs = Math.min(toMs, pause.toMs) - Math.max(fromMs, pause.fromMs)
    if (overlapMs > 0) overlapByCause.set(pause.cause, (overlapByCause.get(pause.cause) ?? 0) + overlapMs)
  }
  const [most] = [...overlapByCause].sort((a, b) => b[1] - a[1])
  return most !== undefined && most[1] >= (toMs - fromMs - usualMs) * EXPLAINS ? most[0] : UNEXPLAINED
}

/** Index of the first pause that ends after a time. */
function firstEndingAfter(sorted: readonly Pause[], ms: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]!.toMs > ms) high = middle
    else low = middle + 1
  }
  return low
}
