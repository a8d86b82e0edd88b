/** Links to models for workers that are processes without a cage, which see the folders of the machine as they are. */
import { chmod, cp, mkdir, readdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { MountedModel } from '../../ports/driver.ts'

/**
 * Makes the folder in which a worker finds its models: folders of its own, with a link for each file. What it downloads itself, such as a
 * newer commit, lies beside them and goes with it; the files of all are not touched.
 */
export async function linkModels(models: readonly MountedModel[], folder: string): Promise<void> {
  for (const { folder: name, path } of models) {
    const own = join(folder, name)
    await mkdir(join(own, 'blobs'), { recursive: true, mode: 0o700 })
    for (const blob of await readdir(join(path, 'blobs')))
      await symlink(join(path, 'blobs', blob), join(own, 'blobs', blob))
    for (const part of ['refs', 'snapshots'])
      await cp(join(path, part), join(own, part), { recursive: true, verbatimSymlinks: true })
  }
}

/** Makes the folder to which the path of network volumes may lead for workers without one: it shows the cache of models. */
export async function offerModels([model]: readonly MountedModel[], folder: string): Promise<void> {
  if (model === undefined) return
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // The cache is huggingface-cache/hub there, too.
  await symlink(dirname(dirname(model.path)), join(folder, 'huggingface-cache')).catch(ignoreExisting)
  await chmod(folder, 0o500)
}

function ignoreExisting(thrown: NodeJS.ErrnoException): void {
  if (thrown.code !== 'EEXIST') throw thrown
}
