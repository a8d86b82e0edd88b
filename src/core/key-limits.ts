/** Limits of one API key on requests whose answers report tokens, and their windows. */
import { AppError } from './errors.ts'

/** Names of the limits of a key. */
export const KEY_LIMIT_NAMES = ['requestsPerMinute', 'tokensPerMinute', 'tokensPerDay'] as const
/** One of {@link KEY_LIMIT_NAMES}. */
export type KeyLimitName = (typeof KEY_LIMIT_NAMES)[number]
/** Limits of a key; one that is missing is no limit. */
export type KeyLimits = Readonly<Partial<Record<KeyLimitName, number>>>
/** Largest limit of a key. */
export const MAX_KEY_LIMIT = 1_000_000_000_000

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** True if each limit of the other is one of these, and not exceeded by it. */
export function isLimitedAsMuch(limits: KeyLimits, other: KeyLimits): boolean {
  return KEY_LIMIT_NAMES.every(name => {
    const most = other[name]
    return most === undefined || (limits[name] ?? Number.POSITIVE_INFINITY) <= most
  })
}

/** Counts of a key in its present windows, which begin at multiples of their length. */
export interface KeyCounts {
  readonly minuteMs: number
  readonly requests: number
  readonly minuteTokens: number
  readonly dayMs: number
  readonly dayTokens: number
}

/** The counts in the windows of an instant: those of a window that is over are zero. */
export function countsAt(counts: KeyCounts | null, nowMs: number): KeyCounts {
  const minuteMs = nowMs - (nowMs % MINUTE_MS)
  const dayMs = nowMs - (nowMs % DAY_MS)
  const { requests = 0, minuteTokens = 0 } = counts?.minuteMs === minuteMs ? counts : {}
  const { dayTokens = 0 } = counts?.dayMs === dayMs ? counts : {}
  return { minuteMs, requests, minuteTokens, dayMs, dayTokens }
}

/** The windows of the limits that a key has. */
interface Window {
  readonly kind: 'requests' | 'tokens'
  readonly limit: number
  readonly used: number
  readonly resetMs: number
  readonly span: 'minute' | 'day'
}

/** Refusal of a request by a limit of its key. */
export interface KeyRefusal {
  readonly kind: 'requests' | 'tokens'
  readonly message: string
  readonly retryAfterSeconds: number
}

/** Result of counting one request of a key: plain data, for threads. */
export interface KeyDecision {
  /** The counts with the request, unless it was refused. */
  readonly counts: KeyCounts
  readonly refusal: KeyRefusal | null
  /** Fields for the response in the form that OpenAI's clients read: names and values in turn. */
  readonly headers: readonly string[]
}

/**
 * Counts one request of a key, or refuses it if a limit is used up. Tokens are known at the end of an answer, so
 * requests that pass at once may exceed a limit of tokens together.
 */
export function countKeyRequest(limits: KeyLimits, previous: KeyCounts | null, nowMs: number): KeyDecision {
  const counts = countsAt(previous, nowMs)
  const exceeded = windowsOf(limits, counts, nowMs).find(({ used, limit }) => used >= limit) ?? null
  const next = exceeded === null ? { ...counts, requests: counts.requests + 1 } : counts
  const windows = windowsOf(limits, next, nowMs)
  return { counts: next, refusal: exceeded === null ? null : refusalOf(exceeded), headers: headersOf(windows) }
}

/** The fields of a decision for the response. @throws KeyLimitError if it refuses the request */
export function requireWithin({ refusal, headers }: Pick<KeyDecision, 'refusal' | 'headers'>): readonly string[] {
  if (refusal !== null) throw new KeyLimitError(refusal, headers)
  return headers
}

/** The error of a request that a limit of its key refuses. */
export class KeyLimitError extends AppError {
  readonly kind: KeyRefusal['kind']
  /** As of {@link KeyDecision}. */
  readonly headers: readonly string[]

  constructor({ kind, message, retryAfterSeconds }: KeyRefusal, headers: readonly string[]) {
    super('rate_limited', message, { retryAfterSeconds })
    this.name = 'KeyLimitError'
    this.kind = kind
    this.headers = headers
  }
}

function windowsOf(limits: KeyLimits, counts: KeyCounts, nowMs: number): Window[] {
  const { requestsPerMinute, tokensPerMinute, tokensPerDay } = limits
  const minute = { span: 'minute', resetMs: counts.minuteMs + MINUTE_MS - nowMs } as const
  const day = { span: 'day', resetMs: counts.dayMs + DAY_MS - nowMs } as const
  const windows: Window[] = []
  // The longest comes first: a client that waits for it needs no other time.
  if (tokensPerDay !== undefined) windows.push({ kind: 'tokens', limit: tokensPerDay, used: counts.dayTokens, ...day })
  if (tokensPerMinute !== undefined)
    windows.push({ kind: 'tokens', limit: tokensPerMinute, used: counts.minuteTokens, ...minute })
  if (requestsPerMinute !== undefined)
    windows.push({ kind: 'requests', limit: requestsPerMinute, used: counts.requests, ...minute })
  return windows
}

function refusalOf({ kind, limit, span, resetMs }: Window): KeyRefusal {
  const retryAfterSeconds = Math.max(1, Math.ceil(resetMs / 1_000))
  const message = `this API key has used its ${limit} ${kind} a ${span}; the next ${span} begins in ${durationText(resetMs)}`
  return { kind, message, retryAfterSeconds }
}

/** Of two limits of tokens, that with fewer left is shown. */
function headersOf(windows: readonly Window[]): string[] {
  return (['requests', 'tokens'] as const).flatMap(kind => {
    const [tightest] = windows.filter(window => window.kind === kind).sort((a, b) => left(a) - left(b))
    if (tightest === undefined) return []
    const { limit, resetMs } = tightest
    return [
      ...[`x-ratelimit-limit-${kind}`, String(limit)],
      ...[`x-ratelimit-remaining-${kind}`, String(left(tightest))],
      ...[`x-ratelimit-reset-${kind}`, durationText(resetMs)],
    ]
  })
}

function left({ limit, used }: Window): number {
  return Math.max(0, limit - used)
}

/** A duration as OpenAI writes it, such as `1m3s`. */
function durationText(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1_000))
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)]
  return `${hours > 0 ? `${hours}h` : ''}${hours + minutes > 0 ? `${minutes}m` : ''}${seconds % 60}s`
}
