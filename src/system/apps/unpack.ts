import { createReadStream } from 'node:fs'
import { chmod, mkdir, open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { ReadEntry } from 'tar'
import { type ArtifactRules, MAX_ARTIFACT_ENTRIES } from '../../core/apps/app.ts'
import { ArtifactError, entryParts } from '../../core/apps/archive.ts'

/** Limit of an entry that describes another one, such as a long name. */
const MAX_META_BYTES = 64 * 1024
/** The file that every artifact of the SDK has. */
const MANIFEST = 'runpod_manifest.json'
/** Rights of files and folders of a build: for reading alone. */
const READ_FILE = 0o444
const READ_FOLDER = 0o555

/**
 * Unpacks an archive of a client into a new folder. Every size is counted while it is read, and nothing is written
 * outside of the folder, which has no link at any moment.
 * @param folder must not exist; a failure leaves a part of it
 * @returns bytes of all files
 * @throws ArtifactError for what no artifact may have; else the system's error
 */
export async function unpackArtifact(
  archive: string,
  folder: string,
  rules: ArtifactRules,
  maxEntries: number = MAX_ARTIFACT_ENTRIES,
): Promise<number> {
  // Only servers with apps need it.
  const { Parser } = await import('tar')
  const tree = new Tree(folder, rules, maxEntries)
  await tree.begin()
  const parser = new Parser({ strict: true, brotli: false, zstd: false, maxMetaEntrySize: MAX_META_BYTES })
  const state = { failure: null as unknown, isOver: false, isEnded: false }
  let wake = () => {}
  const wakes = () =>
    new Promise<void>(resolve => {
      wake = resolve
    })
  const fail = (error: unknown) => {
    state.failure ??= error
    wake()
  }
  const requireNoFailure = () => {
    if (state.failure !== null) throw state.failure
  }
  parser.on('drain', () => wake())
  parser.on('eof', () => {
    state.isOver = true
  })
  parser.on('end', () => {
    state.isEnded = true
    wake()
  })
  parser.on('error', error => fail(new ArtifactError(`is not a whole tar archive (${String(error.message)})`)))
  parser.on('ignoredEntry', entry => fail(unknownEntry(entry)))
  parser.on('entry', entry => {
    tree.add(entry).catch(error => {
      fail(error)
      entry.resume()
    })
  })
  let inflatedBytes = 0
  try {
    await pipeline(createReadStream(archive), createGunzip(), async source => {
      for await (const chunk of source as AsyncIterable<Buffer>) {
        if (inflatedBytes === 0 && chunk[0] === 0x1f && chunk[1] === 0x8b)
          throw new ArtifactError('is compressed twice')
        inflatedBytes += chunk.length
        if (inflatedBytes > rules.maxUnpackedBytes) throw tooLarge(rules)
        // The rest behind the end of the archive is counted alone.
        const goesOn = state.isOver || parser.write(chunk)
        requireNoFailure()
        if (!goesOn) await wakes()
        requireNoFailure()
      }
      parser.end()
      while (!state.isEnded) {
        requireNoFailure()
        await wakes()
      }
      requireNoFailure()
    })
    return await tree.finish()
  } catch (error) {
    await tree.abort()
    throw asArtifactError(error)
  }
}

/** The folder while it is filled. */
class Tree {
  readonly #root
  readonly #rules
  readonly #maxEntries
  readonly #folders = new Set<string>()
  #entries = 0
  #bytes = 0
  #hasManifest = false
  #isAborted = false
  #current: ReadEntry | null = null
  #latest: Promise<unknown> = Promise.resolve()

  constructor(root: string, rules: ArtifactRules, maxEntries: number) {
    this.#root = root
    this.#rules = rules
    this.#maxEntries = maxEntries
  }

  begin(): Promise<unknown> {
    return mkdir(this.#root, { mode: 0o700 })
  }

  /** Resolves when nothing is written any more. */
  async abort(): Promise<void> {
    this.#isAborted = true
    this.#current?.destroy(new ArtifactError('ends early'))
    await this.#latest
  }

  /** One after the other: an entry ends only when it was read. */
  add(entry: ReadEntry): Promise<void> {
    this.#current = entry
    // Its reader has the error, if it has one.
    entry.on('error', () => {})
    const done = this.#add(entry)
    const earlier = this.#latest
    const next = () => earlier
    this.#latest = done.then(next, next)
    return done
  }

  async #add(entry: ReadEntry): Promise<void> {
    const bytes = entry.size ?? 0
    this.#bytes += bytes
    // By the header, before anything of it is read.
    if (this.#bytes > this.#rules.maxUnpackedBytes) throw tooLarge(this.#rules)
    const { kind, parts } = entryParts({ path: entry.path, type: entry.type, bytes })
    if (kind === 'folder') {
      const before = this.#entries
      await this.#ensure(parts)
      if (this.#entries === before) this.#count()
      entry.resume()
      return
    }
    this.#count()
    await this.#ensure(parts.slice(0, -1))
    if (parts.length === 1 && parts[0] === MANIFEST) this.#hasManifest = true
    await this.#write(parts, entry)
  }

  #count(): void {
    this.#entries += 1
    if (this.#entries > this.#maxEntries) throw new ArtifactError(`has more than ${this.#maxEntries} files and folders`)
  }

  async #write(parts: readonly string[], entry: ReadEntry): Promise<void> {
    // Nothing that exists is replaced, and no link followed.
    const file = await open(join(this.#root, ...parts), 'wx', 0o600)
    try {
      this.#requireGoing()
      for await (const data of entry as AsyncIterable<Buffer>) {
        await file.writeFile(data)
        this.#requireGoing()
      }
      const runs = ((entry.mode ?? 0) & 0o100) !== 0
      await file.chmod(runs ? READ_FOLDER : READ_FILE)
    } finally {
      await file.close()
    }
  }

  /** A stream that was destroyed between two reads would never end. */
  #requireGoing(): void {
    if (this.#isAborted) throw new ArtifactError('ends early')
  }

  /** Makes folders, also those that have no entry of their own. */
  async #ensure(parts: readonly string[]): Promise<void> {
    for (let depth = 1; depth <= parts.length; depth++) {
      const folder = parts.slice(0, depth).join('/')
      if (this.#folders.has(folder)) continue
      this.#count()
      await mkdir(join(this.#root, folder), { mode: 0o700 })
      this.#folders.add(folder)
    }
  }

  /** Makes all folders for reading alone. @returns bytes of all files */
  async finish(): Promise<number> {
    await this.#latest
    if (!this.#hasManifest) throw new ArtifactError(`has no file ${MANIFEST}`)
    // A folder in a folder comes after it.
    for (const folder of [...this.#folders].reverse()) await chmod(join(this.#root, folder), READ_FOLDER)
    await chmod(this.#root, READ_FOLDER)
    return this.#bytes
  }
}

function tooLarge({ maxUnpackedBytes }: ArtifactRules): ArtifactError {
  return new ArtifactError(`has more than ${maxUnpackedBytes} bytes when it is unpacked, the limit of this server`)
}

function unknownEntry({ path, type }: Pick<ReadEntry, 'path' | 'type'>): ArtifactError {
  const shown = JSON.stringify(String(path).slice(0, 200))
  return new ArtifactError(`has an entry ${shown} of the type ${type}, which is unknown or too long`)
}

/** Errors of the archive in the words of its sender; all others are those of the machine. */
function asArtifactError(thrown: unknown): unknown {
  const { code, path } = Object(thrown) as { code?: unknown; path?: unknown }
  if (typeof code !== 'string') return thrown
  if (code.startsWith('Z_') || code === 'ERR_STREAM_PREMATURE_CLOSE')
    return new ArtifactError('is not a whole gzip file')
  if (code === 'EEXIST' || code === 'ENOTDIR') {
    const name = String(path).split('/').at(-1) ?? ''
    return new ArtifactError(`has two entries of one name, ${JSON.stringify(name.slice(0, 200))}`)
  }
  return thrown
}
