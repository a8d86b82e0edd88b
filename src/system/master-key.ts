import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { AppError } from '../core/errors.ts'
import { KEY_BYTES } from './vault.ts'

/** The keys of an installation: the first one seals, all open. */
export type MasterKeys = readonly [Buffer, ...Buffer[]]

/**
 * The keys that a server uses: those that it was given and then those of the file, which is made when there are none.
 * A file with two keys is that of a rotation that is not over.
 * @param given in base64, from the environment
 * @throws AppError `internal` when the file does not hold keys
 */
export function loadMasterKeys(file: string, given: readonly string[]): MasterKeys {
  const keys = given.map(text => Buffer.from(text, 'base64'))
  const stored = keys.length > 0 && !existsSync(file) ? [] : readOrCreate(file)
  return [...keys, ...stored] as unknown as MasterKeys
}

/**
 * Puts a new key in front of the file's own, so that what is sealed from now on is sealed with it. Where a rotation was
 * begun before, that one goes on.
 */
export function beginRotation(file: string): MasterKeys {
  const keys = readOrCreate(file)
  if (keys.length > 1) return keys
  const both: MasterKeys = [randomBytes(KEY_BYTES), keys[0]]
  replaceFile(file, both)
  return both
}

/** Drops all keys of the file but the first. */
export function endRotation(file: string): void {
  replaceFile(file, readOrCreate(file).slice(0, 1))
}

function readOrCreate(file: string): MasterKeys {
  const bytes = createKey(file) ?? readFileSync(file)
  const count = bytes.length / KEY_BYTES
  if (count === 1 || count === 2) {
    return Array.from({ length: count }, (_, n) =>
      Buffer.from(bytes.subarray(n * KEY_BYTES, (n + 1) * KEY_BYTES)),
    ) as unknown as MasterKeys
  }
  throw new AppError(
    'internal',
    `${file} has ${bytes.length} bytes and an encryption key has ${KEY_BYTES}; ` +
      'restore it from a backup, or, if no secrets are stored yet, delete it and start again',
  )
}

/** Null when the file is there already, from before or from another process at the same moment. */
function createKey(file: string): Buffer | null {
  try {
    const key = randomBytes(KEY_BYTES)
    writeDurably(file, [key], 'wx')
    return key
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return null
    throw thrown
  }
}

/** At each moment the file has the old keys or the new ones. */
function replaceFile(file: string, keys: readonly Buffer[]): void {
  writeDurably(`${file}.new`, keys, 'w')
  renameSync(`${file}.new`, file)
  const folder = openSync(dirname(file), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}

function writeDurably(file: string, keys: readonly Buffer[], flag: 'w' | 'wx'): void {
  const handle = openSync(file, flag, 0o600)
  try {
    writeSync(handle, Buffer.concat(keys))
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
