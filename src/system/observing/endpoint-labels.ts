import type { EndpointId } from '../../core/ids.ts'

/** The label of all endpoints beyond the limit. */
const OTHER = 'other'
const MAX_GONE = 1_000

/**
 * Chooses the endpoints that have series of their own. Their number has a limit, because each costs memory here and
 * wherever the metrics are stored; the others are counted together.
 */
export class EndpointLabels {
  readonly #max
  readonly #onDrop
  readonly #labels = new Set<EndpointId>()
  /** Endpoints that the latest list lacks; one that is missing twice was deleted. */
  #missing = new Set<EndpointId>()
  /** Deleted endpoints, for which late events may still come. */
  readonly #deleted = new Set<EndpointId>()

  /** @param onDrop called with each series to remove */
  constructor(max: number, onDrop: (label: string) => void) {
    this.#max = max
    this.#onDrop = onDrop
  }

  /** The label for an endpoint: its id, or that of the others. */
  get(id: EndpointId): string {
    if (this.#labels.has(id)) return id
    if (this.#deleted.has(id) || this.#labels.size >= this.#max) return OTHER
    this.#labels.add(id)
    return id
  }

  /** Records that an endpoint was deleted. */
  drop(id: EndpointId): void {
    if (this.#deleted.size >= MAX_GONE) this.#deleted.clear()
    this.#deleted.add(id)
    if (this.#labels.delete(id)) this.#onDrop(id)
  }

  /** Records the existing endpoints. Another server may have deleted some, or this one before its last start. */
  existing(ids: ReadonlySet<EndpointId>): void {
    const missing = new Set([...this.#labels].filter(id => !ids.has(id)))
    for (const id of missing) if (this.#missing.has(id)) this.drop(id)
    this.#missing = missing
  }
}
