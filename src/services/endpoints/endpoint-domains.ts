import { domainTaken, type IsServerName } from '../../core/endpoints/domain.ts'
import { domainProblems, type Endpoint, type EndpointConfig } from '../../core/endpoints/endpoint.ts'
import type { FieldProblem } from '../../core/field-problem.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/** Milliseconds after a failed read before a look-up reads again. */
const RETRY_MS = 1_000

/**
 * Domains of endpoints: their rules, and all of them in memory for the look-up of each request. One server acts on a
 * database, and all its changes go through {@link changing}.
 */
export class EndpointDomains {
  readonly #ports
  readonly #isServerName
  #domains: ReadonlyMap<string, EndpointId> = new Map()
  readonly #watchers = new Set<() => void>()
  #reading: Promise<void> | null = null
  /** True after a change since the reading began. */
  #isChanged = false
  /** Monotonic time of the last failed read, in milliseconds; null after a read without an error. */
  #failedMs: number | null = null

  /** @param isServerName true for the names that no endpoint can have */
  constructor(ports: Ports, isServerName: IsServerName = () => false) {
    this.#ports = ports
    this.#isServerName = isServerName
  }

  /**
   * Problems of the domain of an endpoint, except a conflict with another endpoint.
   * @param previous the endpoint before the change; null for a new one
   */
  problems(config: EndpointConfig, previous: EndpointConfig | null): FieldProblem[] {
    return domainProblems(config, previous, this.#isServerName)
  }

  /**
   * The store checks again with the change itself.
   * @throws AppError `conflict` when another endpoint has its domain
   */
  async requireFree({ id, owner, domain }: Endpoint): Promise<void> {
    if (domain === null) return
    const holder = await this.#ports.store.endpoints.ofDomain(domain)
    if (holder !== null && holder.endpointId !== id) throw domainTaken(domain, owner, holder)
  }

  /**
   * Changes an endpoint, and reads the domains again when its own changed, also after an error of the store.
   * @param after the endpoint after the change; null for a deletion
   */
  async changing<Done>(
    before: Pick<Endpoint, 'domain'> | null,
    after: Pick<Endpoint, 'domain'> | null,
    change: () => Promise<Done>,
  ): Promise<Done> {
    try {
      return await change()
    } finally {
      if ((before?.domain ?? null) !== (after?.domain ?? null)) await this.load()
    }
  }

  /** The endpoint of a domain; null without one. @param name in lower case, without a port and a dot at the end */
  find(name: string): EndpointId | null {
    if (this.#failedMs !== null && this.#ports.clock.monotonic() - this.#failedMs >= RETRY_MS) void this.load()
    return this.#domains.get(name) ?? null
  }

  /** All domains with their endpoints. */
  get all(): ReadonlyMap<string, EndpointId> {
    return this.#domains
  }

  /** Calls back after each reading of all domains, before a change is answered. @returns ends that */
  watch(changed: () => void): () => void {
    this.#watchers.add(changed)
    return () => void this.#watchers.delete(changed)
  }

  /** Reads all domains. While the store is away the previous ones stay, and look-ups read again. Never rejects. */
  load(): Promise<void> {
    if (this.#reading !== null) {
      this.#isChanged = true
      return this.#reading
    }
    this.#failedMs = null
    this.#reading = this.#load().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #load(): Promise<void> {
    try {
      do {
        this.#isChanged = false
        const domains = await this.#ports.store.endpoints.domains()
        this.#domains = new Map(domains.map(({ domain, endpointId }) => [domain, endpointId]))
        for (const changed of this.#watchers) changed()
      } while (this.#isChanged)
    } catch {
      this.#failedMs = this.#ports.clock.monotonic()
    }
  }
}
