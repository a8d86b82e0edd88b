/** Files of a model as its hub lists them, checked before a name becomes a path. */
import { MAX_MODEL_FILES, ModelError } from './model-problem.ts'

/** A file of a model. */
export interface ModelFile {
  /** Path in the model; slashes separate the parts. */
  readonly path: string
  readonly bytes: number
  /** Hash of its content by {@link algorithm}, in hexadecimal. It is the name of its blob. */
  readonly hash: string
  /** `sha256` of the content; `git` is SHA-1 over the size and the content, as git names blobs. */
  readonly algorithm: 'sha256' | 'git'
}

/** One entry of a hub's list of files. Everything in it comes from outside. */
export interface ListedFile {
  readonly type: string
  readonly path: string
  readonly size: number
  readonly oid?: string | undefined
  readonly lfs?: { readonly oid: string; readonly size: number } | undefined
}

const MAX_PATH = 1_024
const MAX_PART = 250

/**
 * Reads one entry; null for a folder.
 * @throws ModelError if the path could lead out of the model's folder, or the hash is missing
 */
export function readModelFile(entry: ListedFile): ModelFile | null {
  const { type, path, size, oid = '', lfs } = entry
  if (!isSafePath(path)) throw new ModelError({ kind: 'file_name_refused', file: String(path).slice(0, MAX_PATH) })
  if (type === 'directory') return null
  const [hash, bytes, algorithm] = lfs == null ? [oid, size, 'git' as const] : [lfs.oid, lfs.size, 'sha256' as const]
  const isHash = typeof hash === 'string' && (algorithm === 'git' ? /^[0-9a-f]{40}$/ : /^[0-9a-f]{64}$/).test(hash)
  if (type !== 'file' || !isHash || !Number.isSafeInteger(bytes) || bytes < 0)
    throw new ModelError({ kind: 'answer_unreadable', host: 'the hub', said: `no size or hash of file '${path}'` })
  return { path, bytes, hash, algorithm }
}

/** Collects files page by page. @throws ModelError for too many files or a duplicate */
export class ModelFileList {
  readonly files: ModelFile[] = []
  readonly #paths = new Set<string>()

  add(entry: ListedFile): void {
    const file = readModelFile(entry)
    if (file === null) return
    if (this.#paths.has(file.path)) throw new ModelError({ kind: 'file_name_refused', file: file.path })
    this.#paths.add(file.path)
    this.files.push(file)
    if (this.files.length > MAX_MODEL_FILES) throw new ModelError({ kind: 'too_many_files' })
  }
}

/** True if a path stays in the folder that it is joined to, on any file system. */
function isSafePath(path: unknown): boolean {
  if (typeof path !== 'string' || path === '' || path.length > MAX_PATH) return false
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the refused characters.
  if (/[\u0000-\u001f\u007f\\]/.test(path)) return false
  return path.split('/').every(part => part !== '' && part !== '.' && part !== '..' && part.length <= MAX_PART)
}
