import type { EndpointType } from '../core/endpoints/endpoint.ts'
import type { WorkerId } from '../core/ids.ts'
import type { Isolation } from '../core/workers/isolation.ts'
import type { ServedAt } from '../core/workers/socket-address.ts'
import type { StartFailure } from '../core/workers/start-failure.ts'
import type { Driver, Observation, StartWatch, WorkerSpec } from '../ports/driver.ts'

/** What {@link createRoutedDriver} needs. */
export interface RoutedDriverOptions {
  /** Runs folders of this machine: images `dir:<path>`. */
  readonly folders: Driver
  /** Runs everything else. */
  readonly containers: Driver
  /** Limit of the workers of both together. */
  readonly maxWorkers: number
}

/** A driver for all images: folders run as processes, everything else in containers. */
export function createRoutedDriver(options: RoutedDriverOptions): Driver {
  return new Routed(options)
}

class Routed implements Driver {
  readonly name = 'routed'
  readonly #options: RoutedDriverOptions
  /** Where each worker of this run of the server is. */
  readonly #places = new Map<WorkerId, Driver>()

  constructor(options: RoutedDriverOptions) {
    this.#options = options
  }

  savedImage(image: string): string {
    return this.#of(image).savedImage(image)
  }

  placedBy(image: string): 'machine' | 'platform' {
    return this.#of(image).placedBy(image)
  }

  readsModels(image: string): boolean {
    return this.#of(image).readsModels(image)
  }

  nameOf(image: string): string {
    return this.#of(image).name
  }

  check(image: string, args: string, type?: EndpointType): Promise<StartFailure | null> {
    return this.#of(image).check(image, args, type)
  }

  start(spec: WorkerSpec, watch?: StartWatch): Promise<string> {
    const driver = this.#of(spec.image)
    this.#places.set(spec.workerId, driver)
    return driver.start(spec, watch)
  }

  async adopt(worker: WorkerId, handle: string | null, recorded?: string): Promise<boolean> {
    const driver = this.#all().find(({ name }) => name === recorded)
    if (driver === undefined) return false
    this.#places.set(worker, driver)
    return driver.adopt(worker, handle)
  }

  async observe(worker: WorkerId): Promise<Observation> {
    const driver = this.#places.get(worker)
    if (driver !== undefined) return driver.observe(worker)
    return { state: 'exited', exit: { code: null, signal: null, cause: { kind: 'unseen', when: 'unknown' } } }
  }

  async address(worker: WorkerId): Promise<ServedAt | null> {
    return (await this.#places.get(worker)?.address(worker)) ?? null
  }

  async freeze(worker: WorkerId): Promise<void> {
    await this.#places.get(worker)?.freeze(worker)
  }

  async thaw(worker: WorkerId): Promise<void> {
    await this.#places.get(worker)?.thaw(worker)
  }

  async terminate(worker: WorkerId): Promise<void> {
    await this.#places.get(worker)?.terminate(worker)
  }

  async kill(worker: WorkerId): Promise<void> {
    await this.#places.get(worker)?.kill(worker)
  }

  /** One that is not known has ended before this run, and any of them may have something left of it. */
  async release(worker: WorkerId): Promise<void> {
    const place = this.#places.get(worker)
    for (const driver of place === undefined ? this.#all() : [place]) await driver.release(worker)
    this.#places.delete(worker)
  }

  keepsApart(): string | null {
    const reasons = this.#all().flatMap(driver => driver.keepsApart() ?? [])
    return reasons.length === 0 ? null : reasons.join('; ')
  }

  isolation(handle: string, recorded: string): Isolation | null {
    return (
      this.#all()
        .find(({ name }) => name === recorded)
        ?.isolation(handle, recorded) ?? null
    )
  }

  async capacity() {
    const { maxWorkers } = this.#options
    const each = await Promise.all(this.#all().map(driver => driver.capacity()))
    const taken = each.reduce((sum, { freeWorkers }) => sum + maxWorkers - (freeWorkers ?? maxWorkers), 0)
    return {
      freeWorkers: Math.max(0, maxWorkers - taken),
      bound: `the limit of ${maxWorkers} workers on this machine (--max-workers)`,
    }
  }

  async tidy(...known: Parameters<Driver['tidy']>): Promise<void> {
    for (const driver of this.#all()) await driver.tidy(...known)
  }

  #of(image: string): Driver {
    return image.startsWith('dir:') ? this.#options.folders : this.#options.containers
  }

  #all(): readonly Driver[] {
    return [this.#options.folders, this.#options.containers]
  }
}
