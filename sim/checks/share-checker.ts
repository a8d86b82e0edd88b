import { gpuKey, type MachineGpu } from '../../src/core/hardware/inventory.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import { marginMb } from '../../src/core/placement/card-room.ts'
import type { Placement } from '../../src/core/workers/placement.ts'
import type { PlayedGpus } from '../played-gpus.ts'
import type { Database } from '../store.ts'

interface Row {
  readonly id: WorkerId
  readonly placement: string
}

const AWAKE = `SELECT id, placement FROM workers
  WHERE state <> 'EXITED' AND asleep_at_ms IS NULL AND placement IS NOT NULL ORDER BY id`
const MIB = 2 ** 20

/**
 * Reports cards whose memory is promised beyond their size, and programs without memory although everybody kept to the
 * share.
 */
export class ShareChecker {
  readonly #report: (problem: string) => void
  readonly #database: Pick<Database, 'query'>
  readonly #gpus: PlayedGpus
  readonly #cards: () => readonly MachineGpu[]

  /** @param report receives one sentence per problem */
  constructor(
    report: (problem: string) => void,
    database: Pick<Database, 'query'>,
    { gpus, cards }: { readonly gpus: PlayedGpus; readonly cards: () => readonly MachineGpu[] },
  ) {
    this.#report = report
    this.#database = database
    this.#gpus = gpus
    this.#cards = cards
  }

  /** Checks the promises of all cards. Call it while no operation is under way. */
  inspect(): void {
    const claims = this.#claims()
    for (const gpu of this.#cards()) {
      const ofCard = claims.filter(({ card }) => card === gpuKey(gpu))
      if (ofCard.every(({ isShare }) => !isShare) && ofCard.length <= 1) continue
      const totalMb = this.#totalMb
      const promisedMb = ofCard.reduce((sum, { mb }) => sum + mb, 0)
      if (promisedMb + marginMb(totalMb) > totalMb)
        this.#report(
          `${promisedMb} of ${totalMb} MiB of GPU ${gpu.index} are promised to workers ${ofCard.map(({ worker }) => worker).join(', ')}`,
        )
    }
  }

  /** A program found no memory on its card. @param gib the memory that it wanted to have in all */
  ranOut(worker: WorkerId, gib: number): void {
    const claims = this.#claims()
    const own = claims.filter(claim => claim.worker === worker)
    const cards = own.map(({ card }) => card)
    const isForeign = cards.some(card => (this.#gpus.foreign.get(card) ?? 0) > 0)
    if (own.length === 0 || own.some(({ mb }) => gib * 1024 > mb) || isForeign) return
    const users = cards.flatMap(card => this.#gpus.usersOf(card).map(user => ({ ...user, card })))
    const keepsTo = ({ worker: id, bytes, card }: (typeof users)[number]) => {
      const claim = claims.find(other => other.worker === id && other.card === card)
      return claim !== undefined && bytes <= claim.mb * MIB
    }
    if (!users.every(keepsTo)) return
    const uses = users.map(({ worker: id, bytes }) => `${id} has ${Math.round(bytes / MIB)} MiB`).join(', ')
    this.#report(
      `worker ${worker} found no memory for ${gib} GiB on GPU ${cards.join(', ')}, and all workers there keep to their shares: ${uses}`,
    )
  }

  get #totalMb(): number {
    return this.#gpus.totalBytes / MIB
  }

  #claims() {
    return this.#database.query<Row>(AWAKE).flatMap(({ id, placement }) =>
      (JSON.parse(placement) as Placement).gpus.map(gpu => ({
        worker: id,
        card: gpuKey(gpu),
        mb: gpu.shareMb ?? this.#totalMb,
        isShare: gpu.shareMb !== undefined,
      })),
    )
  }
}
