/**
 * The folder in which a process worker starts. Workers of one image that started in the image's own folder would share
 * what they write there by relative paths, such as the list of jobs of some versions of RunPod's SDK. So each starts
 * in a private folder with links to the entries of the image: relative reads find them, and what is new stays private.
 */
import { mkdir, opendir, realpath, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import { contains } from '../base/worker-paths.ts'

/** The variable of an endpoint that says where its workers start: `private`, which is usual, or `image`. */
export const WORKING_FOLDER_VARIABLE = 'RUNYARD_WORKING_FOLDER'

/** The most entries of an image that are linked: each costs a moment of the worker's start. */
const MAX_ENTRIES = 10_000
/** The most entries of one folder of {@link WRITTEN_BY_SDK} that are linked one by one. */
const MAX_INNER_ENTRIES = 1_000
/** Links that are made at a time. */
const BATCH = 64

/**
 * The RunPod SDK from 1.7.12 to 1.10.0 keeps the jobs that it works on in this file of its folder, beside a lock. A
 * worker that finds one there takes the jobs of another for its own, believes that it is busy, and never asks for any.
 */
const JOB_LIST = '.runpod_jobs.pkl'

/**
 * Folders into which RunPod's SDK writes. Where an image has one, its entries are linked instead of itself, so that
 * new files in it are private too.
 */
const WRITTEN_BY_SDK: ReadonlySet<string> = new Set([
  'jobs',
  'job_files',
  'input_objects',
  'output_objects',
  'local_upload',
  'simulated_uploaded',
])

/** The folder in which a worker starts. */
export interface WorkingFolder {
  readonly path: string
  /**
   * A line for the output of the worker, where it does not start in a private folder although it should; null
   * otherwise.
   */
  readonly note: string | null
}

/**
 * True where workers of this environment start in a private folder.
 * @throws WorkerStartError when the variable has another value than those that it can have
 */
export function wantsPrivateFolder(env: Readonly<Record<string, string>>): boolean {
  const choice = env[WORKING_FOLDER_VARIABLE] ?? 'private'
  if (choice === 'private') return true
  if (choice === 'image') return false
  throw new WorkerStartError({
    kind: 'settings_invalid',
    problem: `the variable ${WORKING_FOLDER_VARIABLE} must be private or image`,
  })
}

/** Lets a worker start in the image's own folder. A list of jobs that a previous worker left there is removed. */
export async function imageAsWorkingFolder(image: string): Promise<WorkingFolder> {
  await rm(join(image, JOB_LIST), { force: true }).catch(() => {})
  return { path: image, note: null }
}

/**
 * Makes a private working folder with links to the entries of an image, or falls back to the image's own folder where
 * that cannot be done: it has more than {@link MAX_ENTRIES} entries, it cannot be listed, or the disk of the private
 * folder has no links.
 * @param image the real path of the image's folder
 * @param place path of the private folder, whose parent exists; the rest of a start that was broken off is removed
 * @throws the file system's error when the private folder cannot be made
 */
export async function makeWorkingFolder(image: string, place: string): Promise<WorkingFolder> {
  await rm(place, { recursive: true, force: true })
  await mkdir(place, { mode: 0o700 })
  try {
    const names = await listEntries(image, MAX_ENTRIES)
    if (names === null) return await fallBack(image, place, `its folder has more than ${MAX_ENTRIES} entries`)
    const ownPath = await realpath(place)
    // Programs that follow links through all folders would come back here without end.
    const linked = names.filter(
      name => name !== JOB_LIST && name !== `${JOB_LIST}.lock` && !contains(join(image, name), ownPath),
    )
    await inBatches(linked, name => linkEntry(join(image, name), join(place, name), WRITTEN_BY_SDK.has(name)))
    return { path: place, note: null }
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code === undefined) throw thrown
    return await fallBack(image, place, `its private folder cannot be filled with links (${code})`)
  }
}

async function fallBack(image: string, place: string, reason: string): Promise<WorkingFolder> {
  await rm(place, { recursive: true, force: true })
  const note = `this worker starts in ${image} itself, which it shares with others, because ${reason}`
  return { ...(await imageAsWorkingFolder(image)), note }
}

async function linkEntry(source: string, target: string, entryByEntry: boolean): Promise<void> {
  const inner = entryByEntry ? await listEntries(source, MAX_INNER_ENTRIES).catch(() => null) : null
  if (inner === null) return symlink(source, target)
  await mkdir(target, { mode: 0o700 })
  await inBatches(inner, name => symlink(join(source, name), join(target, name)))
}

/** The names in a folder; null where there are more. */
async function listEntries(folder: string, most: number): Promise<string[] | null> {
  const names: string[] = []
  for await (const { name } of await opendir(folder, { bufferSize: 256 })) {
    if (names.length === most) return null
    names.push(name)
  }
  return names
}

async function inBatches(names: readonly string[], act: (name: string) => Promise<void>): Promise<void> {
  for (let at = 0; at < names.length; at += BATCH) await Promise.all(names.slice(at, at + BATCH).map(act))
}
