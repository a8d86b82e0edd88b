import type { Call, Exchange } from '../network.ts'
import { REQUEST_QUEUE_LIMITS } from './request-queue-checker.ts'

/** Slack of a response beyond its long poll. */
const SLACK_MS = 3_000

/** Reports requests whose response takes longer than their long poll allows. */
export class ResponseTimeChecker {
  readonly #report: (problem: string) => void
  readonly #wasSlow: (sinceMs: number) => boolean
  readonly #reported = new Set<Call>()

  /** @param wasSlow true if the store was slow at any time since an instant */
  constructor(report: (problem: string) => void, wasSlow: (sinceMs: number) => boolean) {
    this.#report = report
    this.#wasSlow = wasSlow
  }

  /** The server responded to a request. */
  answered({ call, fromMs, toMs }: Exchange): void {
    this.#check(call, fromMs, toMs)
  }

  /** A request has no response so far. */
  waiting(call: Call, fromMs: number, nowMs: number): void {
    if (!this.#reported.has(call)) this.#check(call, fromMs, nowMs)
  }

  #check(call: Call, fromMs: number, toMs: number): void {
    const allowed = longPollMs(call) + SLACK_MS
    if (toMs - fromMs <= allowed || this.#wasSlow(fromMs)) return
    this.#reported.add(call)
    const { pathname, search } = new URL(call.url)
    this.#report(`${call.method} ${pathname}${search} of ${call.who} took ${toMs - fromMs} ms`)
  }
}

/** Maximum time that a simulated application takes for a request. */
const SERVING_MS = 100_000

/** Maximum duration of a long poll, in milliseconds. The OpenAI route and event streams last as long as their job. */
function longPollMs({ url, headers }: Call): number {
  const { pathname, searchParams } = new URL(url)
  const operation = pathname.split('/')[3] ?? ''
  const wait = searchParams.get('wait')
  // A request may wait twice, and longer for a required worker than for any.
  if (pathname.startsWith('/lb/')) return 2 * REQUEST_QUEUE_LIMITS.namedWaitMs + SERVING_MS
  if (operation === 'openai' || headers.accept === 'text/event-stream') return Number.POSITIVE_INFINITY
  if (operation.startsWith('job-take') || operation === 'job-stop') return 25_000
  if (operation === 'runsync') return Number(wait ?? 90_000)
  if (operation === 'stream') return Number(wait ?? 8_000) + 4_000
  if (operation === 'status-sync') return Number(wait ?? 8_000)
  return 0
}
