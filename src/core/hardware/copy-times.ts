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

/** Milliseconds for a MiB in these copies together. @param otherwise the result without a copy of some size */
export function measuredRateMs(copies: readonly MemoryCopy[], otherwise: number): number {
  const large = copies.filter(({ mb }) => mb >= LEAST_MB)
  const mb = large.reduce((sum, copy) => sum + copy.mb, 0)
  return mb === 0 ? otherwise : large.reduce((sum, { tookMs }) => sum + tookMs, 0) / mb
}

/** Duration of a copy from the card and of one back, in milliseconds. */
export function roundTripMs(mb: number, { outMs, inMs }: CopyRates): number {
  return mb * (outMs + inMs)
}
