import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, resolve, sep } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as zlib from 'node:zlib'

/** Bounds of an archive, and the signal that ends its unpacking. */
export type UnzipBounds = {
  /** Maximum number of files and folders. */
  maxEntries: number
  /** Largest size of one unpacked file, in bytes. */
  maxFileBytes: number
  /** Largest size of all unpacked files together, in bytes. */
  maxTotalBytes: number
  /** Ends the unpacking. */
  signal: AbortSignal | undefined
}

type Entry = import('yauzl').Entry

const kindMask = 0o170000
/** Regular file, folder, and the kind in archives that were not made on Unix. */
const usableKinds = [0o100000, 0o040000, 0]

/**
 * Unpacks a zip file into a new folder. Names that lead out of it, links, devices and encrypted files are refused, and
 * the size is that of the unpacked bytes, not the one in the archive. Needs the package `yauzl`. Rejects with the
 * reason, and then leaves no folder.
 */
export async function unzip(archive: string, folder: string, bounds: UnzipBounds): Promise<void> {
  const { openPromise } = await loadReader()
  // strictFileNames: a backslash is refused and not taken for a slash.
  const zip = await openPromise(archive, { lazyEntries: true, autoClose: false, strictFileNames: true })
  // Its iterator stops listening when the loop ends, and an error without a listener ends the process.
  zip.on('error', () => {})
  try {
    await mkdir(folder)
    const unpacker = new Unpacker(folder, bounds)
    for await (const entry of zip.eachEntry()) {
      await unpacker.add(entry, () => zip.openReadStreamPromise(entry))
    }
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  } finally {
    zip.close()
  }
}

class Unpacker {
  readonly #folder: string
  readonly #bounds: UnzipBounds
  readonly #folders: Set<string>
  #files = 0
  #bytes = 0

  constructor(folder: string, bounds: UnzipBounds) {
    this.#folder = folder
    this.#bounds = bounds
    this.#folders = new Set([folder])
  }

  async add(entry: Entry, open: () => Promise<NodeJS.ReadableStream>): Promise<void> {
    this.#bounds.signal?.throwIfAborted()
    const path = this.#entryPath(entry)
    if (entry.fileName.endsWith('/')) return this.#makeFolder(path)
    await this.#makeFolder(dirname(path))
    this.#files += 1
    this.#checkEntries()
    const { signal } = this.#bounds
    const file = createWriteStream(path, { flags: 'wx' })
    await pipeline(await open(), this.#counter(entry), file, signal ? { signal } : {})
  }

  #entryPath({ fileName, externalFileAttributes }: Entry): string {
    const kind = (externalFileAttributes >>> 16) & kindMask
    if (!usableKinds.includes(kind)) throw new Error(`${shown(fileName)} is neither a file nor a folder`)
    const path = resolve(this.#folder, fileName)
    const isInside = path.startsWith(this.#folder + sep)
    if (!isInside && fileName !== './') throw new Error(`${shown(fileName)} is not a path inside the folder`)
    return path
  }

  /** Creates a folder and those above it. Each of them counts, or one name could create thousands. */
  async #makeFolder(path: string): Promise<void> {
    const missing: string[] = []
    for (let at = path; !this.#folders.has(at); at = dirname(at)) missing.push(at)
    for (const folder of missing.reverse()) {
      this.#folders.add(folder)
      this.#checkEntries()
      await mkdir(folder)
    }
  }

  #checkEntries(): void {
    const { maxEntries } = this.#bounds
    const entries = this.#files + this.#folders.size - 1
    if (entries > maxEntries) throw new Error(`it has more than ${maxEntries} files and folders`)
  }

  #counter({ fileName, crc32: wanted }: Entry): Transform {
    const { maxFileBytes, maxTotalBytes } = this.#bounds
    // Node before 20.15 has no `crc32`; it still checks sizes.
    const { crc32 } = zlib as { crc32?: typeof zlib.crc32 }
    let bytes = 0
    let checksum = 0
    return new Transform({
      transform: (chunk: Buffer, _, done) => {
        bytes += chunk.length
        this.#bytes += chunk.length
        if (bytes > maxFileBytes) return done(new Error(`${shown(fileName)} is larger than ${maxFileBytes} bytes`))
        if (this.#bytes > maxTotalBytes) return done(new Error(`its files are larger than ${maxTotalBytes} bytes`))
        if (crc32) checksum = crc32(chunk, checksum)
        done(null, chunk)
      },
      flush: done => done(crc32 && checksum !== wanted ? new Error(`${shown(fileName)} has a wrong checksum`) : null),
    })
  }
}

function shown(fileName: string): string {
  return JSON.stringify(fileName.slice(0, 256))
}

async function loadReader(): Promise<typeof import('yauzl')> {
  try {
    return await import('yauzl')
  } catch (error) {
    throw new Error('unpacking a zip file needs a package that reads them: npm install yauzl', { cause: error })
  }
}
