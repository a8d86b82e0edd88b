/** What the list of batches and one batch share. */
import type { Batch } from '../../client/api-types.d.ts'
import type { LiveEvent } from '../../client/live.ts'
import { ofChange, ofJobs } from '../../client/topics.ts'
import { count } from '../../format.ts'
import { batchShares } from './batch-state.ts'

/** What changes a batch of an endpoint. */
export function ofBatches(endpoint: string): (event: LiveEvent) => boolean {
  return event => ofJobs(endpoint)(event) || ofChange(/^batch/)(event)
}

/** The results of a batch as a bar, with the numbers beside it. */
export function Progress({ batch }: { readonly batch: Batch }) {
  const { requestTotal, requestCompleted, requestFailed } = batch
  return (
    <span class="progress">
      <ResultBar batch={batch} />
      <span>
        {batch.status === 'DRAFT'
          ? count(requestTotal)
          : `${count(requestCompleted + requestFailed)} of ${count(requestTotal)}`}
        {requestFailed > 0 ? <span class="bad-text">, {count(requestFailed)} failed</span> : null}
      </span>
    </span>
  )
}

/** The results of a batch as a bar. */
export function ResultBar({ batch }: { readonly batch: Batch }) {
  return (
    <span class="results" aria-hidden="true">
      {batchShares(batch).map(({ tone, share }) => (
        <span key={tone} class={tone} style={{ width: `${share * 100}%` }} />
      ))}
    </span>
  )
}
