import type { Addresses } from '../api/addresses.ts'
import type { AccountLimits } from '../core/accounts/quotas.ts'
import type { RateWindow } from '../core/accounts/rate-limit.ts'
import type { ArtifactRules } from '../core/apps/app.ts'
import type { AuditDetail, AuditRules } from '../core/audit/entry.ts'
import type { PriceList } from '../core/billing/prices.ts'
import type { IsServerName } from '../core/endpoints/domain.ts'
import type { JobRecordRules } from '../core/jobs/job-record.ts'
import type { ServerStatus } from '../core/observing/server-status.ts'
import type { PauseRules, PlacementRules } from '../core/placement/placement-input.ts'
import type { FreezeRules } from '../core/scaling/frozen-plan.ts'
import type { AdmissionRules } from '../gateway/entrance/admission.ts'
import type { RequestQueueLimits } from '../gateway/queue/request-queue.ts'
import type { ThreadChannel } from '../gateway/threads/messages.ts'
import type { AuditHeadNote } from '../ports/audit-head.ts'
import type { BackupFolder, Backups } from '../ports/backups.ts'
import type { HostInspection } from '../ports/host-inspection.ts'
import type { SharingRules } from '../services/accounts/sharing-guard.ts'
import type { WorkerAddresses } from '../services/workers/worker-addresses.ts'

/** The settings of the application. */
export interface AppConfig {
  readonly rateWindows: readonly RateWindow[]
  /** True to limit calls of job operations per endpoint; false when left out. */
  readonly limitJobs?: boolean
  /**
   * True to let GraphQL delete endpoints that may still have workers; false by default. An account can set its own
   * value.
   */
  readonly deleteRunningEndpoints?: boolean
  /** Names of the server, which no endpoint can have as its domain; empty by default. */
  readonly isServerName?: IsServerName
  /** Maximum time in which workers finish their jobs when the server stops. */
  readonly drainTimeoutMs: number
  /** Ways to the threads that read HTTP beside this one; none by default. */
  readonly httpThreads?: readonly ThreadChannel[]
  /** True when everybody may read the metrics; otherwise a key with the right to read management is needed. */
  readonly metricsPublic?: boolean
  /** Origins of the web pages that may call job operations, `*` for all; empty when left out. */
  readonly corsOrigins?: readonly string[]
  /** Rules by which workers share the machine; the rest is as in PLACEMENT_RULES. */
  readonly placing?: Partial<PlacementRules> | undefined
  /** Rules by which workers are paused for others; the rest is as in PAUSE_RULES. */
  readonly pausing?: Partial<PauseRules> | undefined
  /** Time for which frozen workers are kept; the rest is as in FREEZE_RULES. */
  readonly freezing?: Partial<FreezeRules> | undefined
  /** Maximum bytes of clients' request bodies in memory, and the same again for results of workers. */
  readonly bodyBytes?: number
  /** Limit of a result of a worker, in bytes; 20 MB when left out. */
  readonly resultBytes?: number
  /** Limit of the bodies of run and runsync, in bytes; 10 MB of run and 20 MB of runsync when left out. */
  readonly inputBytes?: number | undefined
  /** True when QUEUE_DELAY counts from the time at which a further worker could be ready; false when left out. */
  readonly startAware?: boolean
  /**
   * True when a release is stopped whose failure rate is clearly above that of the last good one; true when left out.
   */
  readonly judgesRollouts?: boolean
  /** Limits of artifacts of apps; the rest is as in ARTIFACT_RULES. */
  readonly artifacts?: Partial<ArtifactRules>
  /** Prices of hardware; empty when left out. */
  readonly prices?: PriceList | undefined
  /** Load-balancing endpoints that admit requests without a key, and trusted proxies; both empty by default. */
  readonly admission?: AdmissionRules
  /** Maximum number and wait of requests for load-balancing endpoints; the rest is as in REQUEST_QUEUE_LIMITS. */
  readonly requestQueueLimits?: Partial<RequestQueueLimits>
  /** Rules for several accounts on one machine; the rest is as in SHARING_RULES. */
  readonly sharing?: Partial<SharingRules>
  /** Maximum bytes of the body of a request for a load-balancing endpoint; 30 MB when left out. */
  readonly balancedBodyBytes?: number
  /** Limits of all accounts except the operator's; unlimited when left out. */
  readonly accountLimits?: AccountLimits
  /** The version of the server, for people; unknown when left out. */
  readonly version?: string
  /** Rules for records of jobs whose results are removed; the rest is as in JOB_RECORD_RULES. */
  readonly jobRecords?: Partial<JobRecordRules>
  /** Time for which the audit log is kept; the rest is as in AUDIT_RULES. */
  readonly audit?: Partial<AuditRules>
  /** Settings that differ from their defaults, without secrets, for the audit log; empty when left out. */
  readonly settings?: AuditDetail
  /** The state of this server and of the active one; not reported when left out. */
  readonly status?: (() => Promise<ServerStatus>) | undefined
  /** The note of the head of the audit log outside of the database; not written when left out. */
  readonly auditHead?: AuditHeadNote | undefined
  /** The maker of backups of the server; without it no backups are made. */
  readonly backups?: Backups | undefined
  /** The folder of scheduled backups; without it none are scheduled. */
  readonly backupFolder?: BackupFolder | undefined
  /**
   * Begins a new term of this server, which takes an accepted time of the machine's clock; the next start does when
   * left out.
   */
  readonly renewTerm?: (() => void) | undefined
  /** The inspection of the host; not offered when left out. */
  readonly inspection?: HostInspection | undefined
}

/** The addresses of the server. An address that can change is a getter. */
export interface AppAddresses extends Addresses, WorkerAddresses {}

/** The two steps of a stop, as signals. */
export class StopSignals {
  readonly #begun = new AbortController()
  readonly #over = new AbortController()
  /** Aborts when the server begins to stop: no new work. */
  readonly stopping = this.#begun.signal
  /** Aborts when everything that is still open has to end. */
  readonly closed = this.#over.signal

  /** No new work from now on. */
  begin(): void {
    this.#begun.abort()
  }

  /** Everything that is still open ends. */
  finish(): void {
    this.#begun.abort()
    this.#over.abort()
  }
}
