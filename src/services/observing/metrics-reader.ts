import { gpuKey } from '../../core/hardware/inventory.ts'
import type { EndpointId } from '../../core/ids.ts'
import type { EndpointLoad } from '../../core/scaling/scale.ts'
import type { Exposition, GatewayLoad, MeasuredGpu } from '../../ports/metrics.ts'
import type { Ports } from '../../ports/ports.ts'
import type { CardReader } from '../hardware/card-reader.ts'

/** Limits of endpoints that one read of the store returns, and of reads. */
const PAGE = { endpoints: 100, pages: 50 }
/** Time for which one exposition serves all readers. */
const KEEP_MS = 1_000

/** Reads the metrics of the server. The store is read at most once a second, however often they are scraped. */
export class MetricsReader {
  readonly #ports
  readonly #cards
  readonly #passing
  #latest: { readonly atMs: number; readonly exposition: Promise<Exposition> } | null = null

  readonly #settle

  /**
   * @param passing counts of the requests of an endpoint in the gateway
   * @param settle resolves once the events of all threads are counted
   */
  constructor(
    ports: Ports,
    cards: CardReader,
    passing: (id: EndpointId) => GatewayLoad,
    settle: () => Promise<void> = async () => {},
  ) {
    this.#settle = settle
    this.#ports = ports
    this.#cards = cards
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
    const read = [this.#loads().catch(() => null), this.#gpus().catch(() => []), this.#settle()] as const
    const [loads, gpus] = await Promise.all(read)
    return this.#ports.metrics.expose(loads, this.#passing, gpus)
  }

  /** The GPUs of the last reading; it is made for placement, or since the previous scrape. */
  async #gpus(): Promise<readonly MeasuredGpu[]> {
    const { gpuMeter, machine, store } = this.#ports
    if (gpuMeter === undefined) return []
    const { gpus } = await machine.parts()
    if (!gpus.some(({ vendor }) => vendor === 'NVIDIA')) return []
    const uses = this.#cards.uses(await store.workers.alive())
    return gpus.flatMap(gpu => {
      const use = uses.get(gpuKey(gpu))
      if (use === undefined) return []
      const { totalMb, freeMb, foreignMb } = use
      return [{ index: gpu.index, totalMb, freeMb, foreignMb }]
    })
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
