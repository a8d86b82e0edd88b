import type { Answered, Call } from '../network.ts'
import { REQUEST_QUEUE_LIMITS } from './request-queue-checker.ts'

/** What an answer may take beyond the time for which its request may be held. */
const SLACK_MS = 3_000

/** Reports requests that are held for longer than they may be. */
export class HoldChecker {
  readonly #report: (problem: string) => void
  readonly #troubled: (sinceMs: number) => boolean
  readonly #told = new Set<Call>()

  /** @param troubled whether the store was slow at some time since an instant */
  constructor(report: (problem: string) => void, troubled: (sinceMs: number) => boolean) {
    this.#report = report
    this.#troubled = troubled
  }

  /** A request has its answer. */
  answered({ call, fromMs, toMs }: Answered): void {
    this.#check(call, fromMs, toMs)
  }

  /** A request has no answer yet. */
  waiting(call: Call, fromMs: number, nowMs: number): void {
    if (!this.#told.has(call)) this.#check(call, fromMs, nowMs)
  }

  #check(call: Call, fromMs: number, toMs: number): void {
    const allowed = holdOf(call) + SLACK_MS
    if (toMs - fromMs <= allowed || this.#troubled(fromMs)) return
    this.#told.add(call)
    const { pathname, search } = new URL(call.url)
    this.#report(`${call.method} ${pathname}${search} of ${call.who} was held for ${toMs - fromMs} ms`)
  }
}

/** So long an application may take in the simulator. */
const SERVING_MS = 100_000

/** For how long a request may be held; the OpenAI route and event streams last as long as their job. */
function holdOf({ url, headers }: Call): number {
  const { pathname, searchParams } = new URL(url)
  const operation = pathname.split('/')[3] ?? ''
  const wait = searchParams.get('wait')
  // It may wait twice, and for one worker longer than for any.
  if (pathname.startsWith('/lb/')) return 2 * REQUEST_QUEUE_LIMITS.namedWaitMs + SERVING_MS
  if (operation === 'openai' || headers.accept === 'text/event-stream') return Number.POSITIVE_INFINITY
  if (operation.startsWith('job-take') || operation === 'job-stop') return 25_000
  if (operation === 'runsync') return Number(wait ?? 90_000)
  if (operation === 'stream') return Number(wait ?? 8_000) + 4_000
  if (operation === 'status-sync') return Number(wait ?? 8_000)
  return 0
}
