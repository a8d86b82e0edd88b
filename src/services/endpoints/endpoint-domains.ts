import { domainTaken, type IsServerName } from '../../core/endpoints/domain.ts'
import { domainProblems, type Endpoint, type EndpointConfig } from '../../core/endpoints/endpoint.ts'
import type { FieldProblem } from '../../core/field-problem.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'

/** Milliseconds after a failed read before a look-up reads again. */
const RETRY_MS = 1_000

/**
 * The domains of endpoints: which ones an endpoint may have, and all of them in memory, for a look-up with each request. One server acts on a
 * database, and all its changes go through {@link changing}.
 */
export class EndpointDomains {
  readonly #ports: Pick<Ports, 'store' | 'clock'>
  readonly #isServerName: IsServerName
  #known: ReadonlyMap<string, EndpointId> = new Map()
  #reading: Promise<void> | null = null
  /** Whether a change has come since the reading began. */
  #changed = false
  /** When the last read failed, in monotonic milliseconds; null when it did not. */
  #failedMs: number | null = null

  /** @param isServerName tells the names that no endpoint can have */
  constructor(ports: Pick<Ports, 'store' | 'clock'>, isServerName: IsServerName = () => false) {
    this.#ports = ports
    this.#isServerName = isServerName
  }

  /** Why an endpoint cannot have its domain, whoever else has it. @param before what is changed; null for a new endpoint */
  problems(config: EndpointConfig, before: EndpointConfig | null): FieldProblem[] {
    return domainProblems(config, before, this.#isServerName)
  }

  /** The store refuses one that is taken meanwhile. @throws AppError `conflict` when another endpoint has its domain */
  async requireFree({ id, owner, domain }: Endpoint): Promise<void> {
    if (domain === null) return
    const holder = await this.#ports.store.endpoints.ofDomain(domain)
    if (holder !== null && holder.endpointId !== id) throw domainTaken(domain, owner, holder)
  }

  /** Changes an endpoint. Look-ups know its domain when that is done, also where the store failed and may have changed it. @param after null for none */
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

  /** The endpoint of a domain; null for none. @param name in lower case, without a port and a dot at the end */
  find(name: string): EndpointId | null {
    if (this.#failedMs !== null && this.#ports.clock.monotonic() - this.#failedMs >= RETRY_MS) void this.load()
    return this.#known.get(name) ?? null
  }

  /** Reads them. While the store is away those of before stay, and look-ups read again. Never rejects. */
  load(): Promise<void> {
    if (this.#reading !== null) {
      this.#changed = true
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
        this.#changed = false
        const domains = await this.#ports.store.endpoints.domains()
        this.#known = new Map(domains.map(({ domain, endpointId }) => [domain, endpointId]))
      } while (this.#changed)
    } catch {
      this.#failedMs = this.#ports.clock.monotonic()
    }
  }
}
