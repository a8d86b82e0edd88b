import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Files with a name of the machine; that of the second lasts until it restarts, and is also the machine's in a
 * container.
 */
const FILES = ['/etc/machine-id', '/proc/sys/kernel/random/boot_id']

/** Name of this machine for others, without its own id, which programs keep to themselves. */
export function machineIdentity(files: readonly string[] = FILES): string {
  const id = files.map(readId).find(text => text !== '') ?? hostname()
  return createHash('sha256').update(`runyard machine\0${id}`).digest('hex').slice(0, 16)
}

function readId(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return ''
  }
}
