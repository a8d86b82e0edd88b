/**
 * The switch of all listeners: to the application of the present term, and between terms to the answers of a server
 * that stands by.
 */
import type { Fetch, SurfaceName } from '../../api/surface.ts'
import type { App } from '../../app.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Entrance } from '../../gateway/entrance/route.ts'
import type { ContainerAddress } from '../../server/container-address.ts'
import type { StandIn } from '../../server/stand-in.ts'
import type { Standby } from '../../server/standby.ts'

/** The part of an application that listeners need. */
export type Offered = Pick<App, 'fetch' | 'entrance'> & Pick<Front, 'findEndpoint'>

/** The purpose of a listener: all, or all but management, management alone, calls of workers alone. */
type ListenerKind = 'all' | 'open' | 'management' | 'workers'

/** Leads requests to the application of the present term. */
export class Front {
  readonly #standIns = new Map<ListenerKind, StandIn>()
  /** Surfaces of the present application, by the function that a listener calls. */
  readonly #surfaces = new Map<Fetch, Fetch>()
  #standby: Standby | null = null
  #app: App | null = null
  #containers: ContainerAddress | null = null

  /** The entrance of the present application; requests come here only while there is one. */
  readonly entrance: Entrance = {
    handle: (incoming, outgoing, route) => this.#app?.entrance.handle(incoming, outgoing, route),
    upgrade: (incoming, socket, head, route) => this.#app?.entrance.upgrade(incoming, socket, head, route),
  }

  /** Surfaces of the application that is present at a request. */
  fetch(offered?: readonly SurfaceName[]): Fetch {
    const answer: Fetch = (request, env) => {
      const cached = this.#surfaces.get(answer)
      if (cached !== undefined) return cached(request, env)
      const surface = this.#app?.fetch(offered)
      // The term ended just after the request had come.
      if (surface === undefined)
        return Promise.resolve(new Response('{"error":"this server stands by"}', { status: 503, headers: REFUSED }))
      this.#surfaces.set(answer, surface)
      return surface(request, env)
    }
    return answer
  }

  /** The endpoint of the present application that has a name as its own domain; null without one. */
  readonly findEndpoint = (name: string): EndpointId | null => this.#app?.services.domains.find(name) ?? null

  /** Answers with this while there is no application. */
  standsBy(standby: Standby): void {
    this.#standby = standby
    this.#standIns.clear()
  }

  /** The stand-in of a listener for the application; null while there is one. */
  readonly standIn = (kind: ListenerKind): StandIn | null => {
    if (this.#app !== null || this.#standby === null) return null
    const cached = this.#standIns.get(kind) ?? this.#standby.for(kind)
    this.#standIns.set(kind, cached)
    return cached
  }

  /** Calls back when the networks of containers may have changed. */
  onContainers: () => void = () => {}

  /** The networks of containers, which have an address of their own to call. */
  get subnets(): readonly string[] {
    return this.#containers?.subnets ?? []
  }

  /** True for a container of the present term, which has an address of its own to call. */
  readonly refuses = (address: string | undefined): boolean => this.#containers?.isContainer(address) === true

  /** Requests go to this application from now on. Its domains are loaded before. */
  async begin(app: App, containers: ContainerAddress | null): Promise<void> {
    await app.services.domains.load()
    this.#surfaces.clear()
    this.#app = app
    this.#containers = containers
    this.onContainers()
    app.beginThreads()
  }

  /** Ends the passing of requests to the application. */
  end(): void {
    this.#surfaces.clear()
    this.#app = null
    this.#containers = null
    this.onContainers()
  }
}

const REFUSED = { 'content-type': 'application/json', 'retry-after': '2' }
