/** The shown range of time, and the length of its intervals. */

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** Intervals of the API, with the time that the server keeps their counts. */
export const INTERVALS = {
  '1m': { lengthMs: MINUTE_MS, keptMs: 7 * DAY_MS },
  '1h': { lengthMs: HOUR_MS, keptMs: 90 * DAY_MS },
  '1d': { lengthMs: DAY_MS, keptMs: 90 * DAY_MS },
} as const
/** One of {@link INTERVALS}. */
export type Interval = keyof typeof INTERVALS

/** Ranges that end now. */
export const RANGES = {
  '15m': { title: '15 min', ms: 15 * MINUTE_MS },
  '1h': { title: '1 h', ms: HOUR_MS },
  '6h': { title: '6 h', ms: 6 * HOUR_MS },
  '24h': { title: '24 h', ms: DAY_MS },
  '7d': { title: '7 d', ms: 7 * DAY_MS },
  '30d': { title: '30 d', ms: 30 * DAY_MS },
  '90d': { title: '90 d', ms: 90 * DAY_MS },
} as const
/** One of {@link RANGES}. */
export type RangeId = keyof typeof RANGES

/** The range for an address without one, or with an invalid one. */
const USUAL_RANGE: RangeId = '1h'

/** Limit of points of a chart. */
const MAX_POINTS = 400
const SHORTEST_MS = 5 * MINUTE_MS
const LONGEST_MS = 90 * DAY_MS

/** A range whose ends are those of intervals. */
export interface Range {
  /** Null for a range that somebody chose in a chart. */
  readonly id: RangeId | null
  readonly interval: Interval
  readonly fromMs: number
  readonly toMs: number
  /** True if its last interval has not ended: its numbers still change. */
  readonly isLive: boolean
}

/** The range of an address such as `?range=6h` or `?from=2026-01-01T10:00:00Z&to=2026-01-01T11:00:00Z`. */
export function rangeFromQuery(query: URLSearchParams, nowMs: number): Range {
  const fromMs = Date.parse(query.get('from') ?? '')
  const toMs = Date.parse(query.get('to') ?? '')
  const isChosen = Number.isFinite(fromMs) && Number.isFinite(toMs) && fromMs < toMs && fromMs < nowMs
  if (isChosen) return aligned(fromMs, toMs, nowMs)
  const rangeName = query.get('range') ?? ''
  const id = Object.hasOwn(RANGES, rangeName) ? (rangeName as RangeId) : USUAL_RANGE
  const { ms } = RANGES[id]
  const interval = intervalFor(nowMs - ms, nowMs, nowMs)
  const { lengthMs } = INTERVALS[interval]
  const endMs = ceiling(nowMs + 1, lengthMs)
  return { id, interval, fromMs: endMs - ms, toMs: endMs, isLive: true }
}

/** The shortest interval that the server still has for this time and that stays within the limit of points. */
export function intervalFor(fromMs: number, toMs: number, nowMs: number): Interval {
  for (const interval of Object.keys(INTERVALS) as Interval[]) {
    const { lengthMs, keptMs } = INTERVALS[interval]
    if ((toMs - fromMs) / lengthMs <= MAX_POINTS && fromMs >= nowMs - keptMs) return interval
  }
  return '1d'
}

/** The address of a range that somebody chose. Ends past the present are moved back, and too short ranges widened. */
export function rangeAddress(
  fromMs: number,
  toMs: number,
  nowMs: number,
): Record<'from' | 'to' | 'range', string | null> {
  const spanMs = Math.min(Math.max(toMs - fromMs, SHORTEST_MS), LONGEST_MS)
  const middleMs = (fromMs + toMs) / 2
  const endMs = Math.min(middleMs + spanMs / 2, ceiling(nowMs, MINUTE_MS))
  return { from: text(endMs - spanMs), to: text(endMs), range: null }
}

/** The address of a range of the same length that is earlier (-1) or later (1) by half of it. */
export function moved({ fromMs, toMs }: Range, by: -1 | 1, nowMs: number) {
  const byMs = (by * (toMs - fromMs)) / 2
  return rangeAddress(fromMs + byMs, toMs + byMs, nowMs)
}

/** The address of a range with the same middle, half as long (in) or twice as long (out). */
export function scaled({ fromMs, toMs }: Range, by: 'in' | 'out', nowMs: number) {
  const middleMs = (fromMs + toMs) / 2
  const halfMs = ((toMs - fromMs) * (by === 'in' ? 0.5 : 2)) / 2
  return rangeAddress(middleMs - halfMs, middleMs + halfMs, nowMs)
}

function aligned(fromMs: number, toMs: number, nowMs: number): Range {
  const startMs = Math.max(fromMs, toMs - LONGEST_MS)
  const interval = intervalFor(startMs, toMs, nowMs)
  const { lengthMs } = INTERVALS[interval]
  const lastMs = ceiling(nowMs + 1, lengthMs)
  const endMs = Math.min(ceiling(toMs, lengthMs), lastMs)
  return {
    id: null,
    interval,
    fromMs: Math.floor(startMs / lengthMs) * lengthMs,
    toMs: endMs,
    isLive: endMs > nowMs,
  }
}

function ceiling(atMs: number, lengthMs: number): number {
  return Math.ceil(atMs / lengthMs) * lengthMs
}

function text(ms: number): string {
  return new Date(Math.round(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z')
}
