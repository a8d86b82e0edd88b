import type { EndpointId, WorkerId } from '../../core/ids.ts'
import type { ClaimedJob } from '../../core/jobs/job.ts'

/** A worker claims with this. */
export interface ClaimRequest {
  readonly endpointId: EndpointId
  readonly workerId: WorkerId
  /** At most this many jobs, and fewer where their inputs have more than about 32 MB together. */
  readonly limit: number
  readonly nowMs: number
  /**
   * The instant by which the worker has to begin the jobs after the first, or they go back. With it, the first job
   * begins with the claim, and the others when {@link JobStore.begin} says so.
   */
  readonly beginsByMs?: number
  /** True where the worker gets nothing while there are jobs that it has yet to let go of. */
  readonly letGoFirst?: boolean
}

/** Result of a claim. */
export interface Claim {
  readonly jobs: ClaimedJob[]
  /**
   * The worker must get nothing before it holds less: it runs a suspect, runs empty for one, or must still stop
   * jobs.
   */
  readonly holdsBack: boolean
  /** A suspect waits that this worker cannot have now; another one may. */
  readonly leavesSuspect: boolean
}
