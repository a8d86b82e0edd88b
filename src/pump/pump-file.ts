import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureFolder, writeDurably } from '../disk/durable-file.ts'
import { type ProcessIdentity, parseIdentity } from '../drivers/base/process-table.ts'

/**
 * The folder of the pipes of workers, below the folder of a pump. Each is named after its worker, and
 * exists until all of it was read.
 */
export function pipesFolder(folder: string): string {
  return join(folder, 'pipes')
}

/** The pump of a folder, as it describes itself; null without one. */
export function readPump(folder: string): ProcessIdentity | null {
  try {
    return parseIdentity(readFileSync(fileIn(folder), 'utf8'))
  } catch {
    return null
  }
}

/** Records the process that is the pump of a folder, in place of the previous one. */
export function writePump(folder: string, identity: ProcessIdentity): void {
  ensureFolder(pipesFolder(folder))
  writeDurably(fileIn(folder), `${JSON.stringify(identity)}\n`, `${fileIn(folder)}.${identity.pid}`)
}

/** Removes the record of a pump that has ended or is about to end. */
export function removePump(folder: string): void {
  rmSync(fileIn(folder), { force: true })
}

function fileIn(folder: string): string {
  return join(folder, 'pump.json')
}
