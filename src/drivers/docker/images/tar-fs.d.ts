declare module 'tar-fs' {
  import type { Readable } from 'node:stream'

  /** Packs a folder; `ignore` is asked with the absolute path of each entry. */
  export function pack(
    folder: string,
    options: {
      readonly ignore: (path: string) => boolean
      readonly map: (header: { name: string; uid?: number; gid?: number }) => object
      readonly sort: boolean
    },
  ): Readable
}
