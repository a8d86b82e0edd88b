/** One of the windows in which REST requests of an owner are counted. */
export interface RateWindow {
  readonly name: 'minute' | 'hour' | 'day'
  readonly quota: number
  readonly seconds: number
}

/** Windows of an installation that sets none. */
export const DEFAULT_WINDOWS: readonly RateWindow[] = [
  { name: 'minute', quota: 1_200, seconds: 60 },
  { name: 'hour', quota: 36_000, seconds: 3_600 },
  { name: 'day', quota: 500_000, seconds: 86_400 },
]

const MAX_QUOTA = 1_000_000_000
/** The problem of a text that {@link readWindows} cannot read. */
export const WINDOWS_PROBLEM = `must be off, or quotas from 1 to ${MAX_QUOTA} such as minute=1200,hour=36000,day=500000`

/**
 * Windows from a text such as `minute=100,day=5000`: an omitted window keeps its quota, `off` means no windows.
 * Null if the text is invalid.
 */
export function readWindows(text: string): readonly RateWindow[] | null {
  if (text === 'off') return []
  const quotas = new Map<string, number>()
  for (const part of text.split(',')) {
    const [, name = '', digits = ''] = /^(minute|hour|day)=(\d{1,10})$/.exec(part) ?? []
    const quota = Number(digits)
    if (quota < 1 || quota > MAX_QUOTA || quotas.has(name)) return null
    quotas.set(name, quota)
  }
  return DEFAULT_WINDOWS.map(window => ({ ...window, quota: quotas.get(window.name) ?? window.quota }))
}

/** Requests counted in one window that began at `startMs`. */
export interface WindowCount {
  readonly startMs: number
  readonly used: number
}

/** Result of counting one request. `exceeded` is the window that refuses it; the request is then not counted. */
export interface RateDecision {
  readonly counts: readonly WindowCount[]
  readonly exceeded: RateWindow | null
  readonly retryAfterSeconds: number
  /** Values of the headers `RateLimit` and `RateLimit-Policy` (structured-field lists, RFC 9651). */
  readonly rateLimit: string
  readonly rateLimitPolicy: string
}

/**
 * Counts one request in all windows, or refuses it if one of them is used up. Windows begin at multiples of their
 * length, so all servers agree on them.
 * @param counts previous counts in the order of `windows`; a missing or old one counts as empty
 */
export function countRequest(
  windows: readonly RateWindow[],
  counts: readonly WindowCount[],
  nowMs: number,
): RateDecision {
  const current = windows.map((window, index) => {
    const startMs = nowMs - (nowMs % (window.seconds * 1000))
    const stored = counts[index]
    return stored !== undefined && stored.startMs === startMs ? stored : { startMs, used: 0 }
  })
  const exceeded = windows.find((window, index) => current[index]!.used >= window.quota) ?? null
  const next = exceeded === null ? current.map(count => ({ ...count, used: count.used + 1 })) : current
  const resets = windows.map((window, index) =>
    Math.max(1, Math.ceil((next[index]!.startMs + window.seconds * 1000 - nowMs) / 1000)),
  )
  const remaining = windows.map((window, index) => Math.max(0, window.quota - next[index]!.used))
  return {
    counts: next,
    exceeded,
    retryAfterSeconds: exceeded === null ? 0 : resets[windows.indexOf(exceeded)]!,
    rateLimit: windows.map((w, i) => `"${w.name}";r=${remaining[i]};t=${resets[i]}`).join(', '),
    rateLimitPolicy: windows.map(w => `"${w.name}";q=${w.quota};w=${w.seconds}`).join(', '),
  }
}
