/**
 * The folders of a cache of models on disk, in the layout of the cache of Hugging Face: `blobs` by their hashes,
 * `snapshots/<commit>` of relative links to them, and `refs` with the commits of branches. A snapshot has its
 * name only once it is whole. Beside them are facts outside of that layout: the accounts that may read a model, when
 * it was used, and the workers that have it.
 */
import { chmodSync, existsSync, readdirSync, readlinkSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ModelFile } from '../../core/models/model-files.ts'
import { isCommit, modelFolder, modelInFolder } from '../../core/models/model-reference.ts'
import { ensureFolder, flushFolder, keepDurably, moveDurably, removeDurably } from '../../disk/durable-file.ts'
import { readOptional } from '../../disk/optional-files.ts'
import { INCOMPLETE } from './blob-download.ts'

/** Programs in containers run as other users. */
const SHARED_FOLDER = 0o755
const SHARED_FILE = 0o644
/** Beginning of the names of snapshots that are being created or removed. */
const HIDDEN = '.'

/** True for a blob without a snapshot that may be removed. @param hash its name when it is whole */
export type BlobRule = (hash: string, writtenAtMs: number) => boolean

/** The files of a cache. All methods throw the system's error. */
export class ModelFolders {
  /** The folder that holds the folders of models. */
  readonly hub: string
  readonly #notes: string

  /** @param root created at its first use */
  constructor(root: string) {
    this.hub = join(root, 'huggingface-cache', 'hub')
    this.#notes = join(root, 'notes')
  }

  /** All models that have a folder. */
  models(): string[] {
    return namesIn(this.hub).flatMap(name => modelInFolder(name) ?? [])
  }

  /** The commits in the cache. */
  commits(model: string): string[] {
    return namesIn(join(this.#folder(model), 'snapshots')).filter(isCommit)
  }

  /** True if a commit is present. */
  has(model: string, commit: string): boolean {
    return existsSync(this.#snapshot(model, commit))
  }

  /** Path of a blob. Creates its folder. */
  blobPath(model: string, hash: string): string {
    const blobs = join(this.#folder(model), 'blobs')
    this.#share(blobs)
    return join(blobs, hash)
  }

  /** Creates a snapshot of blobs that are all present, and replaces an existing one. */
  publish(model: string, commit: string, files: readonly ModelFile[]): void {
    const path = this.#snapshot(model, commit)
    if (existsSync(path)) removeDurably(path)
    const draft = join(dirname(path), `${HIDDEN}${commit}`)
    rmSync(draft, { recursive: true, force: true })
    for (const needed of [draft, join(this.#folder(model), 'blobs'), join(this.#folder(model), 'refs')])
      this.#share(needed)
    const folders = new Set([draft])
    for (const { path: name, hash } of files) {
      const link = join(draft, ...name.split('/'))
      for (let folder = dirname(link); !folders.has(folder); folder = dirname(folder)) folders.add(folder)
      this.#share(dirname(link))
      symlinkSync(join(...name.split('/').map(() => '..'), '..', 'blobs', hash), link)
    }
    for (const folder of folders) flushFolder(folder)
    moveDurably(draft, path)
  }

  /** The files of a snapshot, largest first. */
  files(model: string, commit: string): { readonly path: string; readonly bytes: number }[] {
    const files = linksIn(this.#snapshot(model, commit), '')
    return files.map(({ path, link }) => ({ path, bytes: fileSize(link) })).sort((a, b) => b.bytes - a.bytes)
  }

  /** Size of the files of a snapshot. */
  snapshotBytes(model: string, commit: string): number {
    const blobs = new Set(this.#blobs(model, commit))
    return [...blobs].reduce((sum, hash) => sum + fileSize(join(this.#folder(model), 'blobs', hash)), 0)
  }

  /** Size of all blobs, unfinished ones included. */
  usedBytes(): number {
    const blobs = this.models().map(model => join(this.#folder(model), 'blobs'))
    return blobs.flatMap(folder => namesIn(folder).map(name => fileSize(join(folder, name)))).reduce((a, b) => a + b, 0)
  }

  /** The commit of a branch or tag; null if unknown. */
  ref(model: string, revision: string): string | null {
    const text = readOptional(join(this.#folder(model), 'refs', ...revision.split('/'))).trim()
    return isCommit(text) ? text : null
  }

  /** Records the commit of a branch or tag. */
  setRef(model: string, revision: string, commit: string): void {
    if (isCommit(revision)) return
    const file = join(this.#folder(model), 'refs', ...revision.split('/'))
    this.#share(dirname(file))
    keepDurably(file, commit)
    chmodSync(file, SHARED_FILE)
  }

  /** The branches and tags that mean a commit. */
  refsTo(model: string, commit: string): string[] {
    const refs = join(this.#folder(model), 'refs')
    return pathsIn(refs, '').filter(path => readOptional(join(refs, path)).trim() === commit)
  }

  /** Removes a snapshot, its refs, and the blobs of no other one. @param mayGo see {@link sweep} */
  async remove(model: string, commit: string, mayGo: BlobRule): Promise<void> {
    const path = this.#snapshot(model, commit)
    const hiddenPath = join(dirname(path), `${HIDDEN}${commit}`)
    rmSync(hiddenPath, { recursive: true, force: true })
    if (existsSync(path)) moveDurably(path, hiddenPath)
    for (const ref of this.refsTo(model, commit)) removeDurably(join(this.#folder(model), 'refs', ref))
    await this.sweep(model, mayGo)
  }

  /**
   * Removes blobs that no snapshot has, whole or not, and the folder of a model without any.
   * @param mayGo returns true if such a blob may be removed
   */
  async sweep(model: string, mayGo: BlobRule): Promise<void> {
    const folder = this.#folder(model)
    const blobs = join(folder, 'blobs')
    const snapshots = join(folder, 'snapshots')
    for (const name of namesIn(snapshots))
      if (name.startsWith(HIDDEN)) rmSync(join(snapshots, name), { recursive: true, force: true })
    const usedBlobs = new Set(this.commits(model).flatMap(commit => this.#blobs(model, commit)))
    for (const name of namesIn(blobs)) {
      const path = join(blobs, name)
      const writtenAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
      // In a thread of the pool: the removal of a large file takes its time.
      if (!usedBlobs.has(name) && mayGo(name.replace(INCOMPLETE, ''), writtenAtMs)) await rm(path, { force: true })
    }
    if (namesIn(blobs).length > 0 || this.commits(model).length > 0) return
    removeDurably(folder)
    removeDurably(this.#noteFile(`${modelFolder(model)}.json`))
  }

  /** The note about a model; null without one. */
  readNote(model: string): unknown {
    return parsed(readOptional(this.#noteFile(`${modelFolder(model)}.json`)))
  }

  /** Writes the note about a model. */
  writeNote(model: string, note: object): void {
    this.#write(`${modelFolder(model)}.json`, note)
  }

  /** The notes about all workers. */
  workerNotes(): Map<string, unknown> {
    const folder = join(this.#notes, 'workers')
    return new Map(namesIn(folder).map(name => [basename(name, '.json'), parsed(readOptional(join(folder, name)))]))
  }

  /** Writes the note about a worker; null removes it. */
  writeWorkerNote(worker: string, note: object | null): void {
    if (!/^[\w-]+$/.test(worker)) throw new Error(`'${worker}' is not the id of a worker`)
    if (note === null) removeDurably(this.#noteFile(join('workers', `${worker}.json`)))
    else this.#write(join('workers', `${worker}.json`), note)
  }

  /** Creates a folder in that of a model, readable for all with any umask of the server. */
  #share(folder: string): void {
    ensureFolder(folder)
    for (let path = folder; path.startsWith(this.hub); path = dirname(path)) chmodSync(path, SHARED_FOLDER)
  }

  #write(name: string, note: object): void {
    const file = this.#noteFile(name)
    ensureFolder(dirname(file))
    keepDurably(file, JSON.stringify(note))
  }

  #noteFile(name: string): string {
    return join(this.#notes, name)
  }

  #folder(model: string): string {
    return join(this.hub, modelFolder(model))
  }

  #snapshot(model: string, commit: string): string {
    return join(this.#folder(model), 'snapshots', commit)
  }

  #blobs(model: string, commit: string): string[] {
    return linksIn(this.#snapshot(model, commit), '').map(({ link }) => basename(readlinkSync(link)))
  }
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : []
}

/** The links of a snapshot, with their paths in it. */
function linksIn(folder: string, inside: string): { path: string; link: string }[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = inside === '' ? entry.name : `${inside}/${entry.name}`
    const full = join(folder, entry.name)
    if (entry.isDirectory()) return linksIn(full, path)
    return entry.isSymbolicLink() ? [{ path, link: full }] : []
  })
}

function pathsIn(folder: string, inside: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = inside === '' ? entry.name : `${inside}/${entry.name}`
    return entry.isDirectory() ? pathsIn(join(folder, entry.name), path) : [path]
  })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
