/** The calls of the soak: each one is sent until the server answers it, and refusals are counted. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { RestartableServer } from '../server.ts'
import type { Ledger } from './ledger.ts'

const ANSWER_MS = 30_000
/** Pause before a call is sent again, which doubles from the least to the most. */
const PAUSE_MS = { least: 200, most: 3_200 }

/** A response. `text` is the body, `json` its value if it is JSON. */
export interface Answer {
  readonly status: number
  readonly text: string
  readonly json: Record<string, unknown>
}

/** One request. */
export interface Call {
  /** Its name in the report. */
  readonly name: string
  readonly path: string
  readonly method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly body?: unknown
  readonly idempotencyKey?: string
  /** Longest time for which the server may hold it. */
  readonly waitMs?: number
}

/** Sends calls to one server. */
export class Calls {
  readonly #server
  readonly #ledger

  constructor(server: RestartableServer, ledger: Ledger) {
    this.#server = server
    this.#ledger = ledger
  }

  /** Sends a call until its answer has another status than 429, 502, 503 or 504. @throws Error after the deadline */
  async untilAnswered(call: Call, deadline: number): Promise<Answer> {
    for (let pauseMs = PAUSE_MS.least; performance.now() < deadline; pauseMs = Math.min(2 * pauseMs, PAUSE_MS.most)) {
      const answer = await this.once(call)
      if (answer !== null) return answer
      await sleep(pauseMs * (0.5 + Math.random()))
    }
    throw new Error(`${call.name} ${call.path} was not answered in time`)
  }

  /** Sends a call once. Resolves to null if the server was down or refused it for now. */
  async once(call: Call): Promise<Answer | null> {
    const { body, idempotencyKey: key, method = body === undefined ? 'GET' : 'POST', waitMs = 0 } = call
    const isDown = this.#server.startedAtMs === null
    try {
      const response = await fetch(`${this.#server.url}${call.path}`, {
        method,
        headers: {
          authorization: `Bearer ${this.#server.key}`,
          'content-type': 'application/json',
          ...(key === undefined ? {} : { 'idempotency-key': key }),
        },
        signal: AbortSignal.timeout(ANSWER_MS + waitMs),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (![429, 502, 503, 504].includes(response.status))
        return { status: response.status, text, json: readJson(text) }
      this.#refused(call, response, text)
    } catch (error) {
      this.#ledger.refused(call.name, failureReason(error, isDown || this.#server.startedAtMs === null))
    }
    return null
  }

  #refused({ name }: Call, { status, headers }: Response, text: string): void {
    this.#ledger.refused(name, `${status} ${String(readJson(text).error ?? text).slice(0, 80)}`)
    if (status === 503 && headers.get('retry-after') === null) this.#ledger.count('503 without Retry-After')
  }
}

function readJson(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}

function failureReason(error: unknown, isDown: boolean): string {
  if ((error as Error).name === 'TimeoutError') return `no answer in ${ANSWER_MS / 1_000} s`
  return isDown ? 'cut off or no connection while the server was killed' : 'cut off while the server ran'
}
