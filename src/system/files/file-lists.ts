import type { Dirent } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { compareKeys, type FilePath, isFileName, MAX_KEY_BYTES } from '../../core/files/file-key.ts'
import type { FileFacts, FileList, ListRequest } from '../../ports/volume-files.ts'
import { factsFrom, ignoring, readStats } from './file-facts.ts'
import { inFolder, pathIn } from './safe-folder.ts'

/** Names of one folder that are held at once; a larger folder is read again for the next ones. */
export const NAMES_AT_ONCE = 50_000
/** Folders whose next names are kept for the next page. */
const KEPT_FOLDERS = 4
const KEPT_MS = 30_000
/** Files whose state is read together. */
const STATS = 64
/** Time after which a list ends early; it goes on with the next request. */
export const LIST_MS = 15_000
/** Behind all keys that begin with what stands before it. */
const LAST = '\u{10ffff}'

/** Next names of a folder behind one, in order; those of folders end with a slash. */
interface Names {
  readonly after: string
  readonly names: readonly string[]
  /** True if no more follow. */
  readonly isRest: boolean
}

/** One file or folder of a list. */
type Step = (FileFacts & { readonly key: string }) | { readonly folder: string }

/** Lists of the files below folders, with bounded memory and open files, however many there are. */
export class FileLists {
  /** Names that pages left for the next ones, by the path of the folder; the oldest first. */
  readonly #kept = new Map<string, Names & { readonly atMs: number }>()
  readonly #namesAtOnce: number
  readonly #listMs: number

  constructor(namesAtOnce: number, listMs: number) {
    this.#namesAtOnce = namesAtOnce
    this.#listMs = listMs
  }

  /** @param root the folder of the volume; @param base the folder of the keys */
  async list(root: string, base: FilePath, request: ListRequest, signal: AbortSignal): Promise<FileList> {
    const { prefix, limit } = request
    const slash = prefix.lastIndexOf('/') + 1
    const inner = prefix.slice(0, slash).split('/').slice(0, -1)
    const files: (FileFacts & { readonly key: string })[] = []
    const folders: string[] = []
    if (limit === 0 || !inner.every(isFileName)) return { files, folders, next: null }
    const walk = new Walk({
      root,
      request,
      kept: this.#kept,
      namesAtOnce: this.#namesAtOnce,
      untilMs: performance.now() + this.#listMs,
      signal,
    })
    let last: string | null = null
    for await (const step of walk.folder([...base, ...inner], prefix.slice(0, slash), prefix.slice(slash))) {
      if (files.length + folders.length === limit) return { files, folders, next: last }
      if ('folder' in step) folders.push(step.folder)
      else files.push(step)
      last = 'folder' in step ? step.folder : step.key
    }
    return { files, folders, next: walk.isLate ? walk.position : null }
  }

  /** Forgets what was kept of a volume: it has changed. */
  forget(root: string): void {
    for (const folder of this.#kept.keys()) if (`${folder}/`.startsWith(`${root}/`)) this.#kept.delete(folder)
  }
}

interface WalkParts {
  readonly root: string
  readonly request: ListRequest
  readonly kept: Map<string, Names & { readonly atMs: number }>
  readonly namesAtOnce: number
  readonly untilMs: number
  readonly signal: AbortSignal
}

/** One walk through the folders of a list, in the order of keys. */
class Walk {
  /** Everything up to this key was listed. */
  position: string
  /** True if it ended early. */
  isLate = false
  readonly #parts: WalkParts

  constructor(parts: WalkParts) {
    this.#parts = parts
    this.position = parts.request.after
  }

  /**
   * @param place path of the folder in the volume
   * @param prefix its key, with a slash at the end; empty for the root
   * @param begins beginning of the names that count
   */
  async *folder(place: FilePath, prefix: string, begins: string): AsyncGenerator<Step> {
    const { after: start, byFolder } = this.#parts.request
    let after = start.startsWith(prefix) ? start.slice(prefix.length) : ''
    // All of its keys come before.
    if (after === '' && compareKeys(start, prefix) > 0) return
    for (;;) {
      const { names, isRest } = await this.#names(place, after, begins)
      let done = 0
      const pass = (name: string, end: string) => {
        done += 1
        after = `${name}${end}`
        this.position = `${prefix}${after}`
      }
      try {
        while (done < names.length) {
          this.#parts.signal.throwIfAborted()
          // The next request has to go on behind where this one began.
          this.isLate = this.position !== start && performance.now() > this.#parts.untilMs
          if (this.isLate) return
          const name = names[done]!
          const key = `${prefix}${name}`
          if (Buffer.byteLength(key) > MAX_KEY_BYTES) pass(name, LAST)
          else if (!name.endsWith('/')) {
            for (const [file, facts] of await this.#facts(place, names, done)) {
              if (facts !== null) yield { ...facts, key: `${prefix}${file}` }
              pass(file, '')
            }
          } else if (byFolder) {
            yield { folder: key }
            pass(name, '')
          } else {
            yield* this.folder([...place, name.slice(0, -1)], key, '')
            if (this.isLate) return
            pass(name, LAST)
          }
        }
      } finally {
        this.#keep(place, { after, names: names.slice(done), isRest })
      }
      if (isRest) return
    }
  }

  /** The next names of a folder behind one. */
  async #names(place: FilePath, after: string, begins: string): Promise<Names> {
    const { root, kept, request, namesAtOnce } = this.#parts
    const counts = (name: string) => {
      if (!name.startsWith(begins)) return false
      if (compareKeys(name, after) > 0) return true
      // A folder in which the list goes on.
      const isIn = name.endsWith('/') && after.startsWith(name)
      return isIn && after !== `${name}${LAST}` && !(request.byFolder && after === name)
    }
    const keptNames = kept.get([root, ...place].join('/'))
    if (after !== '' && keptNames !== undefined && performance.now() - keptNames.atMs < KEPT_MS) {
      const names = keptNames.names.filter(counts)
      const covers = compareKeys(keptNames.after, after) <= 0 && (keptNames.isRest || names.length > 0)
      if (covers) return { after, names, isRest: keptNames.isRest }
    }
    const smallest = new SmallestNames(namesAtOnce)
    const read = inFolder(root, place, async folder => {
      for await (const entry of await opendir(pathIn(folder), { bufferSize: 256 })) {
        const name = await keyName(entry, pathIn(folder, entry.name))
        if (name !== null && counts(name)) smallest.add(name)
      }
    })
    // A folder of a worker may be closed to the server.
    await (place.length === 0 ? read : read.catch(ignoring('EACCES')))
    return { after, ...smallest.first() }
  }

  /** Keeps what a page leaves of a folder. */
  #keep(place: FilePath, names: Names): void {
    const { root, kept } = this.#parts
    const folder = [root, ...place].join('/')
    kept.delete(folder)
    if (names.names.length === 0) return
    kept.set(folder, { ...names, atMs: performance.now() })
    if (kept.size > KEPT_FOLDERS) kept.delete(kept.keys().next().value!)
  }

  /** The next files up to the next folder, a bounded number of them; null for what is gone, or no file. */
  async #facts(place: FilePath, names: readonly string[], start: number): Promise<[string, FileFacts | null][]> {
    const block = names.slice(start, start + STATS)
    const end = block.findIndex(name => name.endsWith('/'))
    const files = end === -1 ? block : block.slice(0, end)
    const allStats = await inFolder(this.#parts.root, place, folder =>
      Promise.all(files.map(name => readStats(pathIn(folder, name)))),
    )
    return files.map((name, at) => {
      const stats = allStats?.[at] ?? null
      return [name, stats?.isFile() === true ? factsFrom(stats) : null]
    })
  }
}

/** The name of an entry in the order of keys; null for what no key can name. */
async function keyName(entry: Dirent, path: string): Promise<string | null> {
  if (!isFileName(entry.name)) return null
  if (entry.isFile()) return entry.name
  if (entry.isDirectory()) return `${entry.name}/`
  if (entry.isSymbolicLink() || entry.isFIFO() || entry.isSocket() || entry.isCharacterDevice()) return null
  // Some file systems do not say what an entry is.
  const stats = await lstat(path).catch(() => null)
  if (stats?.isFile() === true) return entry.name
  return stats?.isDirectory() === true ? `${entry.name}/` : null
}

/** The smallest of many names, of which it holds a bounded number. */
class SmallestNames {
  readonly #limit: number
  #names: string[] = []
  #isCut = false

  constructor(limit: number) {
    this.#limit = limit
  }

  add(name: string): void {
    this.#names.push(name)
    if (this.#names.length >= 2 * this.#limit) this.#cut()
  }

  /** In order. */
  first(): Pick<Names, 'names' | 'isRest'> {
    this.#cut()
    return { names: this.#names, isRest: !this.#isCut }
  }

  #cut(): void {
    this.#names.sort(compareKeys)
    this.#isCut ||= this.#names.length > this.#limit
    this.#names.length = Math.min(this.#names.length, this.#limit)
  }
}
