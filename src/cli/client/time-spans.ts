import { CliError, EXIT } from '../exit.ts'

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Milliseconds of a span of time such as `30s`, `10m`, `2h` or `1d`; null for other text. */
export function timeSpanMs(text: string): number | null {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  return count === undefined || unit === undefined ? null : Number(count) * UNITS[unit]!
}

/**
 * The instant of an age such as `10m`, or of a date and time.
 * @param option the option, for the error
 * @throws CliError for any other text
 */
export function readInstant(option: string, text: string): string {
  const agoMs = timeSpanMs(text)
  const ms = agoMs === null ? Date.parse(text) : Date.now() - agoMs
  if (!Number.isNaN(ms)) return new Date(ms).toISOString()
  throw new CliError(`${option} takes a time ago such as 10m, or a date and time, not '${text}'`, EXIT.usage)
}
