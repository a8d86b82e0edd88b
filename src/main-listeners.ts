/** Where a run of the server listens: for clients, and through the relay for workers. */
import { join } from 'node:path'
import type { App } from './app.ts'
import type { Config } from './config.ts'
import { AppError } from './core/errors.ts'
import { connectEngine } from './drivers/docker/connection.ts'
import type { ContainerConnection } from './drivers/docker/container-spec.ts'
import { createContainerNetwork } from './drivers/docker/network.ts'
import { readBootId } from './drivers/process-table.ts'
import { keepRelay, type RelayKeeper, type RelayNote } from './relay/keeper.ts'
import { connectionsWithin } from './server/connections.ts'
import { ContainerAddress } from './server/container-address.ts'
import { type Listener, listen } from './server/listener.ts'
import type { Mount } from './server/mount.ts'
import { systemClock } from './system/clock.ts'
import { installationOf } from './system/installation.ts'
import type { createLog } from './system/log.ts'
import { openFileLimit } from './system/open-files.ts'
import { portHolder } from './system/port-holder.ts'

/** A reason for which the server cannot start, as a sentence for the person who started it. */
export class StartError extends Error {}

type Log = ReturnType<typeof createLog>

/** What goes wrong here is told, and workers then get the address of the server itself. */
export async function openRelay(config: Config, log: Log): Promise<RelayKeeper | null> {
  try {
    return await keepRelay({
      ...{ dataDir: config.dataDir, bootId: readBootId() },
      note: (what, fields) => log[TROUBLE.has(what) ? 'warn' : 'debug'](fields, what),
    })
  } catch (error) {
    log.warn({ problem: String(error), consequence: NO_RELAY }, 'relay.failed')
    return null
  }
}

const TROUBLE: ReadonlySet<RelayNote> = new Set(['relay.lost', 'relay.silent', 'relay.hung', 'relay.failed'])
const NO_RELAY = 'workers call the server itself, and results that come while it is away may be lost'

/** @param app is told when answers to workers were lost with a relay */
export async function connected(
  relay: RelayKeeper | null,
  server: string,
  app: App,
  log: Log,
): Promise<RelayKeeper | null> {
  const { hostname, port } = new URL(server)
  try {
    const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
    await relay?.connect(address, silentMs => app.answersLost(silentMs))
    return relay
  } catch (error) {
    log.warn({ problem: String(error), consequence: NO_RELAY }, 'relay.failed')
    await relay?.leave()
    return null
  }
}

/** How often at most it is logged that there are too many connections. */
const FULL_LOG_MS = 60_000

/**
 * Listens with all surfaces and the load-balancing endpoints.
 * @param refuses whether a caller is a container, which has an address of its own to call
 * @throws StartError
 */
export async function bind(
  app: App,
  config: Config,
  log: Log,
  refuses: (address: string | undefined) => boolean,
): Promise<Listener> {
  const maxConnections = connectionLimit(config)
  if (maxConnections < config.maxConnections)
    log.warn({ maxConnections }, 'the limit of open files (ulimit -n) allows fewer connections than --max-connections')
  let loggedMs = Number.NEGATIVE_INFINITY
  const onFull = () => {
    if (systemClock.monotonic() - loggedMs < FULL_LOG_MS) return
    loggedMs = systemClock.monotonic()
    log.warn({ maxConnections }, 'connections are turned away because there are too many')
  }
  try {
    const { host, port } = config
    return await listen(app.fetch(), { host, port, maxConnections, onFull, refuses, mount: mountOf(app, config) })
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EADDRINUSE') {
      const holder = portHolder(config.port)
      throw new StartError(
        `port ${config.port} is in use${holder === null ? '' : ` by ${holder}`}; give another --port`,
      )
    }
    throw new StartError(`cannot listen on ${config.host} port ${config.port}: ${(error as Error).message}`)
  }
}

function mountOf({ entrance }: App, { lbDomain, publicUrl, queueUrl }: Config): Mount {
  const own = [publicUrl, queueUrl].filter(url => url !== null)
  return { entrance, domain: lbDomain, ownHosts: own.map(url => new URL(url).host) }
}

function connectionLimit(config: Config): number {
  return Math.min(config.maxConnections, connectionsWithin(openFileLimit() ?? Number.POSITIVE_INFINITY))
}

/** How new containers are connected. @param containers their address, once there is one */
export function connectionTo(containers: () => ContainerAddress | null): () => Promise<ContainerConnection> {
  return async () => {
    const attached = await containers()?.connection()
    if (attached === undefined) throw new AppError('unavailable', 'the server is still starting')
    const { network: name, extraHosts, serving } = attached
    return { name, extraHosts, serving }
  }
}

/** The address for workers in containers; null where they are off. It is made when the first of them starts. */
export function openContainerAddress(
  app: App,
  config: Config,
  log: Log,
  relay: () => RelayKeeper | null,
): ContainerAddress | null {
  if (config.docker === 'off') return null
  const connection = () => {
    const found = connectEngine(config.docker, process.env)
    if (found === null) throw new AppError('unavailable', 'there is no container engine')
    return found
  }
  const installation = installationOf(config.dataDir)
  const maxConnections = connectionLimit(config)
  return new ContainerAddress({
    network: createContainerNetwork({
      get engine() {
        return connection().engine
      },
      get local() {
        return connection().local
      },
      ...{ installation, given: config.dockerNetwork },
    }),
    given: config.dockerWorkerAddress,
    file: join(config.dataDir, 'container-address.json'),
    relay,
    listen: (host, port) => listen(app.fetch(['worker']), { host, port, maxConnections }),
    note: (what, fields) => log[what === 'containers.reachable' ? 'info' : 'warn'](fields, what),
  })
}
