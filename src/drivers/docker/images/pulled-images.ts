/**
 * The images that were downloaded for workers, with the time of their last use: in a file, since engines keep no such
 * notes.
 */
import { readFileSync, statfsSync } from 'node:fs'
import { parseReference, sameRepository } from '../../../core/endpoints/image-reference.ts'
import { writeDurably } from '../../../disk/durable-file.ts'
import { isNoSpaceError } from '../../../disk/full-disk.ts'
import type { Clock } from '../../../ports/clock.ts'

/** An image that was downloaded for workers. */
export interface PulledImage {
  /** The engine's id of it. */
  readonly id: string
  /** All references under which it was downloaded. */
  readonly references: readonly string[]
  /** Epoch milliseconds. */
  readonly usedAtMs: number
}

/** Time for which an unused image is kept: usually, and while the disk is nearly full. */
const KEEP_MS = { usual: 24 * 3_600_000, full: 3_600_000 }
/** Of this disk less than this share is free: it counts as nearly full. */
const FULL_BELOW = 0.1
const MAX_IMAGES = 1_000

/** The images that may be removed again. */
export class PulledImages {
  readonly #options
  readonly #images

  constructor(options: {
    readonly file: string
    readonly clock: Clock
    /** The free part of the engine's disk, from 0 to 1; null when it is unknown. */
    readonly freeShare: () => number | null
  }) {
    this.#options = options
    this.#images = new Map(readImages(options.file).map(image => [image.id, image]))
  }

  /** Notes that an image was downloaded. */
  add(id: string, references: readonly string[]): void {
    const previous = this.#images.get(id)?.references ?? []
    const merged = [...new Set([...previous, ...references])].filter(reference => !reference.startsWith('sha256:'))
    this.#images.delete(id)
    this.#images.set(id, { id, references: merged, usedAtMs: this.#options.clock.now() })
    const [oldest] = this.#images.keys()
    if (this.#images.size > MAX_IMAGES && oldest !== undefined) this.#images.delete(oldest)
    this.#write()
  }

  /** True for an image that was downloaded under a name of this repository. */
  has(id: string, name: string): boolean {
    const repository = parseReference(name)?.name ?? name
    const references = this.#images.get(id)?.references ?? []
    return references.some(reference => sameRepository(parseReference(reference)?.name ?? reference, repository))
  }

  /** Notes that a worker was started from an image. */
  used(reference: string): void {
    for (const image of this.#images.values()) {
      if (image.id !== reference && !image.references.includes(reference)) continue
      this.#images.set(image.id, { ...image, usedAtMs: this.#options.clock.now() })
      this.#write()
    }
  }

  /** Those that are not wanted and have been unused for long enough. */
  unused(keep: ReadonlySet<string>): readonly PulledImage[] {
    const free = this.#options.freeShare()
    const keepMs = free !== null && free < FULL_BELOW ? KEEP_MS.full : KEEP_MS.usual
    const nowMs = this.#options.clock.now()
    return [...this.#images.values()].filter(
      ({ id, references, usedAtMs }) =>
        nowMs - usedAtMs >= keepMs && !keep.has(id) && !references.some(reference => keep.has(reference)),
    )
  }

  /** The image is gone. */
  forget(id: string): void {
    this.#images.delete(id)
    this.#write()
  }

  /**
   * A full disk costs the note until the next one is written, and keeps no worker from starting and no image from
   * being removed.
   */
  #write(): void {
    const { file } = this.#options
    try {
      writeDurably(file, JSON.stringify([...this.#images.values()]))
    } catch (error) {
      if (!isNoSpaceError(error)) throw error
    }
  }
}

/**
 * The part of the disk of a folder that is free for programs, from 0 to 1; null for a folder that is hidden or not on
 * this machine.
 */
export function readFreeShare(folder: string): number | null {
  if (folder === '') return null
  try {
    const { bavail, blocks } = statfsSync(folder)
    return blocks > 0 ? bavail / blocks : null
  } catch {
    return null
  }
}

function readImages(file: string): PulledImage[] {
  try {
    const images = JSON.parse(readFileSync(file, 'utf8')) as PulledImage[]
    return images.filter(({ id, references, usedAtMs }) => id !== '' && Array.isArray(references) && usedAtMs > 0)
  } catch {
    return []
  }
}
