import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDurably, writeDurably } from '../../disk/durable-file.ts'

/**
 * Name of the installation of a data directory, in letters and digits, for objects that it creates outside. Created
 * once.
 */
export function ensureInstallation(dataDir: string): string {
  const file = join(dataDir, 'installation')
  const known = readInstallation(dataDir)
  if (known !== null) return known
  const made = randomBytes(6).toString('hex')
  // Servers that share the directory may start at the same moment.
  if (createDurably(file, `${made}\n`)) return made
  return readInstallation(dataDir) ?? replaced(file, made)
}

/** Replaces a file without a name. */
function replaced(file: string, made: string): string {
  writeDurably(file, `${made}\n`)
  return made
}

/** The name of the installation of a data directory; null before it exists. */
export function readInstallation(dataDir: string): string | null {
  try {
    const text = readFileSync(join(dataDir, 'installation'), 'utf8').trim()
    return /^[a-z0-9]{6,32}$/.test(text) ? text : null
  } catch {
    return null
  }
}
