/**
 * The runtime of apps of RunPod's SDK 2.0 in containers of images of their own: their command starts its modules,
 * which no registry has. It is copied into the container, since an engine may not see files of the server.
 */
import type { Readable } from 'node:stream'
import { pack } from 'tar-fs'
import { runsApp, runtimeImage } from '../../core/endpoints/runtime-image.ts'
import type { WorkerSpec } from '../../ports/driver.ts'

/** Folder of the package in a container. */
const FOLDER = '/runyard/runtime'
/** The package in its folder on this machine. */
const PACKAGE = 'runpod_sdk_runtime'
const VARIABLE = 'PYTHONPATH='

/** True for a worker of an app in an image of its own. */
export function needsRuntime({ image, env }: Pick<WorkerSpec, 'image' | 'env'>): boolean {
  return runsApp(image, env) && runtimeImage(image) === null
}

/**
 * The worker with the variable by which Python finds the package, before the folders that its user or its image names.
 * @param imageEnv variables of the image, as `NAME=value`
 * @param packages folders of the build in the container, which come next
 */
export function withRuntimePath(
  spec: WorkerSpec,
  imageEnv: readonly string[],
  packages: readonly string[] = [],
): WorkerSpec {
  const ofImage = imageEnv.find(variable => variable.startsWith(VARIABLE))?.slice(VARIABLE.length)
  const others = spec.env.PYTHONPATH ?? ofImage ?? ''
  const folders = [FOLDER, ...packages, ...(others === '' ? [] : [others])]
  return { ...spec, env: { ...spec.env, PYTHONPATH: folders.join(':') } }
}

/** The package as a tar archive for the root of a container. @param folder of the package on this machine */
export function runtimeArchive(folder: string): Readable {
  return pack(folder, {
    entries: [PACKAGE],
    sort: true,
    ignore: path => path.endsWith('__pycache__'),
    map: header => {
      const mode = header.type === 'directory' ? 0o755 : 0o644
      return Object.assign(header, { name: `${FOLDER.slice(1)}/${header.name}`, uid: 0, gid: 0, mode })
    },
  })
}
