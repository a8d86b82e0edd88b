declare module 'tar-fs' {
  import type { Readable } from 'node:stream'

  /** An archive that is being made. */
  interface Pack extends Readable {
    entry(header: { name: string }, contents: Buffer): void
    /** Ends the archive. */
    finalize(): void
  }

  /**
   * Packs a folder, or some entries of it; `ignore` is called with the absolute path of each entry, `finish` with the
   * archive before its end.
   */
  export function pack(
    folder: string,
    options: {
      readonly entries?: readonly string[]
      readonly ignore?: (path: string) => boolean
      readonly map: (header: { name: string; type: string; uid?: number; gid?: number }) => object
      readonly sort: boolean
      readonly finalize?: boolean
      readonly finish?: (pack: Pack) => void
    },
  ): Readable
}
