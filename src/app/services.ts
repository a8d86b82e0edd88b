/** All services of the application, in the order in which they are made: each is made of those above it. */
import { jobsUrl, statusUrl } from '../api/addresses.ts'
import type { Recorders } from '../control/upkeep.ts'
import { NO_LIMITS } from '../core/accounts/quotas.ts'
import { ARTIFACT_RULES } from '../core/apps/app.ts'
import { AUDIT_RULES } from '../core/audit/entry.ts'
import { NO_PRICES } from '../core/billing/prices.ts'
import { toAppError } from '../core/errors.ts'
import type { EndpointId } from '../core/ids.ts'
import { JOB_RECORD_RULES } from '../core/jobs/job-record.ts'
import { DAMAGE_ACTION, damageText, fullText } from '../core/observing/store-trouble.ts'
import { PAUSE_RULES, PLACEMENT_RULES } from '../core/placement/placement-input.ts'
import { FREEZE_RULES } from '../core/scaling/frozen-plan.ts'
import { type Emit, EventStream } from '../events.ts'
import type { FindTarget } from '../gateway/entrance/admission.ts'
import { Gateway } from '../gateway/gateway.ts'
import { Forwarder } from '../gateway/proxy/forwarder.ts'
import { RequestQueues } from '../gateway/queue/request-queues.ts'
import { DecidingSide } from '../gateway/threads/deciding-side.ts'
import type { Ports } from '../ports/ports.ts'
import { layered } from '../ports/store/operations.ts'
import type { Targets, Traffic } from '../ports/targets.ts'
import { Access } from '../services/accounts/access.ts'
import { Accounts } from '../services/accounts/accounts.ts'
import { Keys } from '../services/accounts/keys.ts'
import { LoginRequests } from '../services/accounts/login-requests.ts'
import { Quotas } from '../services/accounts/quotas.ts'
import { S3Keys } from '../services/accounts/s3-keys.ts'
import { Sessions } from '../services/accounts/sessions.ts'
import { SHARING_RULES, SharingGuard } from '../services/accounts/sharing-guard.ts'
import { Alerts } from '../services/alerts/alerts.ts'
import { AppBuilds } from '../services/apps/app-builds.ts'
import { AppContents } from '../services/apps/app-contents.ts'
import { Apps } from '../services/apps/apps.ts'
import { AuditKeeper } from '../services/audit/audit-keeper.ts'
import { AuditLog } from '../services/audit/audit-log.ts'
import { AuditReader } from '../services/audit/audit-reader.ts'
import { AuditViews } from '../services/audit/audit-views.ts'
import { canResume, LoadBalancer } from '../services/balancing/load-balancer.ts'
import { BillCalculator } from '../services/billing/bill-calculator.ts'
import { TokenCounter } from '../services/billing/token-counter.ts'
import { TokenSums } from '../services/billing/token-sums.ts'
import { CachedEndpoints, CachedRows, remembering } from '../services/cached-rows.ts'
import { EndpointDomains } from '../services/endpoints/endpoint-domains.ts'
import { Endpoints } from '../services/endpoints/endpoints.ts'
import { LiveEndpoints } from '../services/endpoints/live-endpoints.ts'
import { ReleaseResults } from '../services/endpoints/release-results.ts'
import { Releases } from '../services/endpoints/releases.ts'
import { Tasks } from '../services/endpoints/tasks.ts'
import { Templates } from '../services/endpoints/templates.ts'
import { Volumes } from '../services/endpoints/volumes.ts'
import { Files } from '../services/files/files.ts'
import { CardReader } from '../services/hardware/card-reader.ts'
import { Catalog } from '../services/hardware/catalog.ts'
import { AccountJobs } from '../services/jobs/account-jobs.ts'
import { Batches } from '../services/jobs/batches.ts'
import { JobRecords } from '../services/jobs/job-records.ts'
import { Jobs } from '../services/jobs/jobs.ts'
import { LargeInputs } from '../services/jobs/large-inputs.ts'
import { LargeResults } from '../services/jobs/large-results.ts'
import { LargeTexts } from '../services/jobs/large-texts.ts'
import { Streams } from '../services/jobs/streams.ts'
import { Webhooks } from '../services/jobs/webhooks.ts'
import { LongPoll } from '../services/long-poll.ts'
import { EndpointModels } from '../services/models/endpoint-models.ts'
import { ModelOperations } from '../services/models/model-operations.ts'
import { AttemptRecorder } from '../services/observing/attempt-recorder.ts'
import { EventFeed } from '../services/observing/event-feed.ts'
import { Explainer } from '../services/observing/explainer.ts'
import { JobStories } from '../services/observing/job-stories.ts'
import { LogFinder } from '../services/observing/log-finder.ts'
import { MachineReader } from '../services/observing/machine-reader.ts'
import { MetricRecorder } from '../services/observing/metric-recorder.ts'
import { MetricSeries } from '../services/observing/metric-series.ts'
import { MetricsReader } from '../services/observing/metrics-reader.ts'
import { Overview } from '../services/observing/overview.ts'
import { holdingRemovals, TimeKeeper } from '../services/observing/server-time.ts'
import { WhatIf } from '../services/observing/what-if.ts'
import { WorkerReader } from '../services/observing/worker-reader.ts'
import { ModelAliases } from '../services/openai/model-aliases.ts'
import { ModelCatalog } from '../services/openai/model-catalog.ts'
import { Registries } from '../services/secrets/registries.ts'
import { Secrets } from '../services/secrets/secrets.ts'
import { FailedStarts } from '../services/workers/failed-starts.ts'
import { Fleet } from '../services/workers/fleet.ts'
import { JobStops } from '../services/workers/job-stops.ts'
import { LostJobs } from '../services/workers/lost-jobs.ts'
import { Prestarts } from '../services/workers/prestarts.ts'
import { RunningWorkers } from '../services/workers/running-workers.ts'
import { ShortRuns } from '../services/workers/short-runs.ts'
import { Takes } from '../services/workers/takes.ts'
import { UndeliveredResults } from '../services/workers/undelivered-results.ts'
import { WorkerCalls } from '../services/workers/worker-calls.ts'
import { WorkerFreezer } from '../services/workers/worker-freezer.ts'
import { WorkerSuspender } from '../services/workers/worker-suspender.ts'
import type { AppAddresses, AppConfig, StopSignals } from './config.ts'

/** The services by their names, and the ports with the store and the event stream of the application. */
export type AppServices = ReturnType<typeof createServices>

/** @param requests counter of requests, which gets news of workers; the request queues by default */
export function createServices(
  given: Ports,
  config: AppConfig,
  addresses: AppAddresses,
  signals: StopSignals,
  requests?: Targets & Traffic,
) {
  const base = baseServices(given, config)
  const { ports, audit } = base
  const accounts = accountServices(ports, config)
  const apps = appServices(ports, config, accounts)
  const jobs = jobServices(ports, config, addresses, accounts)
  const workers = workerServices(ports, config, { ...jobs, ...apps, audit }, { addresses, signals })
  const balancing = balancingServices(ports, config, {
    access: accounts.access,
    addresses,
    signals,
    requests,
    apps: apps.apps,
  })
  const endpoints = endpointServices(ports, config, { ...accounts, ...workers })
  const recorded = recordingServices(base, given.emit, config, { ...balancing, ...workers, ...accounts })
  const observing = observingServices(ports, config, { ...base, ...jobs, ...workers, ...balancing, ...recorded })
  const alerts = new Alerts(ports, {
    ...accounts,
    ...observing,
    mailer: ports.mailer ?? null,
    pageUrl: pageUrl(addresses),
  })
  return {
    ...base,
    ...accounts,
    ...apps,
    ...jobs,
    ...workers,
    ...balancing,
    ...endpoints,
    ...recorded,
    ...observing,
    modelAliases: new ModelAliases(ports),
    modelCatalog: new ModelCatalog(ports, balancing.balancing),
    alerts,
    /** Null when the server is ready, else the problem, without a path of the machine. */
    notReady: () => whyNotReady(ports, signals.stopping),
    /** A sentence about the store of a server that is ready; null for nothing. */
    storeNote: () => {
      const full = ports.storeRoom?.full() ?? null
      return full === null ? null : fullText(full)
    },
  }
}

/** The ports of the services, and the audit log, which all of them write. */
function baseServices(given: Ports, config: AppConfig) {
  const { clock, time } = given
  const events = new EventStream()
  const { emit } = events
  const timeKeeper = time === undefined ? null : new TimeKeeper({ store: given.store, time, emit }, config.renewTerm)
  // Retention removes nothing while the time of the server waits.
  const held = timeKeeper === null ? given.store : layered(given.store, holdingRemovals(timeKeeper))
  /** For readers of events and the audit log: the store without its cache in memory. */
  const uncached: Ports = { ...given, emit, store: held }
  const cachedEndpoints = new CachedEndpoints(uncached)
  const worker = new CachedRows((tokenHash: string) => held.workers.findByToken(tokenHash), clock)
  const store = layered(held, remembering({ endpoint: cachedEndpoints.rows, worker }))
  const ports: Ports = { ...given, emit, store }
  const note = config.auditHead ?? null
  const audit = new AuditLog(uncached)
  return {
    ports,
    uncached,
    events,
    timeKeeper,
    cachedEndpoints,
    liveEndpoints: new LiveEndpoints(ports),
    audit,
    auditViews: new AuditViews(uncached),
    auditReader: new AuditReader(uncached, note),
    auditKeeper: new AuditKeeper(uncached, audit, { ...AUDIT_RULES, ...config.audit }, note),
  }
}

/** Callers, their rights and quotas, and billing. */
function accountServices(ports: Ports, config: AppConfig) {
  const access = new Access(ports, config.rateWindows, config.limitJobs)
  const sharing = new SharingGuard(ports, { ...SHARING_RULES, ...config.sharing })
  const quotas = new Quotas(ports, config.accountLimits ?? NO_LIMITS)
  const keys = new Keys(ports, access)
  return {
    access,
    sharing,
    quotas,
    accounts: new Accounts(ports, sharing, quotas),
    keys,
    logins: new LoginRequests(ports, keys, access),
    s3Keys: new S3Keys(ports, access),
    files: ports.files == null ? null : new Files(ports, ports.files, access),
    sessions: new Sessions(ports, access),
    billing: new BillCalculator(ports, config.prices ?? NO_PRICES),
  }
}

/** Apps and their builds. */
function appServices(ports: Ports, config: AppConfig, { quotas }: Pick<ReturnType<typeof accountServices>, 'quotas'>) {
  return {
    apps: new Apps(ports, quotas),
    appContents: new AppContents(ports),
    appBuilds: new AppBuilds(ports, quotas, { ...ARTIFACT_RULES, ...config.artifacts }),
  }
}

/** Jobs of queue endpoints, and their results for clients. */
function jobServices(
  ports: Ports,
  config: AppConfig,
  addresses: AppAddresses,
  { quotas, sharing }: Pick<ReturnType<typeof accountServices>, 'quotas' | 'sharing'>,
) {
  const recordRules = { ...JOB_RECORD_RULES, ...config.jobRecords }
  const longPoll = new LongPoll(ports)
  const largeTexts = new LargeTexts(ports, quotas)
  const largeInputs = new LargeInputs(largeTexts, quotas, config.inputBytes)
  const jobs = new Jobs(ports, longPoll, quotas, recordRules)
  return {
    recordRules,
    longPoll,
    jobs,
    jobRecords: new JobRecords(ports, { jobs, largeInputs }, recordRules),
    accountJobs: new AccountJobs(ports, recordRules),
    batches: new Batches(ports, jobs, quotas),
    streams: new Streams(ports, jobs, longPoll),
    webhooks: new Webhooks(ports, jobs, sharing),
    largeTexts,
    largeInputs,
    largeResults: new LargeResults(largeTexts, {
      maxBytes: config.resultBytes,
      statusUrl: (endpointId, jobId) => statusUrl(addresses, endpointId, jobId),
    }),
  }
}

/** Workers: their processes and containers, their state in memory, and their calls. */
function workerServices(
  ports: Ports,
  config: AppConfig,
  given: {
    readonly jobs: Jobs
    readonly longPoll: LongPoll
    readonly audit: AuditLog
    readonly largeResults: LargeResults
    readonly appBuilds: AppBuilds
  },
  { addresses, signals }: { readonly addresses: AppAddresses; readonly signals: StopSignals },
) {
  const { jobs, longPoll, audit, largeResults, appBuilds } = given
  const running = new RunningWorkers(ports.clock)
  const undelivered = new UndeliveredResults(ports, jobs, running)
  const models = new EndpointModels(ports)
  const suspender = new WorkerSuspender(ports, { ...FREEZE_RULES, ...config.freezing })
  const workerFreezer = new WorkerFreezer(ports, running, suspender, {
    ...PLACEMENT_RULES,
    ...PAUSE_RULES,
    ...config.placing,
    ...config.pausing,
  })
  const fleet = new Fleet(ports, { jobs, running, undelivered, models, workerFreezer, audit, appBuilds }, addresses)
  const lostJobs = new LostJobs(ports, { jobs, fleet, running, undelivered })
  const stops = new JobStops(ports, longPoll, running, signals.closed)
  const prestarts = new Prestarts(ports, fleet, running, signals.closed)
  const failedStarts = new FailedStarts(ports, jobs, fleet)
  const shortRuns = new ShortRuns(ports)
  const takes = new Takes(ports, { jobs, fleet, running, stops, lostJobs, prestarts, shortRuns }, signals)
  const calls = new WorkerCalls(ports, { jobs, fleet, running, stops, lostJobs, failedStarts, largeResults })
  const cards = new CardReader(ports)
  return { running, models, cards, suspender, workerFreezer, fleet, lostJobs, stops, takes, calls, shortRuns }
}

/** Requests for load-balancing endpoints: their queues, their way to workers, and the health of those workers. */
function balancingServices(
  ports: Ports,
  config: AppConfig,
  given: {
    readonly access: Access
    readonly addresses: AppAddresses
    readonly signals: StopSignals
    readonly requests: (Targets & Traffic) | undefined
    readonly apps: Apps
  },
) {
  const { clock } = ports
  const { httpThreads = [] } = config
  const threads = httpThreads.length === 0 ? null : new DecidingSide(ports, httpThreads)
  const requestQueues = new RequestQueues(ports, {
    sharing: threads,
    limits: config.requestQueueLimits ?? {},
    canResume: (endpointId, workerId) => canResume(ports, endpointId, workerId),
  })
  const balancing = new LoadBalancer(ports, given.requests ?? requestQueues, config.startAware ?? false)
  const nextTurn = (callback: () => void) => void clock.after(0, callback)
  const forwarding = new Forwarder(
    { clock, reservations: requestQueues, nextTurn },
    { bodyBytes: config.balancedBodyBytes },
  )
  const gateway = new Gateway(ports, {
    access: given.access,
    forwarding,
    traffic: requestQueues,
    keyLimits: given.access.keyLimits,
    stopping: given.signals.stopping,
    queueAddress: id => jobsUrl(given.addresses, id),
    findTarget: (owner, place) => given.apps.target(owner, place),
    elsewhere: threads,
    ...(config.admission !== undefined && { rules: config.admission }),
  })
  return {
    requestQueues,
    balancing,
    gateway,
    /** Resolves once the events of all threads that read HTTP are emitted. */
    settleThreads: async () => threads?.settle(),
    /** Lets requests come to the threads that read HTTP, where there are some. */
    beginThreads(domains: EndpointDomains) {
      const findEndpoint = (id: EndpointId) => gateway.admitted(id)
      const { access, signals } = given
      const findTarget: FindTarget = (owner, place) => given.apps.target(owner, place)
      threads?.begin({ access, queues: requestQueues, findEndpoint, findTarget, domains, stopping: signals.stopping })
    },
    /** Ends all requests that pass to workers. */
    closeGateway() {
      requestQueues.close()
      threads?.close()
      gateway.close()
      forwarding.close()
      balancing.close()
    },
  }
}

/** Endpoints and templates, and the objects that these refer to. */
function endpointServices(
  ports: Ports,
  config: AppConfig,
  { quotas, fleet }: { readonly quotas: Quotas; readonly fleet: Fleet },
) {
  const domains = new EndpointDomains(ports, config.isServerName)
  const endpoints = new Endpoints(ports, fleet, quotas, domains, config.deleteRunningEndpoints)
  return {
    domains,
    endpoints,
    templates: new Templates(ports, quotas),
    catalog: new Catalog(ports, config.prices, { ...PLACEMENT_RULES, ...config.placing }),
    registries: new Registries(ports, quotas),
    tasks: new Tasks(ports, endpoints),
    releases: new Releases(ports, endpoints, fleet),
    secrets: new Secrets(ports, quotas),
    volumes: new Volumes(ports, quotas, 'network'),
    globalVolumes: new Volumes(ports, quotas, 'global'),
    modelOperations: new ModelOperations(ports),
  }
}

/** Readers of the event stream. @param emit the stream outside of the application */
function recordingServices(
  { events, uncached, auditKeeper }: ReturnType<typeof baseServices>,
  emit: Emit,
  config: AppConfig,
  {
    balancing,
    shortRuns,
    access,
  }: { readonly balancing: LoadBalancer; readonly shortRuns: ShortRuns; readonly access: Access },
) {
  const metrics = new MetricRecorder(
    uncached,
    loads => balancing.loaded(loads),
    () => balancing.queues(),
  )
  balancing.addPending(id => metrics.pendingRequests(id))
  const attemptTimes = new AttemptRecorder(uncached)
  const releaseResults = new ReleaseResults(uncached, config.judgesRollouts ?? true)
  const feed = new EventFeed(uncached)
  const tokens = new TokenCounter(uncached)
  for (const reader of [shortRuns, releaseResults, metrics, attemptTimes, auditKeeper, tokens, feed])
    events.add(reader.emit)
  events.add(access.keyLimits.emit)
  events.add(emit)
  const recorders: Recorders = { metrics, attemptTimes, audit: auditKeeper, releaseResults, tokens }
  return { recorders, feed, tokenSums: new TokenSums(uncached, tokens) }
}

type ObservedServices = ReturnType<typeof baseServices> &
  ReturnType<typeof jobServices> &
  ReturnType<typeof workerServices> &
  ReturnType<typeof balancingServices> &
  ReturnType<typeof recordingServices>

/** Explanations and views of the state. */
function observingServices(ports: Ports, config: AppConfig, services: ObservedServices) {
  const { balancing, running, models, gateway, jobRecords } = services
  const { metrics, attemptTimes } = services.recorders
  const freezeRules = { ...FREEZE_RULES, ...config.freezing }
  const explaining = new Explainer(ports, services, config.placing)
  return {
    freezeRules,
    explaining,
    overview: new Overview(ports, balancing, explaining, metrics.recent),
    machineReader: new MachineReader(ports, services, config.inspection ?? null),
    stories: new JobStories(ports, jobRecords, explaining),
    workers: new WorkerReader(ports, { running, models, balancing, explaining }),
    logs: new LogFinder(ports),
    scraping: new MetricsReader(ports, services.cards, id => gateway.passing(id), services.settleThreads),
    series: new MetricSeries(ports, metrics),
    whatIf: new WhatIf(ports, { balancing, recorder: attemptTimes }, config.prices ?? NO_PRICES, freezeRules),
  }
}

/** Addresses of pages of the console. */
function pageUrl(addresses: AppAddresses) {
  return (endpointId: EndpointId | null) => {
    const { consoleUrl = null } = addresses
    if (consoleUrl === null) return null
    return endpointId === null ? `${consoleUrl}/` : `${consoleUrl}/endpoints/${endpointId}`
  }
}

async function whyNotReady({ leader, store, storeDamage }: Ports, stopping: AbortSignal): Promise<string | null> {
  if (stopping.aborted) return 'the server is stopping'
  if (!leader.isLeader()) return 'the server does not act on the database'
  try {
    await store.workers.alive()
    const damage = storeDamage?.met() ?? null
    return damage === null ? null : `${damageText(damage)}; ${DAMAGE_ACTION}`
  } catch (error) {
    return toAppError(error).message
  }
}
