/**
 * The worker SDK for JavaScript as an archive, for folders that name it and cannot get it from a registry (ADR 87).
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { workerPackageFolder } from '../../disk/package-files.ts'
import { packageTar } from '../../drivers/docker/images/build.ts'

/** The name of the package. */
export const WORKER_PACKAGE = '@runyard/worker'
/** The archive within a folder. A `package.json` names it as `file:vendor/runyard-worker.tgz`. */
export const WORKER_ARCHIVE = 'vendor/runyard-worker.tgz'

/** The package as in the archive. */
interface WorkerPackage {
  readonly version: string
  /** An archive as `npm pack` makes it, the same for the same version. */
  readonly archive: Buffer
  /** Absolute path of the folder with its files. */
  readonly folder: string
  /** The files of the package in the folder, beside its `package.json`. */
  readonly files: readonly string[]
  /** The text of its `package.json`, without the members for development. */
  readonly manifest: string
}

interface Manifest {
  readonly version: string
  readonly files: readonly string[]
}

/** Members for development, and optional packages, for which npm would ask a registry. */
const UNNEEDED = {
  scripts: undefined,
  devDependencies: undefined,
  peerDependencies: undefined,
  peerDependenciesMeta: undefined,
}

/**
 * The package of this program. In a clone it is built first where it is older than its sources.
 * @throws where that fails
 */
export async function workerPackage(): Promise<WorkerPackage> {
  const folder = workerPackageFolder()
  const build = join(folder, 'build.mjs')
  if (existsSync(build)) await promisify(execFile)(process.execPath, [build])
  const published = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const { version, files } = published
  const manifest = `${JSON.stringify(Object.assign(published, UNNEEDED), null, 2)}\n`
  const tar = packageTar({ folder, files, manifest })
  return { version, folder, files, manifest, archive: await promisify(gzip)(await buffer(tar)) }
}

/**
 * The dependency on the package in the `package.json` of a folder: the archive, or versions of a registry; null for
 * anything else.
 */
export function requiredWorkerPackage(folder: string): 'archive' | 'registry' | null {
  const version = readDependencies(folder)[WORKER_PACKAGE]
  if (typeof version !== 'string') return null
  if (version.startsWith('file:') && normalize(version.slice('file:'.length)) === WORKER_ARCHIVE) return 'archive'
  // A version, a range or a tag; addresses, paths and aliases have one of these characters.
  return /[:/]/.test(version) ? null : 'registry'
}

/** The dependencies of a folder; empty without a readable `package.json`. */
export function readDependencies(folder: string): Readonly<Record<string, unknown>> {
  try {
    return Object(Object(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).dependencies)
  } catch {
    // npm or the worker reports its errors.
    return {}
  }
}

/** Further files for the build of an image of a folder: the archive, where it is named and missing. */
export async function missingArchive(folder: string): Promise<Readonly<Record<string, Buffer>>> {
  if (requiredWorkerPackage(folder) !== 'archive' || existsSync(join(folder, WORKER_ARCHIVE))) return {}
  return { [WORKER_ARCHIVE]: (await workerPackage()).archive }
}

/** Writes the archive into a folder. @param path within the folder */
export function writeArchive(folder: string, { archive }: WorkerPackage, path: string = WORKER_ARCHIVE): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), archive)
}
