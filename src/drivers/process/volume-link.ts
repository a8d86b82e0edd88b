/**
 * `/runpod-volume` for workers that are processes: programs that were written for RunPod name their network volume by
 * it. All processes of a machine share the path, so it can lead to one volume at a time: to that of the workers that
 * run. A file of another program is left alone.
 */
import { chmod, cp, mkdir, readdir, readlink, symlink, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { WorkerId } from '../../core/ids.ts'
import type { MountedModel, WorkerSpec } from '../../ports/driver.ts'

/** The path of the link, and the folder in which all volumes of this server lie: a link into it is ours. */
export interface VolumeLinkPlace {
  readonly path: string
  readonly root: string
  /** The folder to which the link leads for workers that have models and no network volume. */
  readonly models: string
}

/** Keeps a symbolic link to the network volume of the workers that run. */
export class VolumeLink {
  readonly #place
  readonly #volumes = new Map<WorkerId, string>()
  /** One change at a time. */
  #last: Promise<unknown> = Promise.resolve()

  /** @param place null for no link at all */
  constructor(place: VolumeLinkPlace | null) {
    this.#place = place
  }

  /**
   * Lets the link lead to the volume of a worker for as long as it runs, unless it leads to that of another one,
   * belongs to another program, or may not be made by the user of the server.
   * @param volume its folder, or that of models
   * @returns a line for the output of the worker where the path leads to something else than its volume; null
   * otherwise
   */
  hold(worker: WorkerId, volume: string): Promise<string | null> {
    return this.#inTurn(null, async place => {
      const { path, models } = place
      // The variable of a worker that was taken over may name any folder.
      if (!isOurs(volume, place)) return null
      this.#volumes.set(worker, volume)
      const target = await readTarget(path)
      if (target === volume) return null
      const isFree = target !== null && isOurs(target, place) && ![...this.#volumes.values()].includes(target)
      if (isFree) await unlink(path).catch(() => {})
      if ((target === null || isFree) && (await makeLink(volume, path))) return null
      if (target === null) return null
      return volume === models
        ? `${path} does not show the models of this worker, which are in HF_HUB_CACHE`
        : `${path} is not the network volume of this worker, which is in RUNPOD_VOLUME_PATH`
    })
  }

  /**
   * Shows a worker without a cage its network volume and its models.
   * @param modelLinks its folder of links to models
   * @returns a line for its output; null for none
   */
  async show({ workerId, volume, models }: WorkerSpec, modelLinks: string): Promise<string | null> {
    if (models.length > 0) await linkModels(models, modelLinks)
    if (volume !== null) return this.hold(workerId, volume.path)
    const modelFolder = this.#place?.models
    if (models.length === 0 || modelFolder === undefined) return null
    await offerModels(models, modelFolder)
    return this.hold(workerId, modelFolder)
  }

  /** The worker has ended. The link goes with the last one that had its volume. */
  release(worker: WorkerId): Promise<void> {
    return this.#inTurn(undefined, async ({ path }) => {
      const volume = this.#volumes.get(worker)
      this.#volumes.delete(worker)
      if (volume === undefined || [...this.#volumes.values()].includes(volume)) return
      if ((await readTarget(path)) === volume) await unlink(path).catch(() => {})
    })
  }

  /** Removes the link of an earlier run of the server that no worker needs. */
  tidy(): Promise<void> {
    return this.#inTurn(undefined, async place => {
      const { path } = place
      const target = await readTarget(path)
      if (target === null || !isOurs(target, place)) return
      if (![...this.#volumes.values()].includes(target)) await unlink(path).catch(() => {})
    })
  }

  #inTurn<T>(otherwise: T, act: (place: VolumeLinkPlace) => Promise<T>): Promise<T> {
    const place = this.#place
    if (place === null) return Promise.resolve(otherwise)
    const turn = this.#last.then(() => act(place))
    this.#last = turn.catch(() => {})
    return turn
  }
}

/** True for a link of this server. */
function isOurs(target: string, { root, models }: VolumeLinkPlace): boolean {
  return dirname(target) === root || target === models
}

/** The target of a link; null where there is nothing, `other` where there is no link. */
async function readTarget(path: string): Promise<string | null> {
  try {
    return await readlink(path)
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'ENOENT' ? null : 'other'
  }
}

/** Most users have no right to write there. */
async function makeLink(target: string, path: string): Promise<boolean> {
  return symlink(target, path).then(
    () => true,
    () => false,
  )
}

/**
 * Makes the folder in which a worker finds its models: folders of its own, with a link for each file. What it
 * downloads itself, such as a newer commit, lies beside them and goes with it; the files of all are not touched.
 */
async function linkModels(models: readonly MountedModel[], folder: string): Promise<void> {
  for (const { folder: name, path } of models) {
    const modelFolder = join(folder, name)
    await mkdir(join(modelFolder, 'blobs'), { recursive: true, mode: 0o700 })
    for (const blob of await readdir(join(path, 'blobs')))
      await symlink(join(path, 'blobs', blob), join(modelFolder, 'blobs', blob))
    for (const part of ['refs', 'snapshots'])
      await cp(join(path, part), join(modelFolder, part), { recursive: true, verbatimSymlinks: true })
  }
}

/**
 * Makes the folder to which the path of network volumes may lead for workers without one: it shows the cache of
 * models.
 */
async function offerModels([model]: readonly MountedModel[], folder: string): Promise<void> {
  if (model === undefined) return
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // The cache is huggingface-cache/hub there, too.
  await symlink(dirname(dirname(model.path)), join(folder, 'huggingface-cache')).catch(ignoreExisting)
  await chmod(folder, 0o500)
}

function ignoreExisting(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'EEXIST') throw thrown
}
