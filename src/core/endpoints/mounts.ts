/** The mounts of a worker of RunPod's SDK 2.0, which its variable RUNPOD_MOUNTS lists for the SDK. */
import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import type { VolumeId } from '../ids.ts'
import type { VolumeKind } from './volume.ts'

/** The variable with the mounts. */
export const MOUNTS = 'RUNPOD_MOUNTS'

/** The path of the volume of a worker, in containers and on RunPod. */
export const VOLUME_PATH = '/runpod-volume'

/** A volume, and the absolute path at which a worker sees it. */
export interface VolumeAt {
  readonly id: VolumeId
  readonly at: string
}

/** Longest path of a mount, in characters. */
const MAX_PATH = 500
/** Folders of each container in which nothing else may lie. */
const KERNEL_FOLDERS = ['/proc', '/sys', '/dev']

/**
 * The mounts with the paths at which a worker sees its volumes here; null for a text that is none, of which the worker
 * itself complains.
 * @param pathOf the path of a volume; undefined for one that the worker does not have, which keeps its path
 */
export function placedMounts(text: string | undefined, pathOf: (id: string) => string | undefined): string | null {
  const mounts = parseMounts(text)
  if (mounts === null) return null
  return JSON.stringify(
    mounts.map(mount => {
      const path = pathOf(String(Object(mount).id))
      return path === undefined ? mount : { ...(mount as object), path }
    }),
  )
}

/** A volume that a client wants for a task. */
export interface WantedVolume extends VolumeAt {
  readonly kind: VolumeKind
}

/** The mounts of a task: those that its client asked for, by the names that its program knows them by. */
export function taskMounts(text: string | undefined, volumes: readonly WantedVolume[]): string {
  const known = parseMounts(text) ?? []
  return JSON.stringify(
    volumes.map(({ id, at, kind }) => {
      const named: unknown = known.find(mount => Object(mount).id === id)
      return named === undefined ? { kind, reference: id, id, path: at } : { ...(named as object), path: at }
    }),
  )
}

/** The paths of the volumes of a worker as its variable names them; of others nothing. */
export function mountsOf(text: string | undefined, ids: readonly VolumeId[]): VolumeAt[] {
  const mounts = (parseMounts(text) ?? []).map(mount => Object(mount) as Readonly<Record<string, unknown>>)
  return ids.flatMap(id => {
    const path = mounts.find(mount => mount.id === id)?.path
    return typeof path === 'string' && pathProblem(path) === null ? [{ id, at: path }] : []
  })
}

/** All problems of the paths that a client wants for the volumes of a task. */
export function mountProblems(volumes: readonly VolumeAt[]): FieldProblem[] {
  const paths = volumes.map(({ at }) => at)
  const problems = paths.flatMap(path => {
    const problem = pathProblem(path)
    return problem === null ? [] : [fieldProblem('mountPath', problem, `'${path.slice(0, MAX_PATH)}'`)]
  })
  if (problems.length > 0) return problems
  const overlaps = paths.some((path, index) => paths.some((other, at) => at !== index && holds(path, other)))
  return overlaps ? [fieldProblem('mountPath', 'must not lie in that of another volume')] : []
}

function pathProblem(path: string): string | null {
  const parts = path.split('/').slice(1)
  const isPlain = path.startsWith('/') && !path.includes('\0') && parts.every(part => !['', '.', '..'].includes(part))
  if (!isPlain || path.length > MAX_PATH) return "must be an absolute path without '.', '..' and empty parts"
  return KERNEL_FOLDERS.some(folder => holds(folder, path)) ? 'must not lie in /proc, /sys or /dev' : null
}

/** True if a path is a folder, or lies in it. */
function holds(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

function parseMounts(text: string | undefined): readonly unknown[] | null {
  try {
    const mounts = JSON.parse(text ?? '') as unknown
    return Array.isArray(mounts) ? mounts : null
  } catch {
    return null
  }
}
