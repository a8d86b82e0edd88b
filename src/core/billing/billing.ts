/** Spans of bills, in UTC, and amounts that add up. */
import { type FieldProblem, fieldProblem, pairProblem } from '../field-problem.ts'
import { HOUR_MS } from './usage.ts'

/** The spans into which usage is summed. Weeks begin on Mondays. */
export const BUCKET_SIZES = ['hour', 'day', 'week', 'month', 'year'] as const
/** One of {@link BUCKET_SIZES}. */
export type BucketSize = (typeof BUCKET_SIZES)[number]

/** Limit of buckets of one response. */
export const MAX_BUCKETS = 1_000
/** Days of a bill without a given time. */
export const DEFAULT_DAYS = 30

const DAY_MS = 24 * HOUR_MS
/** 1 January 1970 was a Thursday. */
const FIRST_MONDAY_MS = 4 * DAY_MS
/** Later instants, or the ends of their years, have years of five digits. */
const LAST_MS = Date.UTC(9999, 0)

/** The beginning of the bucket that an instant falls into. */
export function bucketStart(atMs: number, size: BucketSize): number {
  const at = new Date(atMs)
  if (size === 'year') return Date.UTC(at.getUTCFullYear(), 0)
  if (size === 'month') return Date.UTC(at.getUTCFullYear(), at.getUTCMonth())
  if (size === 'week') return FIRST_MONDAY_MS + Math.floor((atMs - FIRST_MONDAY_MS) / (7 * DAY_MS)) * 7 * DAY_MS
  const lengthMs = size === 'day' ? DAY_MS : HOUR_MS
  return Math.floor(atMs / lengthMs) * lengthMs
}

/** The beginning of the bucket that is `count` buckets later, or earlier. @param startMs the beginning of a bucket */
export function bucketsAfter(startMs: number, size: BucketSize, count = 1): number {
  const start = new Date(startMs)
  if (size === 'year') return Date.UTC(start.getUTCFullYear() + count, 0)
  if (size === 'month') return Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + count)
  return startMs + count * (size === 'week' ? 7 * DAY_MS : size === 'day' ? DAY_MS : HOUR_MS)
}

/**
 * Time of a bill: the last buckets, or from one instant to another; without either, the last {@link DEFAULT_DAYS}
 * days.
 */
export interface BillingTime {
  readonly size: BucketSize
  /** Number of buckets, including the present one. */
  readonly lastN?: number | undefined
  readonly startMs?: number | undefined
  readonly endMs?: number | undefined
}

/** Problem of a number of buckets beside their bounds. */
export const LAST_N_EXCLUDES = fieldProblem('lastN', 'excludes a start and an end')

/**
 * The beginnings of the requested buckets and the end of the last one; both ends move outward to the bounds of
 * buckets. Otherwise all problems of the time.
 */
export function billingBounds(
  time: BillingTime,
  nowMs: number,
): { readonly bounds: readonly number[] } | { readonly problems: readonly FieldProblem[] } {
  const { size, lastN } = time
  const problems: FieldProblem[] = []
  if (lastN !== undefined && (time.startMs !== undefined || time.endMs !== undefined)) {
    problems.push(LAST_N_EXCLUDES)
  }
  if (lastN !== undefined && lastN > MAX_BUCKETS) problems.push(fieldProblem('lastN', `must be at most ${MAX_BUCKETS}`))
  // A bucket that begins at this very instant is the present one.
  const endMs = time.endMs ?? nowMs + 1
  const startMs = time.startMs ?? endMs - DEFAULT_DAYS * DAY_MS
  if (time.startMs !== undefined && time.startMs < 0) problems.push(fieldProblem('startMs', 'must not be before 1970'))
  if (endMs > LAST_MS) problems.push(fieldProblem('endMs', 'must not be after the year 9998'))
  if (startMs >= endMs) {
    problems.push(pairProblem('startMs', 'endMs', 'must be before {other}, which defaults to the present time'))
  }
  if (problems.length > 0) return { problems }
  const end = bucketsAfter(bucketStart(endMs - 1, size), size)
  const bounds = [lastN === undefined ? bucketStart(startMs, size) : bucketsAfter(end, size, -lastN)]
  while (bounds.at(-1)! < end) {
    if (bounds.length > MAX_BUCKETS) {
      const problem = `makes more than ${MAX_BUCKETS} buckets of this time; ask for less time or larger buckets`
      return { problems: [fieldProblem('size', problem)] }
    }
    bounds.push(bucketsAfter(bounds.at(-1)!, size))
  }
  return { bounds }
}

/** An exact amount: millionths of a dollar for an hour, multiplied by milliseconds. */
export function exactAmount(microsPerHour: number, ms: number): bigint {
  return BigInt(microsPerHour) * BigInt(ms)
}

/**
 * Sums exact amounts and rounds the sum, half up, to millionths of a dollar. Each part is the difference that it
 * makes to the rounded sum, so the parts add up to it, and the sum does not depend on its parts.
 */
export class RoundedSum {
  #exact = 0n
  #micros = 0

  /** The rounded sum. */
  get micros(): number {
    return this.#micros
  }

  /** Adds an amount. @returns the growth of the rounded sum, which is within a millionth of the amount */
  add(exact: bigint): number {
    const previous = this.#micros
    this.#exact += exact
    this.#micros = Number((this.#exact * 2n + HOUR) / (HOUR * 2n))
    return this.#micros - previous
  }
}

const HOUR = BigInt(HOUR_MS)
