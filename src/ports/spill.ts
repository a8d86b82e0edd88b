/** Disk space for bodies that do not fit into memory. */

/** A body that is written piece by piece, and read once it is whole. */
export interface SpilledBody {
  /** Appends to it. @throws when the write fails */
  append(piece: Uint8Array): Promise<void>
  /** All of it. @throws when it cannot be read */
  read(): Promise<Uint8Array>
  /** Releases its space; may be called at any time and more than once. Never throws. */
  drop(): Promise<void>
}

/** Keeps bodies on disk while this process lives. */
export interface Spill {
  /** Maximum bytes of all of them together. The caller observes it. */
  readonly maxBytes: number
  /** @throws when no file can be created */
  create(): Promise<SpilledBody>
}
