import { log } from './log.ts'

const answerMs = 10_000
/** Maximum number of requests at once, since a receiver may not answer. */
const mostAtOnce = 100

/** Sends the ends of jobs to the addresses that the jobs name: one POST each, without a second attempt. */
export class Webhooks {
  #onTheirWay = 0

  /** Sends the state of a job as JSON, in the background. A failure is logged. */
  send(url: string, view: { id: string }): void {
    if (this.#onTheirWay >= mostAtOnce) {
      complain(view.id, `${mostAtOnce} are on their way already`)
      return
    }
    this.#onTheirWay += 1
    this.#post(url, JSON.stringify(view))
      .catch(error => complain(view.id, explain(error)))
      .finally(() => {
        this.#onTheirWay -= 1
      })
  }

  async #post(url: string, body: string): Promise<void> {
    const headers = { 'Content-Type': 'application/json' }
    const signal = AbortSignal.timeout(answerMs)
    // A redirect is a failure, as on a platform.
    const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the receiver answered ${response.status}`)
  }
}

/** Logs a failure without the address, whose query may have a secret. */
function complain(jobId: string, reason: string): void {
  log(`the webhook was not delivered: ${reason}`, { job: jobId, level: 'WARN' })
}

function explain(error: Error): string {
  const { cause } = error
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message
}
