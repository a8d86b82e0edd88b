import type { BigIntStats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import type { FileFacts } from '../../ports/volume-files.ts'
import { fileError } from './safe-folder.ts'

/** The facts of a file. Another content has another tag, also where both have one size and came in one second. */
export function factsFrom({ size, mtimeNs, ino }: BigIntStats): FileFacts {
  const tag = `"${[mtimeNs, ino, size].map(part => part.toString(16)).join('-')}"`
  return { bytes: Number(size), modifiedMs: Number(mtimeNs / 1_000_000n), tag }
}

/** The state of an entry itself, link or not; null if it does not exist. */
export async function readStats(path: string): Promise<BigIntStats | null> {
  return (await lstat(path, { bigint: true }).catch(ignoring('ENOENT'))) ?? null
}

/** Ignores errors with these codes: the result is undefined then. */
export function ignoring(...codes: readonly string[]) {
  return (error: NodeJS.ErrnoException): undefined => {
    if (!codes.includes(error.code ?? '')) throw error
  }
}

/** Runs an operation, with the errors of the system as those that clients get. */
export async function translated<Value>(act: () => Promise<Value>): Promise<Value> {
  try {
    return await act()
  } catch (error) {
    throw fileError(error)
  }
}
