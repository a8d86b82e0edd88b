/**
 * Durations of starts, suspends and restores by the memory of a worker, as docs/internals/gpu-proof.md measured them
 * on an H100 with PyTorch (runs 1 to 4). Between two measured sizes they are on a line. Sizes in GiB, times in
 * milliseconds.
 */
type Measured = readonly (readonly [gib: number, ms: number])[]

/** From the lock until the card is empty: 20 GiB is the mean of five turns, 15.1 s the first and 9.1 s the fastest. */
const SUSPENDS: Measured = [
  [4, 3_800],
  [8, 4_800],
  [20, 11_400],
  [60, 33_700],
]
const RESTORES: Measured = [
  [4, 1_400],
  [8, 2_000],
  [20, 4_300],
  [60, 13_200],
]
/** The first job of a new worker, which fills its memory on the card and reads no weights of a model. */
const STARTS: Measured = [
  [8, 5_400],
  [20, 7_000],
]

/** Duration of a suspend. */
export function suspendMs(gib: number): number {
  return onLine(SUSPENDS, gib)
}

/** Duration of a restore. */
export function restoreMs(gib: number): number {
  return onLine(RESTORES, gib)
}

/** Duration of a start until the worker can take its first job, as measured: without the weights of a model. */
export function startMs(gib: number): number {
  return onLine(STARTS, gib)
}

/** A value between two measured ones, or on the line through the last two. */
function onLine(measured: Measured, gib: number): number {
  const above = Math.max(
    1,
    measured.findIndex(([size]) => size >= gib),
  )
  const at = measured.at(-1)![0] < gib ? measured.length - 1 : above
  const [[fromGib, fromMs], [toGib, toMs]] = [measured[at - 1]!, measured[at]!]
  return Math.round(fromMs + ((gib - fromGib) / (toGib - fromGib)) * (toMs - fromMs))
}
