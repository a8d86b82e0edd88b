import type { WorkerSpec } from '../../ports/driver.ts'
import { contains, extraMounts, VOLUME_PATH } from '../base/worker-paths.ts'

/** Folders of each cage, or of the files in it that the server makes. */
const CAGE_FOLDERS = ['/proc', '/sys', '/dev', '/tmp', '/var', '/etc', VOLUME_PATH]

/**
 * The volumes of a worker beside the first one, each at its own path; and each at the path that its program names, if
 * nothing of the cage lies there, since a link could lead elsewhere.
 */
export function cageMounts(
  spec: Pick<WorkerSpec, 'volume' | 'mounts'>,
  occupied: readonly string[],
): { path: string; at: string }[] {
  const others = (spec.mounts ?? []).filter(({ id }) => id !== spec.volume?.id)
  const volumes = [spec.volume, ...others].flatMap(volume => volume?.path ?? [])
  const taken = [...CAGE_FOLDERS, ...occupied, ...volumes].filter(path => path !== '')
  const isFree = (at: string) => !taken.some(path => contains(path, at) || contains(at, path))
  return [
    ...others.map(({ path }) => ({ path, at: path })),
    ...extraMounts(spec).flatMap(({ path, at }) => (isFree(at) ? [{ path, at }] : [])),
  ]
}
