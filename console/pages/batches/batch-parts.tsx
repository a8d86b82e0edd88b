/** Parts that the list of batches and the page of one batch share. */
import type { Batch } from '../../client/api-types.d.ts'
import type { Freshness } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic, jobTopic } from '../../client/topics.ts'
import { count } from '../../format.ts'
import { batchShares } from './batch-state.ts'

/** Interval of reads for keys without management, which receive no events. */
const EVERY_MS = 5_000

/** Events and intervals that keep the batches of an endpoint current. */
export function freshness(endpoint: string): Freshness {
  return {
    on: event => jobTopic(endpoint)(event) || changeTopic(/^batch/)(event),
    ...(mayManage('read') ? {} : { everyMs: EVERY_MS }),
  }
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
        {requestFailed > 0 ? (
          <span class="bad-text">
            <span class="wide-only">, </span>
            {count(requestFailed)} failed
          </span>
        ) : null}
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
