/** The built program for servers that tests start: it loads in less than half of the time of the sources. */
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, globSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildFiles, writeFiles } from '../build.ts'

/** Folder of built programs. It is in the repository, where the program finds its packages and examples. */
const CACHE = resolve('node_modules/.cache/runyard')
/** Age at which a program of other sources is removed; a run may still use a younger one. */
const MAX_AGE_MS = 86_400_000

/**
 * Builds the program from the present sources, unless it is built already.
 * @returns its entry; undefined if this user may not write into the repository: the sources run then
 */
export async function builtProgram(): Promise<string | undefined> {
  try {
    mkdirSync(CACHE, { recursive: true })
    accessSync(CACHE, constants.W_OK)
  } catch {
    return
  }
  for (const folder of globSync(join(CACHE, 'built-*')))
    if (Date.now() - statSync(folder).mtimeMs > MAX_AGE_MS) rmSync(folder, { recursive: true, force: true })
  const files = await buildFiles()
  const hash = createHash('sha256')
  for (const { path, contents } of files) hash.update(path).update(contents)
  const folder = join(CACHE, `built-${hash.digest('hex').slice(0, 16)}`)
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`
    writeFiles(files, join(unfinished, 'dist'))
    renameSync(unfinished, folder)
  }
  return join(folder, 'dist/cli/runyard.js')
}
