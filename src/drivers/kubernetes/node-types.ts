/** The GPUs of nodes: read once for each node, where the server may read nodes at all. */
import type { ReportedPlace } from '../../core/workers/platform-report.ts'
import type { Clock } from '../../ports/clock.ts'
import { type KubernetesApi, type KubernetesObject, kubernetesError } from './api.ts'
import { type GpuNaming, gpuTypeFromProduct, PRODUCT_LABEL } from './node-choice.ts'
import type { PodReport } from './pod-report.ts'

const KEEP_MS = 10 * 60_000
const MAX_NODES = 20_000

interface CachedNode {
  /** The product of its GPUs; null where it is not known. */
  product: string | null
  readonly askedMs: number
}

/** The places of pods, with the types of GPUs that they got. */
export class NodeTypes {
  readonly #api
  readonly #clock
  readonly #naming
  readonly #nodes = new Map<string, CachedNode>()
  readonly #onFound

  /** @param onFound called when a node that was asked for has been read */
  constructor(api: KubernetesApi, clock: Clock, naming: GpuNaming, onFound: () => void) {
    this.#api = api
    this.#clock = clock
    this.#naming = naming
    this.#onFound = onFound
  }

  /**
   * The place of a pod. Of several types that it wished the node says which it got; while that is not known, or when
   * nodes may not be read, it is taken to be the preferred one.
   */
  reportedPlace({ gpuTypes, gpuCount }: PodReport, node: string): ReportedPlace {
    if (gpuCount === 0) return { node, gpuType: null, gpuCount }
    const product = gpuTypes.length === 1 ? null : this.#findProduct(node)
    const gpuType = product === null ? (gpuTypes[0] ?? null) : gpuTypeFromProduct(product, gpuTypes, this.#naming)
    return { node, gpuType, gpuCount }
  }

  #findProduct(node: string): string | null {
    const cached = this.#nodes.get(node)
    if (cached !== undefined && this.#clock.monotonic() - cached.askedMs < KEEP_MS) return cached.product
    if (this.#nodes.size >= MAX_NODES) this.#nodes.clear()
    const requested: CachedNode = { product: cached?.product ?? null, askedMs: this.#clock.monotonic() }
    this.#nodes.set(node, requested)
    void this.#ask(node, requested)
    return requested.product
  }

  async #ask(node: string, requested: CachedNode): Promise<void> {
    try {
      const object = await this.#api.call<KubernetesObject>({
        method: 'GET',
        path: `/api/v1/nodes/${node}`,
        metadataOnly: 'one',
      })
      requested.product = object.metadata.labels?.[PRODUCT_LABEL] ?? null
      this.#onFound()
    } catch (thrown) {
      // Without the right to read nodes it stays unknown; otherwise the next report asks again.
      if (kubernetesError(thrown).status !== 403) this.#nodes.delete(node)
    }
  }
}
