/** Files and folders that may be missing, or that this user may not read. */
import { readdirSync, readFileSync } from 'node:fs'

/** The text of a file; empty where it cannot be read. */
export function readOptional(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** The names in a folder; none where it cannot be read. */
export function listOptional(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
