/** Times of the copies that a suspend and a resume make of the memory of a card, per MiB. */

/** One copy. */
export interface MemoryCopy {
  readonly mb: number
  readonly tookMs: number
}

/** Milliseconds for a MiB: from the card, and back to it. */
export interface CopyRates {
  readonly outMs: number
  readonly inMs: number
}

/** The defaults: an H100 with PyTorch takes about 11.4 s for 20 GiB, and 4.3 s back. */
export const COPY_RATES: CopyRates = { outMs: 0.56, inMs: 0.21 }

/** Number of copies that count, the newest ones. */
export const MAX_COPIES = 8

/** Memory below which a copy says nothing about its speed: most of its time goes into locks and calls. */
const LEAST_MB = 1_024

/** Milliseconds for a MiB in these copies together; null without a copy of some size. */
function rateMs(copies: readonly MemoryCopy[]): number | null {
  const large = copies.filter(({ mb }) => mb >= LEAST_MB)
  const mb = large.reduce((sum, copy) => sum + copy.mb, 0)
  return mb === 0 ? null : large.reduce((sum, { tookMs }) => sum + tookMs, 0) / mb
}

/**
 * The rates of these copies. Where only one direction was measured, the other one differs from its default by the same
 * factor, since both depend on the same machine: a worker is resumed for the first time after others were suspended.
 */
export function copyRates(out: readonly MemoryCopy[], back: readonly MemoryCopy[]): CopyRates {
  const [outMs, inMs] = [rateMs(out), rateMs(back)]
  if (outMs === null && inMs === null) return COPY_RATES
  return {
    outMs: outMs ?? (COPY_RATES.outMs * inMs!) / COPY_RATES.inMs,
    inMs: inMs ?? (COPY_RATES.inMs * outMs!) / COPY_RATES.outMs,
  }
}

/** Duration of a copy from the card and of one back, in milliseconds. */
export function roundTripMs(mb: number, { outMs, inMs }: CopyRates): number {
  return mb * (outMs + inMs)
}
