import type { JobId } from '../core/ids.ts'
import type { TracedAttempt, TracedJob, TracedTry } from '../core/observing/job-spans.ts'
import type { RequestTrace } from '../core/observing/request-trace.ts'

/**
 * Traces that the server records, and the contexts that it sends to others. Without it, contexts of clients
 * are passed on as they came.
 */
export interface Tracing {
  /** The `traceparent` that a worker gets with a job. */
  attempt(job: TracedJob, attempt: TracedAttempt): string
  /** Chunks of a job were stored. They are too many to be events. */
  streamed(jobId: JobId, chunks: number): void
  /** The `traceparent` that the receiver of a webhook gets. */
  webhook(tried: TracedTry): string
  /** The place of a load-balanced request in a trace. @param traceparent the header of the client */
  request(traceparent: string | undefined): RequestTrace
}
