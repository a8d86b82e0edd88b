import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { AppError } from '../../core/errors.ts'
import { createDurably, writeDurably } from '../../disk/durable-file.ts'
import { KEY_BYTES } from './vault.ts'

/** The keys of an installation: the first one seals, all open. */
export type MasterKeys = readonly [Buffer, ...Buffer[]]

/**
 * The keys of a server: the given ones, then those of the file, which is made if there are no keys.
 * A file with two keys belongs to an unfinished rotation.
 * @param givenKeys in base64, from the environment
 * @throws AppError `internal` for a file without keys
 */
export function loadMasterKeys(file: string, givenKeys: readonly string[]): MasterKeys {
  const keys = givenKeys.map(text => Buffer.from(text, 'base64'))
  const stored = keys.length > 0 && !existsSync(file) ? [] : readOrCreate(file)
  return [...keys, ...stored] as unknown as MasterKeys
}

/**
 * Puts a new key in front of the file's own, so that it seals all new texts. An unfinished
 * rotation continues.
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
  createDurably(file, randomBytes(KEY_BYTES))
  const bytes = readFileSync(file)
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

/** At each moment the file has the old keys or the new ones. */
function replaceFile(file: string, keys: readonly Buffer[]): void {
  writeDurably(file, Buffer.concat(keys))
}
