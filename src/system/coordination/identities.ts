import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { createDurably, writeDurably } from '../../disk/durable-file.ts'
import { readOptional } from '../../disk/optional-files.ts'

/**
 * Name of the installation of a data directory, in letters and digits, for objects that it creates outside. Created
 * once.
 */
export function ensureInstallation(dataDir: string): string {
  const file = join(dataDir, 'installation')
  const existing = readInstallation(dataDir)
  if (existing !== null) return existing
  const created = randomBytes(6).toString('hex')
  // Servers that share the directory may start at the same moment.
  if (createDurably(file, `${created}\n`)) return created
  return readInstallation(dataDir) ?? replaced(file, created)
}

/** Replaces a file without a name. */
function replaced(file: string, created: string): string {
  writeDurably(file, `${created}\n`)
  return created
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

/**
 * Files with a name of the machine; that of the second lasts until it restarts, and is also the machine's in a
 * container.
 */
const FILES = ['/etc/machine-id', '/proc/sys/kernel/random/boot_id']

/** Name of this machine for others, without its own id, which programs keep to themselves. */
export function machineIdentity(files: readonly string[] = FILES): string {
  const id = files.map(file => readOptional(file).trim()).find(text => text !== '') ?? hostname()
  return createHash('sha256').update(`runyard machine\0${id}`).digest('hex').slice(0, 16)
}
