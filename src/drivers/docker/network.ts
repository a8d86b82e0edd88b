/**
 * The network of an installation's containers: one bridge for all endpoints, because an engine has address ranges for
 * about 31. Its containers are kept from each other by the engine; they reach the internet through this machine.
 */
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { AppError } from '../../core/errors.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { AddressRange, ContainerNetwork, WorkerNetwork } from '../../ports/container-network.ts'
import type { EngineClient } from './engine/engine-client.ts'
import { engineRefusal, RefusedCall } from './engine/engine-error.ts'

/** Names the installation that a network belongs to. */
export const INSTALLATION_LABEL = 'runyard.installation'
const ISOLATION = 'com.docker.network.bridge.enable_icc'
const BRIDGE = 'com.docker.network.bridge.name'

/** A network, as the engine describes it. */
interface InspectedNetwork {
  readonly Id: string
  readonly Name: string
  readonly Driver?: string
  readonly Created: string
  readonly IPAM?: { readonly Config?: readonly { readonly Subnet?: string; readonly Gateway?: string }[] | null }
  readonly Options?: Readonly<Record<string, string>> | null
}

/** Facts that are constant for a network id. */
interface NetworkFacts {
  readonly id: string
  readonly engine: EngineFacts
  /** The gateway, if it is an address of this machine. */
  readonly address: string | null
}

/** The network of an installation on a Docker engine, or on Podman's. */
export class BridgeNetwork implements ContainerNetwork {
  readonly #options
  #finding: Promise<WorkerNetwork> | null = null
  #cached: NetworkFacts | null = null

  constructor(options: {
    readonly engine: Pick<EngineClient, 'call'>
    /** Letters and digits that name the installation on its engine. */
    readonly installation: string
    /** The network of a setting; null for the installation's own. */
    readonly given: string | null
    /** True where the engine's address is a socket in the file system of this machine. */
    readonly local: boolean
  }) {
    this.#options = options
  }

  /** Engines create a second network of the same name without an error, so there is only one call at a time. */
  ensure(range: AddressRange | null): Promise<WorkerNetwork> {
    this.#finding ??= this.#ensure(range)
      .catch(thrown => {
        throw engineProblem(thrown)
      })
      .finally(() => {
        this.#finding = null
      })
    return this.#finding
  }

  async remove(): Promise<boolean> {
    try {
      for (const { Id } of await this.#listOwn())
        await this.#options.engine.call({ method: 'DELETE', path: networkPath(Id) })
      return true
    } catch (thrown) {
      // Engines respond with 403 while containers are in it.
      if (refusalStatus(thrown) === 403 || refusalStatus(thrown) === 409) return false
      throw engineProblem(thrown)
    }
  }

  async #ensure(range: AddressRange | null): Promise<WorkerNetwork> {
    const { given, local } = this.#options
    const cached = this.#cached
    // After a failure all facts are read again.
    this.#cached = null
    const network = given === null ? await this.#findOrMake(range, cached?.id ?? null) : await this.#requireGiven(given)
    const ranges = (network.IPAM?.Config ?? []).filter(({ Subnet }) => Subnet?.includes('.') === true)
    const reported = ranges.find(({ Gateway }) => Gateway !== undefined)?.Gateway
    // Some engines leave it out for their default network.
    const gateway = reported?.replace(/\/\d+$/, '') ?? firstAddress(ranges[0]?.Subnet)
    const facts = cached?.id === network.Id ? cached : await this.#readFacts(network.Id, gateway)
    this.#cached = facts
    return {
      ...facts.engine,
      local,
      id: network.Id,
      name: network.Name,
      gateway,
      addresses: [...ownAddresses(), ...(facts.address === null ? [] : [facts.address])],
      subnets: ranges.flatMap(({ Subnet }) => (Subnet === undefined ? [] : [Subnet])),
      isolated: network.Options?.[ISOLATION] === 'false',
    }
  }

  async #readFacts(id: string, gateway: string | null): Promise<NetworkFacts> {
    const engine = await readEngineFacts(this.#options.engine)
    return { id, engine, address: gateway !== null && (await isOwn(gateway)) ? gateway : null }
  }

  async #requireGiven(name: string): Promise<InspectedNetwork> {
    const network = await this.#inspect(name)
    if (network === null) throw new AppError('unavailable', `the engine has no network '${name}' (--docker-network)`)
    if (network.Driver === 'host' || network.Driver === 'null') {
      throw new AppError(
        'unavailable',
        `workers cannot be in the network '${name}' (--docker-network): ${REFUSED[network.Driver]}`,
      )
    }
    return network
  }

  /** @param knownId the network of the last search; one call checks that it still exists */
  async #findOrMake(range: AddressRange | null, knownId: string | null): Promise<InspectedNetwork> {
    const previous = knownId === null ? null : await this.#inspect(knownId)
    // The list of some engines has fewer fields.
    const network = previous ?? (await this.#inspect((await this.#listOwn())[0]?.Id ?? null))
    if (network === null) return this.#read(await this.#make(range))
    if (network.Options?.[ISOLATION] === 'false') return network
    throw new AppError('unavailable', `containers in the network '${network.Name}' would reach each other; remove it`)
  }

  #read(id: string): Promise<InspectedNetwork> {
    return this.#options.engine.call({ method: 'GET', path: networkPath(id) })
  }

  async #inspect(id: string | null): Promise<InspectedNetwork | null> {
    if (id === null) return null
    try {
      return await this.#read(id)
    } catch (thrown) {
      if (refusalStatus(thrown) === 404) return null
      throw thrown
    }
  }

  async #listOwn(): Promise<InspectedNetwork[]> {
    const networks = await listNetworks(this.#options.engine, this.#options.installation)
    return networks.sort((a, b) => a.Created.localeCompare(b.Created))
  }

  /** @returns the id of the new network */
  async #make(range: AddressRange | null): Promise<string> {
    const { engine, installation } = this.#options
    const create = async (body: object) =>
      (await engine.call<{ Id: string }>({ method: 'POST', path: '/networks/create', body })).Id
    const base = {
      Name: `runyard-${installation}`,
      Driver: 'bridge',
      CheckDuplicate: true,
      // Names of interfaces have at most 15 characters. A fixed name allows firewall rules.
      Options: { [ISOLATION]: 'false', [BRIDGE]: `ry-${installation.slice(0, 12)}` },
      Labels: { [INSTALLATION_LABEL]: installation },
    }
    if (range === null) return create(base)
    const { subnet: Subnet, gateway: Gateway } = range
    try {
      return await create({ ...base, IPAM: { Driver: 'default', Config: [{ Subnet, Gateway }] } })
    } catch (thrown) {
      // The range is in use by now.
      if (refusalStatus(thrown) === undefined) throw thrown
      return create(base)
    }
  }
}

/** The networks of an installation. @throws as {@link EngineClient.call} */
export function listNetworks(engine: Pick<EngineClient, 'call'>, installation: string): Promise<InspectedNetwork[]> {
  const filters = { label: [`${INSTALLATION_LABEL}=${installation}`] }
  return engine.call({ method: 'GET', path: '/networks', query: { filters } })
}

function networkPath(name: string): string {
  return `/networks/${encodeURIComponent(name)}`
}

const REFUSED: Readonly<Record<string, string>> = {
  host: 'they would reach everything that listens on this machine',
  null: 'they would not reach the server',
}

type EngineFacts = Pick<WorkerNetwork, 'platform' | 'product' | 'operatingSystem' | 'rootless'>

async function readEngineFacts(engine: Pick<EngineClient, 'call'>): Promise<EngineFacts> {
  const [info, version] = await Promise.all([
    engine.call<{ OperatingSystem?: string; SecurityOptions?: string[] | null }>({ method: 'GET', path: '/info' }),
    engine.call<{ Components?: { Name: string }[] }>({ method: 'GET', path: '/version' }),
  ])
  const isPodman = (version.Components ?? []).some(({ Name }) => /podman/i.test(Name))
  return {
    platform: process.platform,
    product: isPodman ? 'podman' : 'docker',
    operatingSystem: info.OperatingSystem ?? '',
    rootless: (info.SecurityOptions ?? []).some(option => /rootless/.test(option)),
  }
}

/** The first address of a range, which a bridge has by default. */
function firstAddress(subnet: string | undefined): string | null {
  const base = /^(\d+\.\d+\.\d+)\.(\d+)\//.exec(subnet ?? '')
  return base === null ? null : `${base[1]}.${Number(base[2]) + 1}`
}

/** Addresses of running interfaces. The bridge of a network without containers has an address and does not run. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(list => (list ?? []).map(({ address }) => address))
}

/** True for an address of this machine, running or not. */
function isOwn(address: string): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: address, port: 0 }, () => server.close(() => resolve(true)))
  })
}

function refusalStatus(thrown: unknown): number | undefined {
  return thrown instanceof RefusedCall ? thrown.status : undefined
}

/** An engine's error as a sentence for the operator. */
function engineProblem(thrown: unknown): AppError {
  return engineRefusal(thrown, message => {
    const extras = { cause: thrown }
    if (/non-overlapping|address pool|subnet/i.test(message)) {
      const advice = "remove unused networks with 'docker network prune', or name one with --docker-network"
      return new AppError('unavailable', `the engine has no address range left for a network: ${advice}`, extras)
    }
    return new WorkerStartError({ kind: 'network_refused', said: message }, { ...extras, code: 'unavailable' })
  })
}
