import { gpuKey } from '../../core/hardware/inventory.ts'
import { type Note, plainNote } from '../../core/observing/explanation.ts'
import { foreignUseText, inGb } from '../../core/placement/card-room.ts'
import { excessMb } from '../../core/placement/share-excess.ts'
import type { EndpointSnapshot } from '../../core/scaling/scale.ts'
import type { WorkerLoad } from '../../core/workers/worker.ts'
import type { Ports } from '../../ports/ports.ts'
import type { CardReader, CardUse } from '../hardware/card-reader.ts'

/** Limit of workers, and of cards, that have a note. */
const MAX_NAMED = 3
/** Use of a card by programs that are not workers, below which it has no note, in MiB. */
const LEAST_FOREIGN_MB = 512

/** Describes the memory of GPUs in notes, from the last measurement. */
export class CardNotes {
  readonly #ports
  readonly #cards

  constructor(ports: Ports, cards: Pick<CardReader, 'last'>) {
    this.#ports = ports
    this.#cards = cards
  }

  /** The workers of an endpoint that use more than their share, and the state of a share that is learned. */
  async ofShares({ endpoint, workers }: EndpointSnapshot): Promise<Note[]> {
    const { compute } = endpoint
    if (compute.kind === 'cpu' || compute.memoryGb === undefined) return []
    const cards = this.#cards.last()
    const isLearned = compute.memoryGb === 'auto'
    const beyond = workers.flatMap(worker => beyondText(worker, cards, isLearned) ?? []).slice(0, MAX_NAMED)
    const notes = beyond.map(plainNote)
    if (!isLearned || this.#ports.gpuMeter === undefined) return notes
    const learned = await this.#ports.store.releases.gpuMemory(endpoint.id, endpoint.version)
    if (learned?.hasWorked === true || workers.some(({ placement }) => placement?.gpus[0]?.shareMb !== undefined))
      return notes
    const text =
      'its share of a GPU is learned from the first completed job or request; until then a worker has a whole GPU'
    return [...notes, plainNote(text)]
  }

  /**
   * The programs of the machine that use the GPUs for which an endpoint waits. They belong to the operator: callers of
   * other rights learn only that there are some.
   */
  async ofPrograms({ workers, queuedWorkers }: EndpointSnapshot): Promise<Note[]> {
    const waits =
      queuedWorkers.some(({ resource }) => resource === 'gpu') ||
      workers.some(({ wakeWaitsFor }) => wakeWaitsFor !== null)
    if (!waits) return []
    const cards = this.#cards.last()
    const { gpus } = await this.#ports.machine.parts()
    return gpus
      .flatMap(gpu => {
        const card = cards.get(gpuKey(gpu))
        const isUsed = card !== undefined && card.foreignMb >= LEAST_FOREIGN_MB && card.programs.length > 0
        return isUsed ? [plainNote(foreignUseText(gpu, card))] : []
      })
      .slice(0, MAX_NAMED)
  }
}

/** A worker that uses more than its share, as a sentence; null for any other. */
function beyondText(
  { id, placement }: WorkerLoad,
  cards: ReadonlyMap<string, CardUse>,
  isLearned: boolean,
): string | null {
  const [gpu] = placement?.gpus ?? []
  const card = gpu === undefined ? undefined : cards.get(gpuKey(gpu))
  const usedMb = card?.ownMb.get(id)
  if (gpu?.shareMb === undefined || card === undefined || usedMb === undefined) return null
  if (excessMb({ shareMb: gpu.shareMb, usedMb, totalMb: card.totalMb }) === 0) return null
  const remedy = isLearned
    ? 'its share grows when the GPU has room'
    : 'raise gpu.memoryGb, or limit its program by RUNYARD_GPU_MEMORY_FRACTION'
  return `worker ${id} uses ${inGb(usedMb)} of GPU ${gpu.index}, and its share is ${inGb(gpu.shareMb)}; ${remedy}. It ends after its jobs if a neighbor fails for want of memory`
}
