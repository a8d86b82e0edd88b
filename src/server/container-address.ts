/**
 * The address at which workers in containers reach this server: a listener with the worker surface alone, on the
 * gateway of their network or another address that fits their engine (docs/adr/0018). The relay listens there, so
 * that it exists while the server is away.
 */
import { readFileSync } from 'node:fs'
import { AppError, toAppError } from '../core/errors.ts'
import { type ContainerWay, containerReach, isWithin } from '../core/workers/container-reach.ts'
import { removeDurably, writeDurably } from '../disk/durable-file.ts'
import type { ContainerNetwork, WorkerNetwork } from '../ports/container-network.ts'
import { formatOrigin, type Listener } from './listener.ts'

/** The part of a relay that containers need. */
export interface ContainerRelay {
  /** The port of its loopback address. */
  readonly port: number
  /** Its other address; null without one. */
  readonly outer: { readonly host: string; readonly port: number } | null
  /** Lets it listen on another address, too. @returns its port */
  listenToo(address: { host: string; port: number }): Promise<number>
}

/** Network and addresses with which a container calls this server. */
export interface Attached extends Pick<ContainerWay, 'extraHosts' | 'serving'> {
  readonly network: string
  /** Origin of the worker surface. */
  readonly url: string
}

/** The content of the file. */
interface KeptAddress {
  readonly url: string
  readonly listenOn: string
  readonly port: number
  readonly subnets: readonly string[]
  readonly gateway: string | null
}

/** The address for containers, checked before each start of a container. */
export class ContainerAddress {
  readonly #parts
  #kept: KeptAddress | null
  #listener: { readonly host: string; readonly listener: Listener } | null = null
  #attaching: Promise<Attached> | null = null
  #attached: Attached | null = null
  #problem: string | null = null
  /** The last log entry. */
  #reported: string | null = null

  constructor(parts: {
    readonly network: ContainerNetwork
    /** The address or name of a setting; null to find one. */
    readonly given: string | null
    /** The file that keeps the address for the next run. */
    readonly file: string
    /** The relay after its start; null without one. */
    readonly relay: () => Promise<ContainerRelay | null>
    /** Listens with the worker surface. */
    readonly listen: (host: string, port: number) => Promise<Listener>
    /** Called when {@link subnets} may have changed. */
    readonly moved?: () => void
    /** Called for each change, for the log. */
    readonly note: (event: 'containers.reachable' | 'containers.unreachable', fields: object) => void
  }) {
    this.#parts = parts
    this.#kept = readKept(parts.file)
  }

  /**
   * Makes sure that the network exists and that this server can be reached from it.
   * @throws AppError `unavailable` with the reason and the remedy
   */
  attach(): Promise<Attached> {
    this.#attaching ??= this.#attach()
      .then(attached => {
        this.#attached = attached
        return attached
      })
      .catch(thrown => {
        this.#attached = null
        const problem = toAppError(thrown).message
        if (problem !== this.#problem) this.#parts.note('containers.unreachable', { problem })
        this.#problem = problem
        this.#reported = null
        throw thrown
      })
      .finally(() => {
        this.#attaching = null
      })
    return this.#attaching
  }

  /**
   * After a start: listens again at the address that containers of an earlier run may call. A failure is
   * repeated with the next container.
   */
  async resume(): Promise<void> {
    if (this.#kept !== null) await this.attach().catch(() => {})
  }

  /**
   * The network of a container whose worker got its address a moment ago, as it was found then: the engine is
   * asked once for each start.
   * @throws as {@link attach}
   */
  async connection(): Promise<Attached> {
    return this.#attached ?? this.attach()
  }

  /** Origin for a new worker in a container. @throws as {@link attach} */
  async url(): Promise<string> {
    return (await this.attach()).url
  }

  /** Origin at which running containers reach this server; null without one. */
  get currentUrl(): string | null {
    return this.#kept?.url ?? null
  }

  /** The networks of its containers. */
  get subnets(): readonly string[] {
    return this.#kept?.subnets ?? []
  }

  /** True if a connection from this address is a container's. */
  isContainer(address: string | undefined): boolean {
    return address !== undefined && isWithin(address, this.subnets)
  }

  /** Stops listening, and leaves the network to the next server. */
  async leave(graceMs: number): Promise<void> {
    await this.#listener?.listener.close(graceMs)
  }

  /** Stops listening, and removes the network unless it has containers. */
  async close(graceMs: number): Promise<void> {
    await this.#listener?.listener.close(graceMs)
    if (this.#kept === null) return
    const isRemoved = await this.#parts.network.remove().catch(() => false)
    if (isRemoved) removeDurably(this.#parts.file)
  }

  async #attach(): Promise<Attached> {
    const { network, given } = this.#parts
    const [subnet] = this.#kept?.subnets ?? []
    const gateway = this.#kept?.gateway ?? null
    const range = subnet === undefined || gateway === null ? null : { subnet, gateway }
    const ensured = await network.ensure(range)
    const way = containerReach(ensured, given)
    if (way.how === 'none') {
      const reason = way.action === null ? way.problem : `${way.problem}; ${way.action}`
      throw new AppError('unavailable', `containers cannot reach this server: ${reason}`)
    }
    const port = await this.#portOn(way)
    const url = formatOrigin(way.host, port)
    this.#remember(
      { url, listenOn: way.listenOn, port, subnets: ensured.subnets, gateway: ensured.gateway },
      ensured,
      way.how,
    )
    return { network: ensured.name, url, extraHosts: way.extraHosts, serving: way.serving }
  }

  async #portOn({ listenOn: host }: ContainerWay): Promise<number> {
    const relay = await this.#parts.relay()
    if (relay !== null && host.startsWith('127.')) return relay.port
    if (relay?.outer?.host === host) return relay.outer.port
    if (this.#listener?.host === host) return this.#listener.listener.port
    const port = this.#kept?.listenOn === host ? this.#kept.port : (relay?.port ?? 0)
    try {
      if (relay !== null) return await relay.listenToo({ host, port })
    } catch {
      // The relay is away for a moment, or of an earlier version.
    }
    const { listen } = this.#parts
    const previous = this.#listener?.listener
    try {
      this.#listener = { host, listener: await listen(host, port).catch(() => listen(host, 0)) }
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      const problem = `cannot listen on ${host}, where containers would call: ${code}`
      throw new AppError('unavailable', problem, { cause })
    }
    void previous?.close(0)
    return this.#listener.listener.port
  }

  #remember(address: KeptAddress, { name, isolated }: WorkerNetwork, how: string): void {
    this.#problem = null
    const text = JSON.stringify(address)
    if (text !== JSON.stringify(this.#kept)) writeDurably(this.#parts.file, `${text}\n`)
    this.#kept = address
    this.#parts.moved?.()
    if (this.#reported === text) return
    this.#reported = text
    this.#parts.note('containers.reachable', { url: address.url, network: name, how, isolated })
  }
}

function readKept(file: string): KeptAddress | null {
  try {
    const { url, listenOn, port, subnets, gateway } = JSON.parse(readFileSync(file, 'utf8')) as Partial<KeptAddress>
    if (typeof url !== 'string' || typeof listenOn !== 'string' || typeof port !== 'number') return null
    return { url, listenOn, port, subnets: Array.isArray(subnets) ? subnets : [], gateway: gateway ?? null }
  } catch {
    return null
  }
}
