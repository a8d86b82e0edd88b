/** Places of the library of NVIDIA's driver. */
import { existsSync } from 'node:fs'
import { delimiter, dirname } from 'node:path'

/**
 * The library by its name for the loader of the system, and in folders that the loader may not search: of
 * containers, WSL and NixOS.
 */
export const LIBRARIES = [
  'libcuda.so.1',
  '/usr/local/nvidia/lib64/libcuda.so.1',
  '/usr/lib/wsl/lib/libcuda.so.1',
  '/run/opengl-driver/lib/libcuda.so.1',
] as const

/**
 * An environment in which the loader finds the library and the files that it loads by name, such as its compiler of
 * PTX.
 */
export function withLibraryFolders(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const folders = LIBRARIES.filter(path => existsSync(path)).map(path => dirname(path))
  const path = [env.LD_LIBRARY_PATH ?? '', ...folders].filter(folder => folder !== '').join(delimiter)
  return path === '' ? env : { ...env, LD_LIBRARY_PATH: path }
}
