/**
 * The address under which workers in containers reach this server: a listener with the worker surface alone, on the gateway of
 * their network or whatever fits their engine (docs/adr/0018). The relay has it, so that it is there while the server is away.
 */
import { readFileSync } from 'node:fs'
import { AppError, toAppError } from '../core/errors.ts'
import { type ContainerWay, containerReach, isWithin } from '../core/workers/container-reach.ts'
import { removeDurably, writeDurably } from '../disk/durable-file.ts'
import type { ContainerNetwork, FoundNetwork } from '../ports/container-network.ts'
import { type Listener, originOf } from './listener.ts'

/** A relay as far as containers need it. */
export interface ContainerRelay {
  /** The port of its loopback address. */
  readonly port: number
  /** Where it listens besides; null for nowhere. */
  readonly outer: { readonly host: string; readonly port: number } | null
  /** Lets it listen on another address, too; resolves with the port. */
  listenToo(wanted: { host: string; port: number }): Promise<number>
}

/** What a {@link ContainerAddress} needs. */
export interface ContainerAddressParts {
  readonly network: ContainerNetwork
  /** An address or name that somebody chose for this machine; null for what can be found out. */
  readonly given: string | null
  /** Remembers the address from one run to the next. */
  readonly file: string
  /** The relay, once there is one; null for none. */
  readonly relay: () => ContainerRelay | null
  /** Listens with the worker surface. */
  readonly listen: (host: string, port: number) => Promise<Listener>
  /** Told of each change, for the log. */
  readonly note: (what: 'containers.reachable' | 'containers.unreachable', fields: object) => void
}

/** What a container needs to be able to call this server. */
export interface Attached extends Pick<ContainerWay, 'extraHosts' | 'serving'> {
  readonly network: string
  /** Origin of the worker surface. */
  readonly url: string
}

/** What is remembered. */
interface Known {
  readonly url: string
  readonly listenOn: string
  readonly port: number
  readonly subnets: readonly string[]
  readonly gateway: string | null
}

/** The address for containers; it is looked after each time that a container is to start. */
export class ContainerAddress {
  readonly #parts: ContainerAddressParts
  #known: Known | null
  #listener: { readonly host: string; readonly listener: Listener } | null = null
  #attaching: Promise<Attached> | null = null
  #attached: Attached | null = null
  #problem: string | null = null
  /** What was noted last. */
  #told: string | null = null

  constructor(parts: ContainerAddressParts) {
    this.#parts = parts
    this.#known = readKnown(parts.file)
  }

  /**
   * Sees to it that there is a network and that this server can be called from it.
   * @throws AppError `unavailable` with the reason and what to do
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
        this.#told = null
        throw thrown
      })
      .finally(() => {
        this.#attaching = null
      })
    return this.#attaching
  }

  /** After a start: takes the address again that containers of an earlier run may call. What fails is tried again with the next one. */
  async resume(): Promise<void> {
    if (this.#known !== null) await this.attach().catch(() => {})
  }

  /**
   * How a container is connected whose worker was given its address a moment ago: as it was found then, so that the engine is
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

  /** Origin under which containers that run already reach this server; null where none does. */
  get knownUrl(): string | null {
    return this.#known?.url ?? null
  }

  /** Whether a connection from this address is one of a container. */
  isContainer(address: string | undefined): boolean {
    return address !== undefined && isWithin(address, this.#known?.subnets ?? [])
  }

  /** Stops to listen, and takes the network away where no container is left in it. */
  async close(graceMs: number): Promise<void> {
    await this.#listener?.listener.close(graceMs)
    if (this.#known === null) return
    const gone = await this.#parts.network.remove().catch(() => false)
    if (gone) removeDurably(this.#parts.file)
  }

  async #attach(): Promise<Attached> {
    const { network, given } = this.#parts
    const [subnet] = this.#known?.subnets ?? []
    const gateway = this.#known?.gateway ?? null
    const wanted = subnet === undefined || gateway === null ? null : { subnet, gateway }
    const found = await network.ensure(wanted)
    const way = containerReach(found, given)
    if (way.how === 'none') {
      const why = way.action === null ? way.problem : `${way.problem}; ${way.action}`
      throw new AppError('unavailable', `containers cannot reach this server: ${why}`)
    }
    const port = await this.#portOn(way)
    const url = originOf(way.host, port)
    this.#remember(
      { url, listenOn: way.listenOn, port, subnets: found.subnets, gateway: found.gateway },
      found,
      way.how,
    )
    return { network: found.name, url, extraHosts: way.extraHosts, serving: way.serving }
  }

  async #portOn({ listenOn: host }: ContainerWay): Promise<number> {
    const relay = this.#parts.relay()
    if (relay !== null && host.startsWith('127.')) return relay.port
    if (relay?.outer?.host === host) return relay.outer.port
    if (this.#listener?.host === host) return this.#listener.listener.port
    const port = this.#known?.listenOn === host ? this.#known.port : (relay?.port ?? 0)
    try {
      if (relay !== null) return await relay.listenToo({ host, port })
    } catch {
      // The relay is away for a moment or of an earlier version.
    }
    const { listen } = this.#parts
    const before = this.#listener?.listener
    try {
      this.#listener = { host, listener: await listen(host, port).catch(() => listen(host, 0)) }
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException
      const problem = `cannot listen on ${host}, where containers would call: ${code}`
      throw new AppError('unavailable', problem, { cause })
    }
    void before?.close(0)
    return this.#listener.listener.port
  }

  #remember(now: Known, { name, isolated }: FoundNetwork, how: string): void {
    this.#problem = null
    const text = JSON.stringify(now)
    if (text !== JSON.stringify(this.#known)) writeDurably(this.#parts.file, `${text}\n`)
    this.#known = now
    if (this.#told === text) return
    this.#told = text
    this.#parts.note('containers.reachable', { url: now.url, network: name, how, isolated })
  }
}

function readKnown(file: string): Known | null {
  try {
    const { url, listenOn, port, subnets, gateway } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Known>
    if (typeof url !== 'string' || typeof listenOn !== 'string' || typeof port !== 'number') return null
    return { url, listenOn, port, subnets: Array.isArray(subnets) ? subnets : [], gateway: gateway ?? null }
  } catch {
    return null
  }
}
