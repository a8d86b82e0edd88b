/** Room on disk for bodies that find none in memory. */

/** A body that is written piece by piece, and read once it is whole. */
export interface SpilledBody {
  /** Writes more of it, in order. @throws when the disk does not take it */
  append(piece: Uint8Array): Promise<void>
  /** All of it. @throws when it cannot be read */
  read(): Promise<Uint8Array>
  /** Gives its room back, at any time and more than once. Never throws. */
  drop(): Promise<void>
}

/** Keeps bodies on disk for as long as this process lives. */
export interface Spill {
  /** Most bytes of all of them together. The caller keeps to it. */
  readonly maxBytes: number
  /** @throws when the disk takes no more files */
  create(): Promise<SpilledBody>
}
