const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of a span of time such as `30s`, `10m`, `2h` or `1d`; null for other text. */
export function timeSpanMs(text: string): number | null {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return count === undefined || unit === undefined ? null : Number(count) * UNITS[unit]!
}
