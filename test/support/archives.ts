/** Archives of apps, good and hostile ones. */
import { gzipSync } from 'node:zlib'
import { Header } from 'tar'

/** An entry of an archive; a file by default. */
export interface TarEntry {
  readonly path: string
  readonly data?: string | Buffer
  readonly type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link' | 'CharacterDevice' | 'FIFO' | 'NextFileHasLongPath'
  readonly linkpath?: string
  readonly mode?: number
  /** Size in its header, where that is a lie. */
  readonly size?: number
}

const BLOCK = 512

/** A tar archive, with its end unless `isCut`. */
export function tarOf(entries: readonly TarEntry[], isCut = false): Buffer {
  const parts = entries.flatMap(({ path, data = '', type = 'File', linkpath, mode = 0o644, size }) => {
    const content = Buffer.from(data)
    const block = Buffer.alloc(BLOCK)
    const fields = { path, type, mode, size: size ?? content.length, mtime: new Date(0), uid: 0, gid: 0 }
    new Header(linkpath === undefined ? fields : { ...fields, linkpath }).encode(block)
    return [block, content, Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]
  })
  return Buffer.concat(isCut ? parts : [...parts, Buffer.alloc(2 * BLOCK)])
}

/** The file that every artifact has. */
export const MANIFEST_FILE: TarEntry = { path: 'runpod_manifest.json', data: '{"version":1}' }

/** An artifact of the SDK. */
export function artifactOf(files: Readonly<Record<string, string>>): Buffer {
  const entries = Object.entries(files).map(([path, data]) => ({ path, data }))
  return gzipSync(tarOf([...entries, MANIFEST_FILE]))
}
