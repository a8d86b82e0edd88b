import type { ServerStatus } from '../core/observing/server-status.ts'
import type { Backups } from '../ports/backups.ts'
import type { Ports } from '../ports/ports.ts'
import type { Access } from '../services/accounts/access.ts'
import type { Accounts } from '../services/accounts/accounts.ts'
import type { Keys } from '../services/accounts/keys.ts'
import type { LoginRequests } from '../services/accounts/login-requests.ts'
import type { Quotas } from '../services/accounts/quotas.ts'
import type { S3Keys } from '../services/accounts/s3-keys.ts'
import type { Sessions } from '../services/accounts/sessions.ts'
import type { Alerts } from '../services/alerts/alerts.ts'
import type { AppBuilds } from '../services/apps/app-builds.ts'
import type { AppContents } from '../services/apps/app-contents.ts'
import type { Apps } from '../services/apps/apps.ts'
import type { AuditLog } from '../services/audit/audit-log.ts'
import type { AuditReader } from '../services/audit/audit-reader.ts'
import type { AuditViews } from '../services/audit/audit-views.ts'
import type { LoadBalancer } from '../services/balancing/load-balancer.ts'
import type { BillCalculator } from '../services/billing/bill-calculator.ts'
import type { TokenSums } from '../services/billing/token-sums.ts'
import type { CachedEndpoints } from '../services/cached-rows.ts'
import type { Endpoints } from '../services/endpoints/endpoints.ts'
import type { LiveEndpoints } from '../services/endpoints/live-endpoints.ts'
import type { Releases } from '../services/endpoints/releases.ts'
import type { Tasks } from '../services/endpoints/tasks.ts'
import type { Templates } from '../services/endpoints/templates.ts'
import type { Volumes } from '../services/endpoints/volumes.ts'
import type { Files } from '../services/files/files.ts'
import type { Catalog } from '../services/hardware/catalog.ts'
import type { AccountJobs } from '../services/jobs/account-jobs.ts'
import type { Batches } from '../services/jobs/batches.ts'
import type { JobRecords } from '../services/jobs/job-records.ts'
import type { Jobs } from '../services/jobs/jobs.ts'
import type { LargeInputs } from '../services/jobs/large-inputs.ts'
import type { LargeResults } from '../services/jobs/large-results.ts'
import type { LargeTexts } from '../services/jobs/large-texts.ts'
import type { Streams } from '../services/jobs/streams.ts'
import type { Webhooks } from '../services/jobs/webhooks.ts'
import type { ModelOperations } from '../services/models/model-operations.ts'
import type { EventFeed } from '../services/observing/event-feed.ts'
import type { Explainer } from '../services/observing/explainer.ts'
import type { JobStories } from '../services/observing/job-stories.ts'
import type { LogFinder } from '../services/observing/log-finder.ts'
import type { MachineReader } from '../services/observing/machine-reader.ts'
import type { MetricSeries } from '../services/observing/metric-series.ts'
import type { MetricsReader } from '../services/observing/metrics-reader.ts'
import type { Overview } from '../services/observing/overview.ts'
import type { TimeKeeper } from '../services/observing/server-time.ts'
import type { WhatIf } from '../services/observing/what-if.ts'
import type { WorkerReader } from '../services/observing/worker-reader.ts'
import type { ModelAliases } from '../services/openai/model-aliases.ts'
import type { ModelCatalog } from '../services/openai/model-catalog.ts'
import type { Registries } from '../services/secrets/registries.ts'
import type { Secrets } from '../services/secrets/secrets.ts'
import type { JobStops } from '../services/workers/job-stops.ts'
import type { Takes } from '../services/workers/takes.ts'
import type { WorkerCalls } from '../services/workers/worker-calls.ts'
import type { Addresses } from './addresses.ts'
import type { BodyRoom } from './body.ts'

/** Everything that the surfaces call, by name. Each function of a surface names the parts that it uses. */
export interface ApiParts {
  readonly ports: Ports
  readonly access: Access
  readonly accountJobs: AccountJobs
  readonly accounts: Accounts
  readonly alerts: Alerts
  readonly apps: Apps
  readonly appBuilds: AppBuilds
  readonly appContents: AppContents
  readonly audit: AuditLog
  readonly auditReader: AuditReader
  readonly auditViews: AuditViews
  readonly balancing: LoadBalancer
  readonly batches: Batches
  readonly billing: BillCalculator
  readonly tokenSums: TokenSums
  readonly calls: WorkerCalls
  /** Endpoints in memory. */
  readonly cachedEndpoints: CachedEndpoints
  readonly catalog: Catalog
  readonly endpoints: Endpoints
  readonly explaining: Explainer
  readonly feed: EventFeed
  /** Files of network volumes; null without them. */
  readonly files: Files | null
  readonly jobRecords: JobRecords
  readonly jobs: Jobs
  readonly keys: Keys
  readonly logins: LoginRequests
  readonly logs: LogFinder
  readonly machineReader: MachineReader
  readonly modelAliases: ModelAliases
  /** Models by their names. */
  readonly modelCatalog: ModelCatalog
  readonly modelOperations: ModelOperations
  readonly overview: Overview
  readonly quotas: Quotas
  readonly registries: Registries
  readonly releases: Releases
  readonly s3Keys: S3Keys
  readonly scraping: MetricsReader
  readonly secrets: Secrets
  readonly series: MetricSeries
  readonly sessions: Sessions
  readonly stops: JobStops
  readonly stories: JobStories
  readonly streams: Streams
  readonly largeInputs: LargeInputs
  readonly liveEndpoints: LiveEndpoints
  readonly largeResults: LargeResults
  readonly largeTexts: LargeTexts
  readonly takes: Takes
  readonly tasks: Tasks
  readonly templates: Templates
  /** Null if the time of the server is that of the machine's clock. */
  readonly timeKeeper: TimeKeeper | null
  /** Network volumes. */
  readonly volumes: Volumes
  readonly globalVolumes: Volumes
  readonly webhooks: Webhooks
  readonly whatIf: WhatIf
  readonly workers: WorkerReader
  /** Null when the server acts and its database works, else the problem, which everybody may read. */
  readonly notReady: () => Promise<string | null>
  /** Note for people about the store of a server that is ready; null without a note. */
  readonly storeNote: () => string | null
  /** Room in memory for bodies of clients. */
  readonly room: BodyRoom
  /** Room for bodies of workers, so that neither side can fill the room of the other. */
  readonly resultRoom: BodyRoom
  /** Largest body of a request for a load-balancing endpoint, in bytes. */
  readonly balancedBodyBytes: number
  readonly addresses: Addresses
  /** Aborts when the server begins to stop. */
  readonly stopping: AbortSignal
  /** Version of the server, for people. */
  readonly version: string
  /** True when everybody may read the metrics. */
  readonly metricsPublic: boolean
  /** State of this server and of the active one; undefined if it is not reported. */
  readonly status: (() => Promise<ServerStatus>) | undefined
  /** The maker of backups; undefined if no backups are made. */
  readonly backups: Backups | undefined
}
