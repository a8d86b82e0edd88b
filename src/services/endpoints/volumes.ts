import type { Caller } from '../../core/accounts/permission.ts'
import {
  shrinkProblems,
  type Volume,
  type VolumeInput,
  type VolumeKind,
  type VolumeType,
  volumeKind,
  volumeProblems,
} from '../../core/endpoints/volume.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import type { OwnerId, VolumeId } from '../../core/ids.ts'
import type { Page, PageRequest } from '../../core/pages.ts'
import type { Ports } from '../../ports/ports.ts'
import { workerOfKey } from '../accounts/app-worker-keys.ts'
import type { Quotas } from '../accounts/quotas.ts'
import { onePage } from '../paging.ts'
import { shortId } from '../short-id.ts'

/** Volumes of one kind: folders that outlive workers. To this object, those of the other kind do not exist. */
export class Volumes {
  readonly #ports
  readonly #quotas
  readonly #kind

  constructor(ports: Ports, quotas: Quotas, kind: VolumeKind) {
    this.#ports = ports
    this.#quotas = quotas
    this.#kind = kind
  }

  /**
   * @throws AppError `invalid` with all failures, for an unknown data center with the list; `conflict` past a limit
   *   of the account
   */
  async create(owner: OwnerId, input: Omit<VolumeInput, 'type'> & { type?: VolumeType }): Promise<Volume> {
    const { store, random, clock, volumes } = this.#ports
    const problems = volumeProblems(input)
    if (problems.length > 0) throw invalidFields(problems)
    const { name, sizeGb, dataCenter, type = 'STANDARD' } = input
    const id = shortId(random) as VolumeId
    const volume: Volume = { id, owner, name, sizeGb, dataCenter, type, createdAtMs: clock.now() }
    // The folder first: every volume has one, and an extra empty folder does no harm.
    await this.#quotas.adding(owner, 'volumes', async () => {
      await volumes.create(id)
      await store.volumes.insert(volume)
    })
    return volume
  }

  /**
   * The owner's volumes, oldest first.
   * @throws AppError `invalid` for a cursor that no page had
   */
  list(owner: OwnerId, request: PageRequest = {}): Promise<Page<Volume>> {
    return onePage(request, slice => this.#ports.store.volumes.list(owner, slice, this.#kind))
  }

  /** The volumes of the endpoint or task whose worker asks: its functions may give them to tasks. */
  async ofWorker(by: Pick<Caller, 'owner' | 'keyId'>): Promise<Volume[]> {
    const { endpoints, volumes, workers } = this.#ports.store
    const worker = await workers.find(workerOfKey(by))
    const endpoint = worker === null ? null : await endpoints.find(worker.endpointId)
    const found: Volume[] = []
    for (const id of endpoint?.networkVolumeIds ?? []) {
      const volume = await volumes.find(by.owner, id)
      if (volume !== null && volumeKind(volume) === this.#kind) found.push(volume)
    }
    return found
  }

  /** @throws AppError `not_found`, also for a volume of another owner */
  async find(owner: OwnerId, id: VolumeId): Promise<Volume> {
    const volume = await this.#ports.store.volumes.find(owner, id)
    if (volume === null || volumeKind(volume) !== this.#kind) throw notFound(`${this.#kind} volume`, id)
    return volume
  }

  /**
   * Renames it, or makes it larger.
   * @throws AppError `not_found`, or `invalid` with all failures, a smaller size among them
   */
  async update(owner: OwnerId, id: VolumeId, changes: { name?: string; sizeGb?: number }): Promise<Volume> {
    const shrink = async () => {
      const previous = await this.find(owner, id)
      return shrinkProblems(previous, changes.sizeGb ?? previous.sizeGb)
    }
    const problems = [...volumeProblems(changes), ...(await shrink())]
    if (problems.length > 0) throw invalidFields(problems)
    const volume = await this.#ports.store.volumes.update(owner, id, changes)
    if (volume !== null) return volume
    // Another call deleted it, or made it larger, at the same moment.
    const smaller = await shrink()
    throw smaller.length > 0
      ? invalidFields(smaller)
      : new AppError('conflict', `${this.#kind} volume ${id} has changed`)
  }

  /**
   * Removes it with all its files.
   * @throws AppError `not_found`, or `conflict` while endpoints use it, with their ids
   */
  async remove(owner: OwnerId, id: VolumeId): Promise<void> {
    await this.find(owner, id)
    const result = await this.#ports.store.volumes.remove(owner, id)
    if (result === 'absent') throw notFound(`${this.#kind} volume`, id)
    if (result !== 'removed') {
      const users = `${result.length === 1 ? 'endpoint' : 'endpoints'} ${result.join(', ')}`
      throw new AppError('conflict', `${this.#kind} volume ${id} is in use by ${users}`)
    }
    await this.#ports.volumes.remove(id)
  }
}
