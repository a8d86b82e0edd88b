/**
 * The images of containers: which one a worker gets, when it is downloaded, and when a downloaded one is removed.
 * Images that were loaded into the engine by others are used and never removed.
 */
import { isFloating, parseReference, sameRepository } from '../../../core/endpoints/image-reference.ts'
import { WorkerStartError } from '../../../core/workers/start-failure.ts'
import type { Clock } from '../../../ports/clock.ts'
import type { RegistryCredential, StartWatch, WorkerSpec } from '../../../ports/driver.ts'
import type { Engine } from '../engine/engine.ts'
import { engineError } from '../engine/engine-error.ts'
import { Pulls, registryAuth } from './pull.ts'
import type { PulledImages } from './pulled-images.ts'

/** The image that a worker runs. */
export interface ImageWish {
  /** The reference in the template. */
  readonly image: string
  readonly credential: RegistryCredential | null
  /** Asked before the registry is called, as `WorkerSpec.guard`. */
  readonly guard?: WorkerSpec['guard']
  readonly watch: StartWatch | undefined
  /** Aborts the start. */
  readonly signal: AbortSignal
}

/** An image as the engine describes it. */
interface FoundImage {
  readonly Id: string
  readonly RepoTags?: readonly string[] | null
  readonly RepoDigests?: readonly string[] | null
}

const REGISTRY_MS = 5_000
const REMOVE_MS = 60_000
const MAX_SEEN = 1_000

/** The images of one engine. */
export class Images {
  readonly #engine
  readonly #pulls
  readonly #pulled
  /** Exact references that existed at the last check; a start fails with a known error when one is gone. */
  readonly #seen = new Set<string>()

  constructor(engine: Engine, clock: Clock, pulled: PulledImages) {
    this.#engine = engine
    this.#pulls = new Pulls(engine, clock)
    this.#pulled = pulled
  }

  /**
   * Makes sure that an image exists. All workers of a release get the image of the first one: a name may mean another
   * image a minute later.
   * @returns the reference for the container
   * @throws WorkerStartError with the reason
   */
  async ensure(wish: ImageWish): Promise<string> {
    const { image, watch } = wish
    const pinned = (await watch?.pins?.current()) ?? null
    if (pinned !== null && (await this.#obtain(pinned, wish))) return this.#use(pinned)
    const exact = await this.#resolve(image, wish)
    const chosen = (await watch?.pins?.pin(exact, pinned)) ?? exact
    if (chosen !== exact && !(await this.#obtain(chosen, wish))) {
      throw new WorkerStartError({ kind: 'image_gone', image: chosen })
    }
    return this.#use(chosen)
  }

  /** Notes that an image of {@link ensure} may be gone, so that the next call checks it. */
  doubt(exact: string): boolean {
    return this.#seen.delete(exact)
  }

  /**
   * Removes images that were downloaded for workers and are no longer used.
   * @param keep references that endpoints run or ran before
   */
  async tidy(keep: ReadonlySet<string>): Promise<void> {
    const due = this.#pulled.unused(keep)
    if (due.length === 0) return
    const containers = await this.#engine.call<readonly { ImageID: string }[]>({
      method: 'GET',
      path: '/containers/json',
      query: { all: true },
    })
    const inUse = new Set(containers.map(({ ImageID }) => ImageID))
    for (const { id, references } of due) {
      if (inUse.has(id)) continue
      for (const reference of references) await this.#remove(reference)
      this.#pulled.forget(id)
    }
  }

  /** True where the image of a release exists, or can be downloaded again. */
  async #obtain(exact: string, wish: ImageWish): Promise<boolean> {
    if (this.#seen.has(exact) || (await this.#inspect(exact)) !== null) return true
    // The image was built or loaded here and removed since: the name may mean another image by now.
    if (exact.startsWith('sha256:')) return false
    await this.#download(exact, wish)
    return true
  }

  async #resolve(image: string, wish: ImageWish): Promise<string> {
    const present = await this.#inspect(image)
    if (present !== null && !(await this.#isOutdated(image, present, wish))) return this.#exactReference(image, present)
    try {
      await this.#download(image, wish)
    } catch (thrown) {
      if (present === null || wish.signal.aborted) throw thrown
      return this.#exactReference(image, present)
    }
    const downloaded = await this.#inspect(image)
    if (downloaded === null) throw new WorkerStartError({ kind: 'image_vanished', image })
    return this.#exactReference(image, downloaded)
  }

  /**
   * True where a name such as `latest` means another image by now. Checked once for a release, only for an image of a
   * registry; a slow registry does not delay a start.
   */
  async #isOutdated(image: string, present: FoundImage, { credential, guard, signal }: ImageWish): Promise<boolean> {
    const reference = parseReference(image)
    if (reference === null || !isFloating(reference)) return false
    const digests = ownDigests(image, present)
    if (digests.length === 0) return false
    const auth = credential === null ? {} : { auth: registryAuth(image, credential) }
    if (((await guard?.()) ?? null) !== null) return false
    try {
      const { Descriptor } = await this.#engine.call<{ Descriptor?: { digest?: string } }>({
        method: 'GET',
        path: `/distribution/${image}/json`,
        deadlineMs: REGISTRY_MS,
        signal,
        ...auth,
      })
      const digest = Descriptor?.digest
      return digest !== undefined && !digests.some(reference => reference.endsWith(`@${digest}`))
    } catch {
      return false
    }
  }

  /**
   * The exact reference of an image: its digest in the registry, else its id on the engine. Podman has digests for
   * images that were built here, too, so its digests count only for images that were downloaded for workers.
   */
  #exactReference(image: string, inspected: FoundImage): string {
    const isOfRegistry = (this.#engine.facts?.podman ?? null) === null || this.#pulled.has(inspected.Id, image)
    return (isOfRegistry ? ownDigests(image, inspected)[0] : undefined) ?? inspected.Id
  }

  async #download(image: string, { credential, guard, watch, signal }: ImageWish): Promise<void> {
    const refused = (await guard?.()) ?? null
    if (refused !== null) throw new WorkerStartError(refused)
    const previousIds = await this.#ids()
    watch?.pulling(null)
    await this.#pulls.pull({ image, credential, signal, onPercent: percent => watch?.pulling(percent) })
    watch?.pulled()
    const downloaded = await this.#inspect(image)
    if (downloaded !== null && !previousIds.has(downloaded.Id))
      this.#pulled.add(downloaded.Id, [image, ownDigests(image, downloaded)[0] ?? downloaded.Id])
  }

  async #ids(): Promise<ReadonlySet<string>> {
    const images = await this.#engine.call<readonly { Id: string }[]>({ method: 'GET', path: '/images/json' })
    return new Set(images.map(({ Id }) => Id))
  }

  #use(exact: string): string {
    if (this.#seen.size >= MAX_SEEN) this.#seen.clear()
    this.#seen.add(exact)
    this.#pulled.used(exact)
    return exact
  }

  async #inspect(reference: string): Promise<FoundImage | null> {
    try {
      return await this.#engine.call<FoundImage>({ method: 'GET', path: `/images/${reference}/json` })
    } catch (thrown) {
      if (engineError(thrown).status === 404) return null
      throw thrown
    }
  }

  async #remove(reference: string): Promise<void> {
    this.#seen.clear()
    try {
      await this.#engine.call({ method: 'DELETE', path: `/images/${reference}`, deadlineMs: REMOVE_MS })
    } catch (thrown) {
      // The image is gone already, or in use after all.
      const { status } = engineError(thrown)
      if (status !== 404 && status !== 409) throw thrown
    }
  }
}

function ownDigests(image: string, { RepoDigests }: FoundImage): readonly string[] {
  const { name, digest } = parseReference(image) ?? { name: image, digest: null }
  const repositoryDigests = (RepoDigests ?? []).filter(exact => sameRepository(exact.split('@')[0] ?? '', name))
  return digest === null ? repositoryDigests : repositoryDigests.filter(exact => exact.endsWith(`@${digest}`))
}
