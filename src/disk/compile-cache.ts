import { getCompileCacheDir } from 'node:module'

/**
 * The environment variable by which a thread or process of ours uses the compile cache of this process: Node enables
 * the cache for one thread only. Empty without a cache.
 */
export function compileCacheEnvironment(): Readonly<Record<string, string>> {
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }
}
