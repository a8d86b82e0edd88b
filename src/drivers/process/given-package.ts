/** The worker SDK for JavaScript, which a server gives to the workers of folders without it (ADR 87). */
import { basename, dirname, join } from 'node:path'
import type { Command } from './process-command.ts'
import { exists } from './program-files.ts'

const NAME = '@runyard/worker'
/** The file in the folder of the package that Node loads first, so that imports find the package. */
const PRELOAD = 'preload.cjs'

/**
 * Variables that give a worker the package, where it may run Node and neither its folder nor one above it has the
 * package.
 * @returns variables that replace those of the same name; null for a worker that does not get the package
 */
export async function givenPackage(
  { folder, words }: Command,
  packageFolder: string | null,
  env: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>> | null> {
  if (packageFolder === null || isPython(words) || (await hasPackage(folder))) return null
  const preload = `--require ${JSON.stringify(join(packageFolder, PRELOAD))}`
  return { NODE_OPTIONS: env.NODE_OPTIONS === undefined ? preload : `${env.NODE_OPTIONS} ${preload}` }
}

function isPython(words: readonly string[]): boolean {
  return basename(words[0] ?? '').startsWith('python') || words.some(word => word.endsWith('.py'))
}

async function hasPackage(image: string): Promise<boolean> {
  const folders: string[] = []
  for (let folder = image; folder !== dirname(folder); folder = dirname(folder)) folders.push(folder)
  const exist = await Promise.all(folders.map(folder => exists(join(folder, 'node_modules', NAME, 'package.json'))))
  return exist.includes(true)
}
