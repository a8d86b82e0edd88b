/** The listeners of a run of the server: for clients, and through the relay for workers. */
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import type { Addresses, ClientTrust } from '../../api/addresses.ts'
import type { SurfaceName } from '../../api/surface.ts'
import type { App } from '../../app.ts'
import { type Config, SETTINGS } from '../../config/config.ts'
import { AppError } from '../../core/errors.ts'
import { fairShare } from '../../core/fair-share.ts'
import { ensureFolder, writeDurably } from '../../disk/durable-file.ts'
import { connectEngine } from '../../drivers/docker/engine/connection.ts'
import { BridgeNetwork } from '../../drivers/docker/network.ts'
import { addressList } from '../../gateway/entrance/forwarded.ts'
import type { ThreadChannel } from '../../gateway/threads/messages.ts'
import { functionFolder, functionSocket, workerSocket } from '../../relay/relay-file.ts'
import { type ConnectionCounts, connectionsWithin, reservedBeside } from '../../server/connections.ts'
import { ContainerAddress } from '../../server/container-address.ts'
import { functionCalls } from '../../server/function-calls.ts'
import { formatOrigin, type Listener, type ListenOptions, listen } from '../../server/listener.ts'
import type { Mount } from '../../server/mount.ts'
import { routing } from '../../server/mount.ts'
import { withPassage } from '../../server/passage.ts'
import { PassedRequests } from '../../server/passed-requests.ts'
import type { TakeCall } from '../../server/received-calls.ts'
import { sharedAddresses } from '../../server/shares.ts'
import { redirectToHttps } from '../../server/stand-in.ts'
import type { ListenerTls } from '../../server/tls.ts'
import type { CertificateInUse } from '../../system/certificates/certificate-in-use.ts'
import { DomainCertificates } from '../../system/certificates/domain-certificates.ts'
import { NamedCertificates, selfSignedFiles } from '../../system/certificates/self-signed.ts'
import { trustBundleFile } from '../../system/certificates/trust-bundle.ts'
import { systemClock } from '../../system/clock.ts'
import { ensureInstallation } from '../../system/coordination/identities.ts'
import { openFileLimit } from '../../system/hardware/open-files.ts'
import { portHolder } from '../../system/hardware/port-holder.ts'
import type { Log } from '../../system/observing/log.ts'
import { StartError } from '../start-error.ts'
import { consoleUrlFor, givenConsoleHost, serverHosts } from './addresses.ts'
import type { Front, Offered } from './front.ts'
import { HttpThreads, httpThreadsFor, passingIn } from './http-threads.ts'
import { inheritedSocket } from './inherited-socket.ts'
import type { RelayLink } from './relay.ts'

const STANDARD_CONNECTIONS = Number(SETTINGS.maxConnections?.fallback)

/**
 * The worker surface for workers in networks of their own; null where a relay has it, or no worker has such a network.
 */
export async function openWorkerSocket(
  app: App,
  config: Config,
  { relay }: RelayLink,
  log: Log,
): Promise<Listener | null> {
  const { workerSandbox, workerNetwork, dataDir, host, port } = config
  if (workerSandbox === 'off' || workerNetwork === 'shared' || relay?.hasSocket === true) return null
  const maxConnections = connectionLimit(config)
  try {
    return await listen(app.fetch(['worker']), { host, port, maxConnections, file: workerSocket(dataDir) })
  } catch (error) {
    log.warn({ problem: String(error), consequence: NO_SOCKET }, 'workers.unreachable')
    return null
  }
}

const NO_SOCKET = 'workers in networks of their own cannot call the server'
const NO_FUNCTION_SOCKET = 'functions of apps in networks of their own cannot call others'

/**
 * Listens for functions of apps, whose workers have networks of their own or are containers: the addresses of clients
 * without pages, uploads and files, for tokens of workers alone. Null where no worker has such a network.
 */
async function listenForFunctions(
  front: Front,
  { workerSandbox, workerNetwork, docker, dataDir }: Config,
  options: ListenOptions,
  log: Log,
): Promise<Listener | null> {
  const hasNetworks = workerSandbox !== 'off' && workerNetwork !== 'shared'
  if (!hasNetworks && docker === 'off') return null
  try {
    ensureFolder(functionFolder(dataDir))
    const routeOf = options.mount === undefined ? () => null : routing(options.mount)
    const own = { ...options, host: '127.0.0.1', port: 0, callProblem: functionCalls(routeOf) }
    const listener = await listen(front.fetch(OF_FUNCTIONS), own)
    return await withPassage(listener, functionSocket(dataDir), options.maxConnections)
  } catch (error) {
    log.warn({ problem: String(error), consequence: NO_FUNCTION_SOCKET }, 'workers.unreachable')
    return null
  }
}

/** Minimum interval between log lines about too many connections. */
const FULL_LOG_MS = 60_000

/** Limit of connections of a listener for management alone. */
const ADMIN_CONNECTIONS = 1_000
/** The surfaces of the public listener where management has one of its own. */
const PUBLIC: readonly SurfaceName[] = ['jobs', 'openai', 'worker', 's3']
/** The surfaces for functions of apps; that of workers, too, where both have one address. */
const OF_FUNCTIONS: readonly SurfaceName[] = ['jobs', 'rest', 'graphql', 'worker']
/** The surfaces of that one; the job operations too, so that commands need one address. */
const ADMIN: readonly SurfaceName[] = ['rest', 'restV1', 'graphql', 'jobs', 'openai', 'uploads', 'ops', 'console']

/** The listeners of a run of the server. */
export interface Listeners {
  /** Job operations, load-balancing endpoints, calls of workers; and management, unless that has its own. */
  readonly open: Listener
  /** Management; null where {@link open} has it. */
  readonly admin: Listener | null
  /** The listener for calls of the relay, or of workers without one: {@link open}, or one of its own beside HTTPS. */
  readonly workers: Listener
  /** The listener for calls of pods alone; null without one. */
  readonly pods: Listener | null
  /** The listener that redirects plain HTTP to HTTPS; null without one. */
  readonly redirect: Listener | null
  /** Ways to the threads that read HTTP; empty if this thread reads it. */
  readonly channels: readonly ThreadChannel[]
  /** Begins to answer: until then new connections wait. */
  answer(): void
  /** As {@link Listener.close}, of all. */
  close(graceMs: number): Promise<void>
}

/**
 * Listens with all surfaces and the load-balancing endpoints; with management on a port of its own where one is given.
 * @throws StartError
 */
export async function bind(
  front: Front,
  config: Config,
  log: Log,
  certificate: CertificateInUse | null,
): Promise<Listeners> {
  const { host, port, adminHost, adminPort, tls } = config
  const limits = configuredCounts(config)
  const { maxConnections } = limits
  if (maxConnections < config.maxConnections)
    // Whoever gave no number has nothing to change.
    log[config.maxConnections === STANDARD_CONNECTIONS ? 'debug' : 'warn'](
      { maxConnections },
      'the limit of open files (ulimit -n) allows fewer connections than --max-connections',
    )
  let loggedMs = Number.NEGATIVE_INFINITY
  const onFull = () => {
    if (systemClock.monotonic() - loggedMs < FULL_LOG_MS) return
    loggedMs = systemClock.monotonic()
    log.warn({ maxConnections }, 'connections are turned away because there are too many')
  }
  const hosts = serverHosts(config)
  // Domains of endpoints have no management.
  const withDomains = { ...hosts, also: (name: string) => front.findEndpoint(name) !== null }
  const trusts = addressList(config.trustedProxies)
  const { refuses, standIn } = front
  const consoleHost = givenConsoleHost(config)
  const { promise: opening, resolve: answer } = Promise.withResolvers<void>()
  const shared = { onFull, refuses, hosts, trusts, consoleHost, opening, ...secured(config, certificate) }
  const most = Math.min(ADMIN_CONNECTIONS, maxConnections)
  const ofOpen = {
    maxConnections,
    limits,
    ...shared,
    ...ofDomains(front, config, certificate),
    hosts: withDomains,
    standIn: () => standIn(adminPort === null ? 'all' : 'open'),
  }
  const ofAdmin = { maxConnections: most, ...shared, standIn: () => standIn('management') }
  const surfaces = adminPort === null ? undefined : PUBLIC
  const mount = createMount(front, config)
  const ofClients = { host, port, ...inherited(), ...ofOpen, mount }
  const count = httpThreadsFor(config, ofClients.inherited !== undefined, log)
  const threads = count === 1 ? null : await openThreads(front, config, { count, surfaces, options: ofClients })
  const open = threads?.listener ?? (await listenAt(front, surfaces, ofClients, '--port'))
  const opened: Listener[] = [open]
  const also = async (surfaces: readonly SurfaceName[], options: ListenOptions, option: string) => {
    const listener = await listenAt(front, surfaces, options, option)
    opened.push(listener)
    return listener
  }
  const close = async (graceMs: number) => void (await Promise.all(opened.map(listener => listener.close(graceMs))))
  try {
    const ofManagement = { host: adminHost, port: adminPort ?? 0, ...ofAdmin }
    const admin = adminPort === null ? null : await also(ADMIN, ofManagement, '--admin-port')
    const atPods = podListener(config)
    const ofPods = { maxConnections, opening, standIn: () => standIn('workers') }
    const pods = atPods === null ? null : await also(['worker'], { ...atPods, ...ofPods }, '--kubernetes-worker-port')
    const ofFunctions = { ...ofOpen, limits: {}, trusts: () => false, maxConnections: most, host, port, mount }
    const functions = await listenForFunctions(front, config, ofFunctions, log)
    if (functions !== null) opened.push(functions)
    // Calls of the relay need no way through another thread.
    const isApart = certificate !== null || threads !== null
    const ofWorkers = isApart ? await listenForWorkers(front, config, opening) : null
    if (ofWorkers !== null) opened.push(ofWorkers)
    const toHttps = redirectToHttps(() => httpsPort(config, open))
    const ofRedirect = { onFull, refuses, hosts: withDomains, opening, maxConnections: most, standIn: () => toHttps }
    const redirect =
      tls.redirectPort === null
        ? null
        : await also([], { host, port: tls.redirectPort, ...ofRedirect }, '--http-redirect-port')
    const workers = ofWorkers ?? open
    const answerAll = () => {
      answer()
      threads?.threads.answer()
    }
    const channels = threads?.threads.channels ?? []
    return { open, admin, workers, pods, redirect, channels, answer: answerAll, close }
  } catch (error) {
    await close(0)
    throw error
  }
}

/**
 * Threads that listen in place of this one, which gets at a socket of its own what they pass on.
 * @throws StartError
 */
async function openThreads(
  front: Front,
  config: Config,
  given: {
    readonly count: number
    readonly surfaces: readonly SurfaceName[] | undefined
    readonly options: ListenOptions & { readonly limits: ConnectionCounts; readonly mount: Mount }
  },
): Promise<{ readonly listener: Listener; readonly threads: HttpThreads }> {
  const { count, surfaces, options } = given
  const { host, port, maxConnections, limits, mount, consoleHost = null } = options
  // A socket that shares its port does not fail beside another program that shares it.
  if (port !== 0) await tryPort(host, port, '--port')
  const passing = passingIn(config.dataDir)
  const { isShared: _, ...counts } = limits
  const { domain, ownHosts, closedHosts } = mount
  const data = {
    listen: { host, port },
    passing,
    maxConnections,
    limits: counts,
    consoleHost,
    hosts: serverHosts(config),
    mount: { domain, ownHosts, closedHosts },
    rules: { open: config.lbPublic, trustedProxies: config.trustedProxies },
    bodyBytes: config.lbBodyBytes,
  }
  let inner: Listener | null = null
  const call: TakeCall = (...request) => inner?.take(...request)
  const on = { full: options.onFull ?? (() => {}), crowded: () => inner?.makeRoom(), call }
  const threads = await HttpThreads.start(count, data, on).catch(error => {
    throw listenProblem(error as NodeJS.ErrnoException, host, port, '--port')
  })
  const passed = new PassedRequests(passing.secret)
  const { totals } = threads
  const own = { ...options, file: passing.file, passed, totals: { ...totals, connections: NO_TOTAL } }
  inner = await listen(front.fetch(surfaces), own).catch(async error => {
    await threads.close(0)
    throw error
  })
  front.onContainers = () => threads.refuse(front.subnets)
  const listener: Listener = {
    url: formatOrigin(host, threads.port),
    port: threads.port,
    makeRoom: () => inner?.makeRoom(),
    take: call,
    async close(graceMs: number) {
      await threads.close(graceMs)
      await inner?.close(0)
    },
  }
  return { listener, threads }
}

/** Connections of threads are bounded by those of their clients. */
const NO_TOTAL = { add: () => 0 }

/**
 * The addresses of the listeners for clients and for management, and the one that this machine reaches without a
 * relay.
 */
export function listenerAddresses({ open, admin, workers }: Listeners) {
  return { url: open.url, managementUrl: admin?.url ?? open.url, direct: workers.url }
}

/**
 * The origins of this server in its answers.
 * @param url of the listener for clients
 * @param managementUrl of the one for management
 */
export function serverOrigins(config: Config, url: string, managementUrl: string): Addresses {
  const { publicUrl, queueUrl, lbDomain } = config
  const origin = publicUrl ?? url
  const consoleUrl = consoleUrlFor(config, managementUrl)
  return {
    consoleUrl,
    publicUrl: publicUrl ?? managementUrl,
    queueUrl: queueUrl ?? origin,
    balancedUrl: origin,
    lbDomain,
    clientTrust: trustOf(config),
  }
}

/** The files with which clients trust a certificate that the server has made for itself. */
function trustOf({ tls, dataDir }: Config): ClientTrust | null {
  if (!tls.selfSigned) return null
  return { bundleFile: resolve(trustBundleFile(dataDir)), authorityFile: resolve(selfSignedFiles(dataDir).certificate) }
}

/**
 * The addresses of the listeners for other servers.
 * @param isBound true when they all run on this machine, because its workers do
 */
export function advertisedAddresses(
  { open, admin, pods, workers }: Listeners,
  { advertiseHost }: Config,
  isBound: boolean,
) {
  const at = (url: string) => {
    if (advertiseHost === null) return url
    const named = new URL(url)
    named.hostname = advertiseHost
    return named.origin
  }
  // One beside HTTPS is on loopback.
  const local = workers !== open && isBound ? workers.url : null
  return { openUrl: at(open.url), url: at(admin?.url ?? open.url), workersUrl: pods === null ? local : at(pods.url) }
}

/** The options of a listener for HTTPS; none for plain HTTP. */
function secured(config: Config, certificate: CertificateInUse | null): Pick<ListenOptions, 'tls' | 'field'> {
  if (certificate === null) return {}
  const { hstsSeconds } = config.tls
  const tls = servedTls(config, certificate)
  if (hstsSeconds === 0) return { tls }
  return { tls, field: ['strict-transport-security', `max-age=${hstsSeconds}`] }
}

/** A server that makes its own certificate makes those of domains, too; one of files has to name them. */
function ofDomains(
  { findEndpoint }: Offered,
  config: Config,
  certificate: CertificateInUse | null,
): Pick<ListenOptions, 'tls'> {
  const { tls, dataDir } = config
  if (certificate === null || !tls.selfSigned) return {}
  const isDomain = (name: string) => findEndpoint(name) !== null
  const now = () => systemClock.now()
  const certificates = new DomainCertificates({ dataDir, isDomain, now })
  const named = new NamedCertificates(dataDir, now)
  const pairFor = async (name: string) =>
    (await certificates.pairFor(name)) ?? (await named.pairFor(name, certificate.current))
  return { tls: Object.assign(servedTls(config, certificate), { pairFor }) }
}

/** A base address in plain HTTP leads clients of jobs to the port of HTTPS, at which others call endpoints. */
function servedTls({ publicUrl, queueUrl }: Config, certificate: CertificateInUse): ListenerTls {
  return {
    get current() {
      return certificate.current
    },
    watch: changed => certificate.watch(changed),
    answersPlain: [publicUrl, queueUrl].some(url => url?.startsWith('http:') === true),
  }
}

/** The port of HTTPS as clients know it: in front of the server may be something that leads another one to it. */
function httpsPort({ publicUrl }: Config, open: Listener): number {
  const { protocol, port } = new URL(publicUrl ?? open.url)
  return protocol === 'https:' ? Number(port || 443) : open.port
}

/**
 * The worker surface alone, in plain HTTP on loopback: neither the relay nor workers need the certificate. Workers
 * without a relay know its port, so it stays the same where that can be.
 */
async function listenForWorkers(front: Front, config: Config, opening: Promise<void>): Promise<Listener> {
  const { dataDir, directWorkers } = config
  const file = join(dataDir, 'worker-port')
  const previousPort = directWorkers ? Number(readText(file) ?? 0) : 0
  const surface = front.fetch(['worker'])
  const maxConnections = connectionLimit(config)
  const shared = { host: '127.0.0.1', hosts: serverHosts(config), maxConnections, opening }
  const options = { ...shared, standIn: () => front.standIn('workers') }
  const listener = await listen(surface, { ...options, port: previousPort }).catch(() =>
    listen(surface, { ...options, port: 0 }),
  )
  if (directWorkers && listener.port !== previousPort) writeDurably(file, `${listener.port}\n`)
  return listener
}

function readText(file: string): string | null {
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : null
}

/** The socket for clients, where systemd has opened it. @throws AppError */
function inherited(): Pick<ListenOptions, 'inherited'> {
  const socket = inheritedSocket(process.env, process.pid)
  return socket === null ? {} : { inherited: socket }
}

/** The address for calls of pods alone; null where no worker is a pod, or they call the port of clients. */
function podListener({ kubernetes }: Config): { readonly host: string; readonly port: number } | null {
  const { where, workerHost: host, workerPort: port } = kubernetes
  return where === 'off' || port === 0 ? null : { host, port }
}

async function listenAt(
  app: Offered,
  surfaces: readonly SurfaceName[] | undefined,
  options: ListenOptions,
  option: string,
): Promise<Listener> {
  const { host, port } = options
  try {
    return await listen(app.fetch(surfaces), options)
  } catch (error) {
    throw listenProblem(error as NodeJS.ErrnoException, host, port, option)
  }
}

function listenProblem(error: NodeJS.ErrnoException, host: string, port: number, option: string): StartError {
  const refusal = `cannot listen on ${host} port ${port}`
  if (error.code === 'EADDRNOTAVAIL')
    return new StartError(
      `${refusal}: no interface of this machine has that address (EADDRNOTAVAIL); give another --host`,
    )
  if (error.code === 'EACCES')
    return new StartError(
      `${refusal}: this user may not open it (EACCES); give another ${option}, or the right to do so (CAP_NET_BIND_SERVICE)`,
    )
  if (error.code !== 'EADDRINUSE') return new StartError(`${refusal}: ${error.message}`)
  const holder = portHolder(port)
  return new StartError(`port ${port} is in use${holder === null ? '' : ` by ${holder}`}; give another ${option}`)
}

/**
 * Tries the ports of the settings, before anything is written.
 * @throws StartError when the server could not listen at one
 */
export async function tryPorts({ host, port, adminHost, adminPort, tls }: Config): Promise<void> {
  if (inherited().inherited === undefined) await tryPort(host, port, '--port')
  if (adminPort !== null) await tryPort(adminHost, adminPort, '--admin-port')
  if (tls.redirectPort !== null) await tryPort(host, tls.redirectPort, '--http-redirect-port')
}

async function tryPort(host: string, port: number, option: string): Promise<void> {
  const probe = createServer()
  try {
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject)
      probe.listen({ host, port }, resolve)
    })
  } catch (error) {
    throw listenProblem(error as NodeJS.ErrnoException, host, port, option)
  }
  await new Promise(resolve => probe.close(resolve))
}

/** One address, account or endpoint gets at most half unless a limit is given. */
function configuredCounts(config: Config): ConnectionCounts {
  const maxConnections = connectionLimit(config)
  const half = fairShare(maxConnections, 1 / 2)
  return {
    maxConnections,
    reserved: reservedBeside(maxConnections),
    perAddress: config.addressConnections ?? half,
    isShared: sharedAddresses(config.trustedProxies),
    perAccount: config.accountConnections ?? half,
    perEndpoint: config.endpointConnections ?? half,
  }
}

function createMount({ entrance, findEndpoint }: Offered, config: Config): Mount {
  const { lbDomain, publicUrl, queueUrl } = config
  const console = givenConsoleHost(config)
  const ownUrls = [publicUrl, queueUrl].filter(url => url !== null)
  return {
    entrance,
    findEndpoint,
    domain: lbDomain,
    ownHosts: ownUrls.map(url => new URL(url).host),
    closedHosts: console === null ? [] : [console],
  }
}

/** Maximum number of connections of a listener of this server. */
function connectionLimit(config: Config): number {
  const most = connectionsWithin(openFileLimit() ?? Number.POSITIVE_INFINITY)
  return Math.min(config.maxConnections, Number.isFinite(most) ? most - reservedBeside(most) : most)
}

/** The address for workers in containers; null where they are off. It is made when the first of them starts. */
export function openContainerAddress(
  front: Front,
  config: Config,
  log: Log,
  relay: Promise<RelayLink>,
): ContainerAddress | null {
  if (config.docker === 'off' || config.kubernetes.where !== 'off') return null
  const connection = () => {
    const connected = connectEngine(config.docker, process.env)
    if (connected === null) throw new AppError('unavailable', 'there is no container engine')
    return connected
  }
  const installation = ensureInstallation(config.dataDir)
  const maxConnections = connectionLimit(config)
  return new ContainerAddress({
    network: new BridgeNetwork({
      get engine() {
        return connection().engine
      },
      get local() {
        return connection().local
      },
      installation,
      given: config.dockerNetwork,
    }),
    given: config.dockerWorkerAddress,
    file: join(config.dataDir, 'container-address.json'),
    relay: async () => (await relay).relay,
    listen: (host, port) => listen(front.fetch(['worker']), { host, port, maxConnections }),
    moved: () => front.onContainers(),
    note: (event, fields) => log[event === 'containers.reachable' ? 'info' : 'warn'](fields, event),
  })
}
