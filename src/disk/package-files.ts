import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'

/**
 * Programs that run in a process or a thread of their own, by their path in the sources; entry points of the build
 * (scripts/build.ts).
 */
export const PROGRAMS = [
  'relay/program',
  'pump/program',
  'drivers/cage/door',
  'store/engines/sqlite-thread',
  'store/engines/sqlite-copy-thread',
  'system/bodies/body-thread',
  'system/gpu/helper-program',
  'main/listening/http-thread',
] as const

/** Folder of the running code: `src`, or the `dist` that was built from it, with other folders. */
const CODE = codeFolder(import.meta.dirname)

/** Absolute path of a program, or of the command line, built if the running code is. */
export function programFile(name: (typeof PROGRAMS)[number] | 'cli/runyard'): string {
  return join(CODE, `${name}.${import.meta.filename.endsWith('.ts') ? 'ts' : 'js'}`)
}

/** Absolute path of a folder of the built program; null while the sources run. */
export function builtFolder(name: string): string | null {
  return import.meta.filename.endsWith('.ts') ? null : join(CODE, name)
}

/** Absolute path of a file or folder of the package, such as `package.json`. */
export function packageFile(path: string): string {
  let folder = dirname(CODE)
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder)
  return join(folder, path)
}

/** Absolute path of the worker SDK for JavaScript, `@runyard/worker`, in the built program or in the repository. */
export function workerPackageFolder(): string {
  return builtFolder('worker') ?? packageFile('packages/worker')
}

/** Absolute path of the Python package of workers of RunPod's SDK 2.0, in the built program or in the repository. */
export function runtimePackageFolder(): string {
  return builtFolder('runtime') ?? packageFile('packages/runtime')
}

/** The version of the package. */
export function packageVersion(): string {
  return (JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as { readonly version: string }).version
}

function codeFolder(folder: string): string {
  const parts = folder.split(sep)
  return parts.slice(0, Math.max(parts.lastIndexOf('src'), parts.lastIndexOf('dist')) + 1).join(sep)
}
