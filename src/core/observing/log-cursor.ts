/**
 * The position of a reader in logs, as the ids of server-sent events hold it: `<instant>/<number>` for one worker,
 * and `<instant>/<worker>.<number>,...` for several. The number holds the position in the worker's output and, in its
 * last two digits, the number of lines of its history, so that a reader resumes exactly, in any order of the two.
 */

import type { WorkerId } from '../ids.ts'
import { parseInstant } from '../instants.ts'

/** Read part of one worker's output and history. */
export interface LogPlace {
  /** Bytes of its whole output. */
  readonly position: number
  /** Number of lines of its history. */
  readonly historyRead: number
}

/** Read part of each worker's logs; a worker that is not in it was not read. */
export type LogCursor = ReadonlyMap<WorkerId, LogPlace>

/** Meaning of a `Last-Event-ID`: places, or a time alone. */
export type LastEvent =
  | { readonly kind: 'place'; readonly place: LogPlace }
  | { readonly kind: 'places'; readonly places: LogCursor }
  | { readonly kind: 'instant'; readonly ms: number }

/** Limit of the lines of a history that a reader gets. */
export const MAX_HISTORY = 99
const HISTORY_ROOM = MAX_HISTORY + 1
const MAX_WORKERS = 64

/** The id of an event about one worker. @param tsMs time of its line */
export function eventId(tsMs: number, place: LogPlace): string {
  return `${new Date(tsMs).toISOString()}/${String(placeNumber(place)).padStart(12, '0')}`
}

/** The id of an event about several workers. */
export function eventIdFromPlaces(tsMs: number, places: LogCursor): string {
  const list = [...places].map(([worker, place]) => `${worker}.${placeNumber(place)}`)
  return `${new Date(tsMs).toISOString()}/${list.join(',')}`
}

/** The meaning of an id from this server or an earlier run of it; null for anything else. */
export function readEventId(text: string): LastEvent | null {
  const slash = text.indexOf('/')
  const ms = parseInstant(slash === -1 ? text : text.slice(0, slash))
  if (ms === null) return null
  if (slash === -1) return { kind: 'instant', ms }
  const rest = text.slice(slash + 1)
  if (/^\d{1,15}$/.test(rest)) return { kind: 'place', place: placeFromNumber(Number(rest)) }
  const places = new Map<WorkerId, LogPlace>()
  // No worker existed yet.
  if (rest === '') return { kind: 'places', places }
  const parts = rest.split(',')
  if (parts.length > MAX_WORKERS) return null
  for (const part of parts) {
    const match = /^([a-z0-9]{1,64})\.(\d{1,15})$/.exec(part)
    if (match === null) return null
    places.set(match[1] as WorkerId, placeFromNumber(Number(match[2])))
  }
  return { kind: 'places', places }
}

function placeNumber({ position, historyRead }: LogPlace): number {
  return position * HISTORY_ROOM + Math.min(historyRead, MAX_HISTORY)
}

function placeFromNumber(number: number): LogPlace {
  return { position: Math.floor(number / HISTORY_ROOM), historyRead: number % HISTORY_ROOM }
}
