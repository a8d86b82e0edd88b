/**
 * Models that the person who runs the server has downloaded with the tools of Hugging Face, offered in the cache of an
 * endpoint: folders of its own with a link for each file, so that workers read the person's files, add others beside
 * them, and change none.
 */
import { lstat, mkdir, readdir, readFile, readlink, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { contains } from '../base/worker-paths.ts'

/** Limits of what is offered: of models, and of the files of one of them. */
const MAX_MODELS = 1_000
const MAX_FILES = 10_000
const MAX_REF_BYTES = 256
const OFFERED = /^(?:models|datasets|spaces)--/

/** Options of {@link offerHub}. */
export interface HubOffer {
  /** The person's cache. */
  readonly hub: string
  /** The cache of the endpoint. */
  readonly cache: string
  /** A folder on the disk of the cache that does not exist yet, and no worker sees. */
  readonly apart: string
  /** True when no worker has the cache, so that models can be added. */
  readonly isQuiet: boolean
}

/** The models that are offered. */
export interface OfferedHub {
  /** Folders outside of the cache to which its links lead. */
  readonly readable: readonly string[]
}

/** Offers what is new since the last time. A model that cannot be offered is left out; workers download it. */
export async function offerHub({ hub, cache, apart, isQuiet }: HubOffer): Promise<OfferedHub> {
  const real = await realpath(hub).catch(() => null)
  if (real === null) return { readable: [] }
  const names = (await readdir(real).catch(() => [])).filter(name => OFFERED.test(name)).slice(0, MAX_MODELS)
  const readable = [real]
  const offered = join(cache, 'huggingface', 'hub')
  const canAdd = isQuiet && (await areFolders([dirname(offered), offered]))
  for (const name of names) {
    const model = await realpath(join(real, name)).catch(() => null)
    if (model === null) continue
    if (!contains(real, model)) readable.push(model)
    const offeredModel = join(offered, name)
    if (canAdd && (await lstat(offeredModel).catch(() => null)) === null)
      await offerModel(model, offeredModel, apart).catch(() => {})
  }
  return { readable }
}

/** Makes them where they do not exist. False where one is something else, such as a link that a worker has left. */
async function areFolders(paths: readonly string[]): Promise<boolean> {
  for (const path of paths) {
    await mkdir(path, { mode: 0o700 }).catch(() => {})
    if ((await lstat(path).catch(() => null))?.isDirectory() !== true) return false
  }
  return true
}

/** Whole or not at all. */
async function offerModel(model: string, offeredModel: string, apart: string): Promise<void> {
  await rm(apart, { recursive: true, force: true })
  try {
    await mkdir(apart, { mode: 0o700 })
    const budget = { left: MAX_FILES }
    await linkFiles(join(model, 'blobs'), join(apart, 'blobs'), budget, false)
    await linkFiles(join(model, 'snapshots'), join(apart, 'snapshots'), budget, true)
    await copyRefs(join(model, 'refs'), join(apart, 'refs'), budget)
    await rename(apart, offeredModel)
  } finally {
    await rm(apart, { recursive: true, force: true })
  }
}

/** The files of a folder as links to them. Links of snapshots lead to the blobs beside them, and stay as they are. */
async function linkFiles(
  sourceFolder: string,
  targetFolder: string,
  budget: { left: number },
  keepsLinks: boolean,
): Promise<void> {
  await mkdir(targetFolder, { mode: 0o700 })
  for (const entry of await readdir(sourceFolder, { withFileTypes: true }).catch(() => [])) {
    spend(budget)
    const [source, place] = [join(sourceFolder, entry.name), join(targetFolder, entry.name)]
    if (entry.isDirectory()) await linkFiles(source, place, budget, keepsLinks)
    else await symlink(keepsLinks && entry.isSymbolicLink() ? await readlink(source) : source, place)
  }
}

async function copyRefs(sourceFolder: string, targetFolder: string, budget: { left: number }): Promise<void> {
  await mkdir(targetFolder, { mode: 0o700 })
  for (const entry of await readdir(sourceFolder, { withFileTypes: true }).catch(() => [])) {
    spend(budget)
    const [source, place] = [join(sourceFolder, entry.name), join(targetFolder, entry.name)]
    if (entry.isDirectory()) await copyRefs(source, place, budget)
    else if ((await lstat(source)).size <= MAX_REF_BYTES)
      await writeFile(place, await readFile(source), { mode: 0o600 })
  }
}

function spend(budget: { left: number }): void {
  budget.left -= 1
  if (budget.left < 0) throw new Error('the model has too many files')
}
