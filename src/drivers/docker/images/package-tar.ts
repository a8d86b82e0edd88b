/** Archives of packages, as npm packs them. */
import type { Readable } from 'node:stream'
import { pack } from 'tar-fs'

/** The files of a folder that an archive contains. */
export interface PackageFiles {
  readonly folder: string
  /** Files and folders in it, without `package.json`. */
  readonly files: readonly string[]
  /** The text of `package.json`. */
  readonly manifest: string
}

/** An archive of a package that is not compressed, the same for the same files: without owners, times and the modes of this machine. */
export function packageTar({ folder, files, manifest }: PackageFiles): Readable {
  const own = (name: string) => ({ name: `package/${name}`, mtime: new Date(0), uid: 0, gid: 0 })
  return pack(folder, {
    // tar-fs removes them from the list.
    entries: [...files],
    sort: true,
    map: header => Object.assign(header, own(header.name), { mode: header.type === 'directory' ? 0o755 : 0o644 }),
    finalize: false,
    finish: archive => {
      archive.entry(own('package.json'), Buffer.from(manifest))
      archive.finalize()
    },
  })
}
