import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * Files with an id of a machine. The second one lasts until the machine restarts, and a
 * container sees that of its machine.
 */
const FILES = ['/etc/machine-id', '/proc/sys/kernel/random/boot_id']

/** Names this machine to others without telling its own id, which programs keep to themselves. */
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
