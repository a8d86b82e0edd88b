import type { EndpointId } from '../../core/ids.ts'

/** The label of all endpoints beyond the limit. */
export const OTHER = 'other'
const MAX_GONE = 1_000

/**
 * Endpoints with series of their own. Their number has a limit, because each of them costs memory here and in
 * every store of the metrics; the rest are counted together.
 */
export class EndpointLabels {
  readonly #max: number
  readonly #onDrop: (label: string) => void
  readonly #labels = new Set<EndpointId>()
  /** Missing from the latest list of endpoints; one that is missing twice is gone. */
  #missing = new Set<EndpointId>()
  /** Deleted endpoints, for which late events may still come. */
  readonly #gone = new Set<EndpointId>()

  /** @param onDrop called with each series to remove */
  constructor(max: number, onDrop: (label: string) => void) {
    this.#max = max
    this.#onDrop = onDrop
  }

  /** The label for an endpoint: its id, or that of all others. */
  of(id: EndpointId): string {
    if (this.#labels.has(id)) return id
    if (this.#gone.has(id) || this.#labels.size >= this.#max) return OTHER
    this.#labels.add(id)
    return id
  }

  /** An endpoint was deleted. */
  drop(id: EndpointId): void {
    if (this.#gone.size >= MAX_GONE) this.#gone.clear()
    this.#gone.add(id)
    if (this.#labels.delete(id)) this.#onDrop(id)
  }

  /** These endpoints exist. Another server may have deleted some, or this one before it was started again. */
  existing(ids: ReadonlySet<EndpointId>): void {
    const missing = new Set([...this.#labels].filter(id => !ids.has(id)))
    for (const id of missing) if (this.#missing.has(id)) this.drop(id)
    this.#missing = missing
  }
}
