/** Where the page of the console comes from: the folder that was built, or in a clone its sources, which are bundled at the first request. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { AppError } from '../core/errors.ts'
import { builtFolder, packageFile } from '../disk/package-files.ts'
import type { BuiltConsoleFile, ConsoleSource } from '../system/console-files.ts'

/** The source of the console for the program that runs. */
export function consoleSource(): ConsoleSource {
  const folder = builtFolder('console')
  return folder === null ? new BundledConsole() : { hasChanged: () => false, read: async () => filesIn(folder) }
}

function filesIn(folder: string): BuiltConsoleFile[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .map(file => ({ path: relative(folder, file), contents: readFileSync(file) }))
}

interface Bundler {
  buildConsole(): Promise<{ readonly files: readonly BuiltConsoleFile[]; readonly inputs: readonly string[] }>
}

/** Bundles the sources, again after a change, so that whoever works on the console sees it at the next load of the page. */
class BundledConsole implements ConsoleSource {
  #inputs: readonly string[] = []
  #readMs = 0

  hasChanged(): boolean {
    return this.#inputs.some(file => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) > this.#readMs)
  }

  async read(): Promise<readonly BuiltConsoleFile[]> {
    const readMs = Date.now()
    const { files, inputs } = await bundled()
    this.#inputs = inputs.map(input => packageFile(input))
    this.#readMs = readMs
    return files
  }
}

/** @throws AppError `unavailable` when the sources cannot be bundled; its cause is for the log */
async function bundled(): ReturnType<Bundler['buildConsole']> {
  try {
    // The bundler is a development dependency, and no part of a built program.
    const { buildConsole } = (await import(pathToFileURL(packageFile('scripts/console.ts')).href)) as Bundler
    return await buildConsole()
  } catch (cause) {
    throw new AppError('unavailable', 'the console cannot be bundled from its sources; the log says why', { cause })
  }
}
