import type { EndpointId } from '../../core/ids.ts'
import type { EndpointLoad } from '../../core/scaling/scale.ts'
import type { Exposition, GatewayLoad } from '../../ports/metrics.ts'
import type { Ports } from '../../ports/ports.ts'

/** Limits of endpoints that one read of the store returns, and of reads. */
const PAGE = { endpoints: 100, pages: 50 }
/** Time for which one exposition serves all readers. */
const KEEP_MS = 1_000

/** Reads the metrics of the server. The store is read at most once a second, however often they are scraped. */
export class MetricsReader {
  readonly #ports
  readonly #passing
  #latest: { readonly atMs: number; readonly exposition: Promise<Exposition> } | null = null

  /** @param passing counts of the requests of an endpoint in the gateway */
  constructor(ports: Ports, passing: (id: EndpointId) => GatewayLoad) {
    this.#ports = ports
    this.#passing = passing
  }

  /** All metrics; while the store fails without those of the present state. */
  expose(): Promise<Exposition> {
    const nowMs = this.#ports.clock.monotonic()
    if (this.#latest === null || nowMs - this.#latest.atMs >= KEEP_MS) {
      this.#latest = { atMs: nowMs, exposition: this.#read() }
    }
    return this.#latest.exposition
  }

  async #read(): Promise<Exposition> {
    // The texts of two scrapes must not mix.
    await this.#latest?.exposition
    return this.#ports.metrics.expose(await this.#loads().catch(() => null), this.#passing)
  }

  async #loads(): Promise<EndpointLoad[]> {
    const loads: EndpointLoad[] = []
    let after: EndpointId | null = null
    for (let page = 0; page < PAGE.pages; page += 1) {
      const slice: EndpointLoad[] = await this.#ports.store.endpoints.loads(after, PAGE.endpoints)
      loads.push(...slice)
      if (slice.length < PAGE.endpoints) break
      after = slice.at(-1)!.endpointId
    }
    return loads
  }
}
