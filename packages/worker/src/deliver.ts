import { Backoff, retryAfterMs, sleep } from './backoff.ts'
import type { Client } from './http.ts'
import { log } from './log.ts'

/** A message about a job, to be posted to the platform. */
export type Post = { url: string; body: string; jobId: string; what: string }

/** Bounds of the attempts to deliver a post. */
export type Patience = {
  /** Time after the first attempt in which others may start, in ms. */
  retryMs: number
  /** Longest pause between two attempts, in ms. */
  pauseMs: number
  /** Aborts when the post is obsolete: nothing more is sent or logged. */
  cancel: AbortSignal
  /** Aborts when the attempt in flight must be the last one. */
  hurry?: AbortSignal
}

const silenceMs = 60_000

/**
 * Posts until the platform accepts, refuses for good (a 4xx other than 408 and 429) or patience runs out. Resolves to
 * true if it was accepted; never rejects. An unreachable platform counts as one that restarts.
 */
export async function deliver(client: Client, post: Post, patience: Patience): Promise<boolean> {
  const { cancel, hurry = cancel, retryMs, pauseMs } = patience
  const deadline = performance.now() + retryMs
  const backoff = new Backoff(pauseMs)
  for (let attempt = 1; !cancel.aborted; attempt += 1) {
    const { accepted, final, reason, waitMs } = await tryOnce(client, post, cancel)
    if (accepted) return true
    if (cancel.aborted) return false
    const pause = waitMs ?? backoff.next()
    if (final || hurry.aborted || performance.now() + pause > deadline) {
      log(`${post.what} was not delivered: ${reason}`, { job: post.jobId, level: 'ERROR' })
      return false
    }
    if (attempt === 1) log(`${post.what} is being retried: ${reason}`, { job: post.jobId, level: 'WARN' })
    await sleep(pause, hurry)
  }
  return false
}

type Outcome = { accepted: boolean; final: boolean; reason: string; waitMs?: number | undefined }

async function tryOnce(client: Client, { url, body, jobId }: Post, cancel: AbortSignal): Promise<Outcome> {
  try {
    const { status, retryAfter } = await client.send({ url, body, jobId, timeoutMs: silenceMs, cancel })
    const passing = status >= 500 || status === 408 || status === 429
    const waitMs = retryAfterMs(retryAfter) ?? (status === 429 ? 5000 : undefined)
    return {
      accepted: status >= 200 && status < 300,
      final: !passing,
      reason: `the platform answered ${status}`,
      waitMs,
    }
  } catch (error) {
    return { accepted: false, final: false, reason: errorReason(error) }
  }
}

/** The reason for which a request got no answer, as a short text. */
export function errorReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code } = error as NodeJS.ErrnoException
  // An AggregateError, from a host with several addresses, has an empty message.
  return error.message || code || error.name
}
