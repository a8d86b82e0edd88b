/** Numbers, times and sizes for people. */
import { now } from './server-clock.ts'

/** A time span such as `340 ms`, `4.2 s`, `3 min 20 s`, `5 h 2 min`, `3 d 4 h`. */
export function duration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return '–'
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`
  const s = Math.round(ms / 1_000)
  if (s < 60) return `${s} s`
  if (s < 3_600) return twoUnits(s, 60, 'min', 's')
  if (s < 86_400) return twoUnits(Math.round(s / 60), 60, 'h', 'min')
  return twoUnits(Math.round(s / 3_600), 24, 'd', 'h')
}

function twoUnits(count: number, per: number, large: string, small: string): string {
  const rest = count % per
  return `${Math.floor(count / per)} ${large}${rest === 0 ? '' : ` ${rest} ${small}`}`
}

/** The age of an instant in one unit, such as `12 s`, `22 min`, `3 h` or `4 d`; grows with the time. */
export function age(at: string | number | null | undefined): string {
  if (at === null || at === undefined) return '–'
  const ms = Math.max(0, now.value - instant(at))
  if (ms < 1_000) return 'now'
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`
  return ms < 86_400_000 ? `${Math.floor(ms / 3_600_000)} h` : `${Math.floor(ms / 86_400_000)} d`
}

/** Milliseconds since 1970 of an ISO instant or a number. */
export function instant(at: string | number): number {
  return typeof at === 'number' ? at : Date.parse(at)
}

/** The local time of day with milliseconds, such as `14:03:22.105`; with the day unless it is today. */
export function clockTime(at: string | number): string {
  const date = new Date(at)
  const time = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`
  return date.toDateString() === new Date().toDateString() ? time : `${day(at)} ${time}`
}

/** The local day, such as `2026-11-26`. */
export function day(at: string | number): string {
  const date = new Date(at)
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`
}

/** Day and time to the minute. */
export function dateTime(at: string | number): string {
  const date = new Date(at)
  return `${day(at)} ${pad(date.getHours())}:${pad(date.getMinutes())}`
}

function pad(number: number, width = 2): string {
  return String(number).padStart(width, '0')
}

/** A count with thin spaces between thousands. */
export function count(number: number | null | undefined): string {
  return number === null || number === undefined ? '–' : number.toLocaleString('en-US').replaceAll(',', '\u202f')
}

/** A size in bytes, such as `1.4 MB`. */
export function bytes(number: number | null | undefined): string {
  if (number === null || number === undefined) return '–'
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let value = number
  let unit = 0
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000
    unit += 1
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`
}

/** A share such as `12%`; `<1%` for a small share above zero. */
export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return '–'
  if (share > 0 && share < 0.01) return '<1%'
  return `${Math.round(share * 100)}%`
}

/** An amount of money in US dollars, as the prices of the catalog are. */
export function money(amount: number | null | undefined): string {
  return amount === null || amount === undefined ? '–' : `$${amount < 10 ? amount.toFixed(3) : amount.toFixed(2)}`
}

/** `one job`, `2 jobs`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`
}

/** The end of the id of a job: its beginning is a time, so ids of one day begin alike. */
export function shortJobId(id: string): string {
  return id.length > 16 ? `…${id.slice(-15)}` : id
}
