import type { Addresses } from './api/addresses.ts'
import { BodyRoom } from './api/body.ts'
import { graphqlSurface } from './api/graphql/surface.ts'
import { jobSurface } from './api/jobs/routes.ts'
import { openAiSurface } from './api/openai/routes.ts'
import { opsSurface } from './api/ops/surface.ts'
import { restRoutes } from './api/rest/routes.ts'
import { restSurface } from './api/rest/surface.ts'
import { v1Error, v1Routes } from './api/rest-v1/routes.ts'
import { SURFACE_NAMES, type Surface, type SurfaceName } from './api/surface.ts'
import { dispatch } from './api/surfaces.ts'
import { workerSurface } from './api/worker/routes.ts'
import { Autoscaler } from './control/autoscaler.ts'
import { HealthChecker } from './control/health-checker.ts'
import { Loop } from './control/loop.ts'
import { Placer } from './control/placer.ts'
import { Reaper } from './control/reaper.ts'
import { Remover } from './control/remover.ts'
import { drainAll, killAll } from './control/shutdown.ts'
import { WebhookDispatcher } from './control/webhook-dispatcher.ts'
import { WorkerUsageMeter } from './control/worker-usage-meter.ts'
import { type WatchdogParts, WorkerWatchdog } from './control/worker-watchdog.ts'
import { type AccountLimits, NO_LIMITS } from './core/accounts/quotas.ts'
import type { RateWindow } from './core/accounts/rate-limit.ts'
import { NO_PRICES, type PriceList } from './core/billing/prices.ts'
import type { Endpoint } from './core/endpoints/endpoint.ts'
import { type FieldNames, GRAPHQL_NAMES, REST_NAMES } from './core/endpoints/field-names.ts'
import { DEFAULT_OWNER, type EndpointId, type WorkerId } from './core/ids.ts'
import { PLACEMENT_RULES, type PlacementRules } from './core/placement/placement-input.ts'
import { earliest } from './core/scaling/plan.ts'
import type { AdmissionRules } from './gateway/entrance/admission.ts'
import type { Entrance } from './gateway/entrance/route.ts'
import { Gateway } from './gateway/gateway.ts'
import { Forwarder } from './gateway/proxy/forwarder.ts'
import type { RequestQueueLimits } from './gateway/queue/request-queue.ts'
import { RequestQueues } from './gateway/queue/request-queues.ts'
import type { Ports } from './ports/ports.ts'
import type { Targets, Traffic } from './ports/targets.ts'
import { Access } from './services/accounts/access.ts'
import { Accounts } from './services/accounts/accounts.ts'
import { Keys } from './services/accounts/keys.ts'
import { Quotas } from './services/accounts/quotas.ts'
import { SHARING_RULES, Sharing, type SharingRules } from './services/accounts/sharing.ts'
import { Balancing } from './services/balancing/balancing.ts'
import { Billing } from './services/billing/billing.ts'
import { Endpoints } from './services/endpoints/endpoints.ts'
import { Releases } from './services/endpoints/releases.ts'
import { Templates } from './services/endpoints/templates.ts'
import { Volumes } from './services/endpoints/volumes.ts'
import { Catalog } from './services/hardware/catalog.ts'
import { Batches } from './services/jobs/batches.ts'
import { Jobs } from './services/jobs/jobs.ts'
import { LostJobs } from './services/jobs/lost-jobs.ts'
import { Streams } from './services/jobs/streams.ts'
import { UndeliveredResults } from './services/jobs/undelivered-results.ts'
import { Webhooks } from './services/jobs/webhooks.ts'
import { LongPoll } from './services/long-poll.ts'
import { Explainer } from './services/observing/explainer.ts'
import { LogReading } from './services/observing/log-reading.ts'
import { MetricsReader } from './services/observing/metrics-reader.ts'
import { Registries } from './services/secrets/registries.ts'
import { Secrets } from './services/secrets/secrets.ts'
import { Fleet } from './services/workers/fleet.ts'
import { ensureFolderEndpoint, type WorkerFolder } from './services/workers/folder-workers.ts'
import { WorkerActivities } from './services/workers/worker-activity.ts'
import type { WorkerAddresses } from './services/workers/worker-addresses.ts'
import { WorkerCalls } from './services/workers/worker-calls.ts'
import { WorkerReading } from './services/workers/worker-reading.ts'

/** What the application is told once the server listens. What can change is a getter. */
export interface AppAddresses extends Addresses, WorkerAddresses {}

/** What the application needs besides the ports. */
export interface AppConfig {
  readonly rateWindows: readonly RateWindow[]
  /** Whether each endpoint takes a limited number of calls; not when left out. */
  readonly limitJobs?: boolean
  /** Whether GraphQL deletes endpoints that may still have workers; not when left out, unless their account says so. */
  readonly deleteRunningEndpoints?: boolean
  /** How long workers may finish their jobs when the server stops. */
  readonly drainTimeoutMs: number
  /** Whether anybody may read the metrics; else a key with the right to read management is needed. */
  readonly metricsPublic?: boolean
  /** How workers share the machine; what is left out is as core/place says. */
  readonly placing?: Partial<PlacementRules> | undefined
  /** Most bytes of clients' request bodies that are held at once, and as many of workers' results. */
  readonly bodyBytes?: number
  /** What hardware costs; nothing when left out. */
  readonly prices?: PriceList | undefined
  /** Who gets in to load-balancing endpoints without a key, and who is believed; nobody when left out. */
  readonly admission?: AdmissionRules
  /** How many requests for load-balancing endpoints may wait, and how long; what is left out is as gateway/lines says. */
  readonly lines?: Partial<RequestQueueLimits>
  /** What follows from a second account; what is left out is as services/sharing.ts says. */
  readonly sharing?: Partial<SharingRules>
  /** How many bytes the body of a request for a load-balancing endpoint may have; 30 MB when left out. */
  readonly balancedBodyBytes?: number
  /** What accounts beside the operator's may have; no limits when left out. */
  readonly accountLimits?: AccountLimits
}

/** The use cases that the code which starts the server calls itself. */
export interface Services {
  readonly access: Access
  readonly keys: Keys
  readonly sharing: Pick<Sharing, 'problem'>
  /** The endpoint of a handler's folder, made when there is none yet; see services/folder-workers.ts. */
  readonly folderEndpoint: (folder: WorkerFolder) => Promise<Endpoint>
}

/** The whole control plane: the same in production, in tests and under the simulator's clock. */
export interface App {
  /** A function over the given surfaces; all of them by default. */
  fetch(offered?: readonly SurfaceName[]): Surface
  /** The way in to load-balancing endpoints, for listeners. */
  readonly entrance: Entrance
  readonly services: Services
  /** The requests for load-balancing endpoints, which whoever lets them in passes through. */
  readonly requestQueues: RequestQueues
  /** Adopts workers that an earlier run left and starts the loops. */
  start(addresses: AppAddresses): Promise<void>
  /**
   * Stops in order: no new work, held requests answered, workers drained for at most the configured time, their
   * unfinished jobs given back, what still passes to load-balancing endpoints ended. `hurry` ends the draining at once.
   */
  stop(hurry: AbortSignal): Promise<void>
  /**
   * Answers to calls of workers may have got lost on their way.
   * @param agoMs since when
   */
  answersLost(agoMs: number): void
  /** Stops the loops and nothing else; workers go on and the next start adopts them. */
  abandon(): Promise<void>
}

/**
 * The only wiring: ports in, surfaces and loops out.
 * @param requests those of load-balancing endpoints; `lines` of the result has them unless given
 */
export function createApp(ports: Ports, config: AppConfig, requests?: Targets & Traffic): App {
  const [stopping, closed] = [new AbortController(), new AbortController()]
  let addresses: AppAddresses = { publicUrl: '', queueUrl: '', workerUrl: '' }
  const waiting = new LongPoll(ports.clock, ports.notifier)
  const access = new Access(ports, config.rateWindows, config.limitJobs)
  const sharing = new Sharing(ports, { ...SHARING_RULES, ...config.sharing })
  const { quotas, ...management } = managementOf(ports, { access, sharing }, config)
  const jobs = new Jobs(ports, waiting, quotas)
  const canResume = (id: EndpointId, worker: WorkerId) => balancing.canResume(id, worker)
  const lines: RequestQueues = new RequestQueues(ports, { limits: config.lines ?? {}, canResume })
  const balancing = new Balancing(ports, requests ?? lines)
  const watching = { ...createWatching(ports, jobs, () => addresses), balancing }
  const batches = new Batches(ports, jobs, quotas)
  const endpointsBy = endpointsOf(ports, watching.fleet, config, quotas)
  const endpoints = endpointsBy(GRAPHQL_NAMES)
  const { explaining, workers } = createReaders(ports, watching, config)
  const read = { streams: new Streams(ports, { jobs, waiting }), logs: new LogReading(ports) }
  const ends = { stopping: stopping.signal, closed: closed.signal }
  const calls = new WorkerCalls(ports, { ...watching, jobs, waiting }, ends)
  const webhooks = new Webhooks(ports, jobs, sharing)
  const balanced = createGateway(ports, config, access, lines, stopping.signal)
  const loops = createLoops(ports, config, { ...watching, jobs, batches, webhooks, quotas })
  const abandon = () => {
    stopping.abort()
    closed.abort()
    balanced.close()
    balancing.close()
    return loops.stop()
  }

  const running = { balancing, access, endpoints, jobs, batches, webhooks, explaining, workers, calls, ...read }
  const shared = { ...management, quotas, ...running, ...roomsOf(ports, config), ...ends, ...usedBySurfaces(ports) }
  const rest = {
    ...shared,
    templates: new Templates(ports, REST_NAMES, quotas),
    endpoints: endpointsBy(REST_NAMES),
    addresses: () => addresses,
  }
  const surfaces = surfacesOf(shared, rest, opsParts(ports, config, stopping.signal, balanced.gateway))
  return {
    fetch: (offered = SURFACE_NAMES) => dispatch(surfaces, new Set(offered), ports),
    entrance: balanced.gateway,
    services: {
      access,
      sharing,
      keys: management.keys,
      folderEndpoint: folder => ensureFolderEndpoint({ ...shared, driver: ports.driver }, DEFAULT_OWNER, folder),
    },
    requestQueues: lines,
    async start(known) {
      addresses = known
      await management.accounts.ensureOperator()
      await watching.fleet.adoptAll()
      loops.start()
    },
    async stop(hurry) {
      stopping.abort()
      lines.close()
      await loops.autoscaling.stop()
      await drainAll(ports, watching, config.drainTimeoutMs, hurry)
      // It would take what is killed now for lost.
      await loops.reaping.stop()
      await killAll(ports, watching.fleet, hurry)
      await Promise.all([loops.delivering.stop(DELIVER_MS), access.saveCounts()])
      await abandon()
    },
    answersLost: agoMs => watching.sightings.doubtSince(ports.clock.monotonic() - agoMs),
    abandon,
  }
}

/** The ports that surfaces use themselves. */
function usedBySurfaces({ store, clock, vault, bodies, emit }: Ports) {
  return { store, clock, vault, bodies, emit }
}

type Shared = Parameters<typeof restSurface>[0] &
  Parameters<typeof graphqlSurface>[0] &
  Parameters<typeof jobSurface>[0] &
  Parameters<typeof openAiSurface>[0] &
  Parameters<typeof workerSurface>[0]
type RestParts = Parameters<typeof restRoutes>[0] & Parameters<typeof v1Routes>[0]
type Ops = ReturnType<typeof opsParts>

function surfacesOf(
  shared: Shared & Omit<Parameters<typeof opsSurface>[0], keyof Ops>,
  rest: RestParts,
  ops: Ops,
): Record<SurfaceName, Surface> {
  return {
    rest: restSurface(shared, restRoutes(rest)),
    restV1: restSurface(shared, v1Routes(rest), v1Error),
    graphql: graphqlSurface(shared),
    jobs: jobSurface(shared),
    openai: openAiSurface(shared),
    worker: workerSurface(shared),
    ops: opsSurface({ ...shared, ...ops }),
  }
}

/** The way of requests to the workers of load-balancing endpoints. */
function createGateway(ports: Ports, config: AppConfig, access: Access, lines: RequestQueues, stopping: AbortSignal) {
  const { clock } = ports
  const { admission, balancedBodyBytes: bodyBytes } = config
  const nextTurn = (callback: () => void) => void clock.after(0, callback)
  const forwarding = new Forwarder({ clock, reservations: lines, nextTurn }, { bodyBytes })
  const rules = admission === undefined ? {} : { rules: admission }
  const gateway = new Gateway(ports, { access, forwarding, traffic: lines, stopping, ...rules })
  const close = () => {
    lines.close()
    gateway.close()
    forwarding.close()
  }
  return { gateway, close }
}

/** What tells people how things are. */
function createReaders(ports: Ports, parts: WatchdogParts & { balancing: Balancing }, { placing }: AppConfig) {
  const explaining = new Explainer(ports, parts, placing)
  return { explaining, workers: new WorkerReading(ports, { ...parts, explaining }) }
}

/** Endpoints whose refusals call fields by the names that are given. */
function endpointsOf(ports: Ports, fleet: Fleet, { deleteRunningEndpoints }: AppConfig, quotas: Quotas) {
  return (names: FieldNames) => new Endpoints(ports, fleet, names, deleteRunningEndpoints, quotas)
}

/** The use cases of management that need no others. */
function managementOf(
  ports: Ports,
  { access, sharing }: { access: Access; sharing: Sharing },
  { prices, accountLimits = NO_LIMITS }: AppConfig,
) {
  const quotas = new Quotas(ports, accountLimits)
  return {
    accounts: new Accounts(ports, sharing, quotas),
    billing: new Billing(ports, prices ?? NO_PRICES),
    catalog: new Catalog(ports, prices),
    quotas,
    keys: new Keys(ports, access),
    templates: new Templates(ports, undefined, quotas),
    registries: new Registries(ports, quotas),
    volumes: new Volumes(ports, quotas),
    releases: new Releases(ports),
    secrets: new Secrets(ports, quotas),
  }
}

/** The workers, and what keeps an eye on them. */
function createWatching(ports: Ports, jobs: Jobs, addresses: () => WorkerAddresses): WatchdogParts {
  const unsent = new UndeliveredResults(ports, jobs)
  const fleet = new Fleet(ports, jobs, unsent, addresses)
  const sightings = new WorkerActivities(ports.clock)
  return { unsent, fleet, sightings, lostJobs: new LostJobs(ports, { jobs, fleet, sightings, unsent }) }
}

const BODY_BYTES = 256 * 1024 * 1024

/** Clients and workers have a room each, so that neither keeps the other out. */
function roomsOf({ clock, spill }: Ports, { bodyBytes: maxBytes = BODY_BYTES }: AppConfig) {
  return {
    room: new BodyRoom({ maxBytes, clock, spill: null }),
    // A worker throws a result away that is refused three times.
    resultRoom: new BodyRoom({ maxBytes, clock, spill }),
  }
}

/** The loops, not started yet; that of webhooks is stopped with a time for the calls that it makes. */
interface Loops {
  readonly autoscaling: Loop
  readonly reaping: Loop
  readonly delivering: { stop(forMs: number): Promise<void> }
  start(): void
  /** Ends all of them at once. */
  stop(): Promise<void>
}

function createLoops(
  ports: Ports,
  { placing }: AppConfig,
  services: WatchdogParts & { balancing: Balancing; jobs: Jobs; batches: Batches; webhooks: Webhooks; quotas: Quotas },
): Loops {
  const { fleet, balancing } = services
  const placer = new Placer(ports, services, { ...PLACEMENT_RULES, ...placing })
  const served = new WorkerUsageMeter(ports, balancing)
  const autoscaler = new Autoscaler(ports, { fleet, balancing, placer, served }, () => autoscaling.wake())
  const prober = new HealthChecker(ports, services, () => asking.wake())
  const reaper = new Reaper(ports, services, new WorkerWatchdog(ports, services))
  const remover = new Remover(ports, services.jobs)
  const courier = new WebhookDispatcher(ports, services.webhooks, () => loop.wake())
  const autoscaling: Loop = new Loop('autoscaler', ports, nowMs => autoscaler.step(nowMs))
  const asking: Loop = new Loop('prober', ports, async nowMs =>
    earliest([await prober.step(nowMs), await served.step(nowMs)]),
  )
  const reaping = new Loop('reaper', ports, nowMs => reaper.step(nowMs))
  const removing = new Loop('remover', ports, () => remover.step())
  const loop: Loop = new Loop('courier', ports, nowMs => courier.step(nowMs))
  ports.notifier.subscribe('fleet', reaping.wake)
  ports.notifier.subscribe('webhooks', loop.wake)
  ports.notifier.subscribe('endpoints', removing.wake)
  const loops = [autoscaling, asking, reaping, removing, loop]
  const unwatch = ports.leader.watch(now => {
    if (now !== 'active') return
    for (const one of loops) one.wake()
    // Another server may have changed them. Should the store fail, those of the start count.
    services.quotas.readLimits().catch(() => {})
  })
  const delivering = {
    async stop(forMs: number) {
      await loop.stop()
      await courier.end(forMs)
    },
  }
  return {
    autoscaling,
    reaping,
    delivering,
    start() {
      for (const one of loops) one.start()
    },
    async stop() {
      unwatch()
      await Promise.all([...loops.map(one => one.stop()), prober.end(), delivering.stop(0)])
    },
  }
}

function opsParts(ports: Ports, { metricsPublic = false }: AppConfig, stopping: AbortSignal, gateway: Gateway) {
  const scraping = new MetricsReader(ports, id => gateway.passing(id))
  return { scraping, metricsPublic, stopping, ready: () => isReady(ports, stopping) }
}

/** How long calls of webhooks may take to end when the server stops. */
const DELIVER_MS = 2_000

async function isReady(ports: Ports, stopping: AbortSignal): Promise<boolean> {
  if (stopping.aborted || !ports.leader.isLeader()) return false
  try {
    await ports.store.workers.alive()
    return true
  } catch {
    return false
  }
}
