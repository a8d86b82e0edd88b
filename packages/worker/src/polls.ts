import { Backoff, retryAfterMs, sleep } from './backoff.ts'
import { withQuery } from './config.ts'
import { errorReason } from './deliver.ts'
import { type Client, NoAnswer } from './http.ts'
import { log } from './log.ts'
import type { Job } from './types.ts'

const holdMs = 90_000

/** Polls the platform for jobs, with the pauses that its answers require. */
export class Taker {
  readonly #client: Client
  readonly #errors = new Backoff(10_000)
  readonly #hasty = new Backoff(1000)
  /** True if the last answer had no job and came at once. */
  #wasHasty = false

  /** Takes through `client`. */
  constructor(client: Client) {
    this.#client = client
  }

  /**
   * Polls once. Resolves to the jobs of the answer, or to an empty list after the pause that the answer requires,
   * which `stop` cuts short. `giveUp` ends a poll without an answer. Never rejects.
   */
  async take(url: string, stop: AbortSignal, giveUp: AbortSignal): Promise<Job[]> {
    const beganMs = performance.now()
    try {
      const reply = await this.#client.send({ url, timeoutMs: holdMs, giveUp })
      if (reply.status === 200 || reply.status === 204) {
        this.#errors.reset()
        const jobs = reply.status === 204 ? [] : readJobs(reply.body)
        const isHasty = jobs.length === 0 && performance.now() - beganMs < 500
        // A platform that answers without a job at once, instead of holding the poll, must not be polled in
        // a busy loop. It may do so once: the poll of a worker that thaws before it was frozen ends, and a
        // job waits for the next poll.
        if (isHasty && this.#wasHasty) await sleep(this.#hasty.next(), stop)
        if (!isHasty) this.#hasty.reset()
        this.#wasHasty = isHasty
        return jobs
      }
      const wait = retryAfterMs(reply.retryAfter) ?? (reply.status === 429 ? 5000 : this.#errors.next())
      log(`taking a job failed: the platform answered ${reply.status}`, { job: null, level: 'WARN' })
      await sleep(Math.max(wait, 50), stop)
    } catch (error) {
      if (stop.aborted || error instanceof NoAnswer) return []
      log(`taking a job failed: ${errorReason(error)}`, { job: null, level: 'WARN' })
      await sleep(this.#errors.next(), stop)
    }
    return []
  }
}

/**
 * Polls for cancelled jobs and passes their ids to `onStop`, which returns true for a new one, until `over` aborts.
 * Never rejects.
 */
export async function listenForStops(
  client: Client,
  url: string,
  over: AbortSignal,
  onStop: (jobId: string) => boolean,
): Promise<void> {
  const errors = new Backoff(10_000)
  while (!over.aborted) {
    const beganMs = performance.now()
    try {
      const reply = await client.send({ url, timeoutMs: holdMs, cancel: over })
      if (reply.status === 200 || reply.status === 204) {
        errors.reset()
        const ids = reply.status === 200 ? readStops(reply.body) : []
        // A platform may repeat the ids until the jobs have ended; that must not become a busy loop.
        const news = ids.filter(onStop).length > 0
        if (!news) await sleep(Math.max(0, 1000 - (performance.now() - beganMs)), over)
        continue
      }
      await sleep(retryAfterMs(reply.retryAfter) ?? (reply.status === 429 ? 5000 : errors.next()), over)
    } catch (error) {
      if (!(error instanceof NoAnswer)) await sleep(errors.next(), over)
    }
  }
}

/** Sends a ping with the ids of the worker's jobs to the platform every `everyMs`, the first one now. */
export function startPinging(client: Client, baseUrl: string, everyMs: number, version: string, ids: () => string[]) {
  let busy = false
  const ping = async () => {
    if (busy) return
    busy = true
    const list = ids().join(',')
    const url = withQuery(baseUrl, { ...(list ? { job_id: list } : {}), runpod_version: version })
    // A failed ping needs no second attempt: the next one has newer content.
    await client.send({ url, timeoutMs: 2 * everyMs }).catch(() => undefined)
    busy = false
  }
  void ping()
  setInterval(() => void ping(), everyMs).unref()
}

function readJobs(body: string): Job[] {
  const parsed = body === '' ? null : parse(body)
  const list: unknown[] = Array.isArray(parsed) ? parsed : parsed === null ? [] : [parsed]
  const jobs = list.filter(isJob)
  if (jobs.length < list.length) log('the platform sent a job without a usable id', { job: null, level: 'ERROR' })
  return jobs
}

function isJob(value: unknown): value is Job {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'string' && value.id !== ''
}

function readStops(body: string): string[] {
  const parsed = parse(body) as { jobsToStop?: unknown } | null
  const list = parsed?.jobsToStop
  return Array.isArray(list) ? list.filter((id): id is string => typeof id === 'string') : []
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    log('the platform sent something that is not JSON', { job: null, level: 'ERROR' })
    return null
  }
}
