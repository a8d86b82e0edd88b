import { log } from './log.ts'

const answerMs = 10_000
/** Receivers that do not answer must not pile up. */
const mostAtOnce = 100

/** Tells the ends of jobs to the addresses that the jobs name: one POST each, without a second try. */
export class Webhooks {
  #onTheirWay = 0

  /** Sends this as JSON, in the background. What goes wrong is logged. */
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
    // A platform takes a redirect for a failure too.
    const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'manual' })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`the receiver answered ${response.status}`)
  }
}

/** Without the address, whose query may have a secret. */
function complain(jobId: string, reason: string): void {
  log(`the webhook was not delivered: ${reason}`, { job: jobId, level: 'WARN' })
}

function explain(error: Error): string {
  const { cause } = error
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message
}
