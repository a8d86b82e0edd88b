import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { givenKeyProblems } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import { writeDurably } from '../../disk/durable-file.ts'

/**
 * The server's own API key: the given one, else that of the file; null before it is made.
 * @param givenKey null without one
 */
export function readApiKey(file: string, givenKey: string | null): string | null {
  const stored = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  return givenKey ?? (stored === '' ? null : stored)
}

/**
 * The server's own API key: the given one, else that of the file, else a new one. The key is flushed to the file,
 * even if the machine fails, before a database may have it.
 * @param givenKey null without one
 * @throws AppError `invalid` when the file has one that is too easy to guess
 */
export function keepApiKey(file: string, givenKey: string | null): string {
  const stored = readApiKey(file, null)
  const key = givenKey ?? stored ?? `rpa_${randomBytes(24).toString('base64url')}`
  const [problem] = givenKeyProblems(key)
  if (problem !== undefined) {
    throw new AppError('invalid', `the API key in ${file} ${problem}; delete the file to get a new key`)
  }
  if (key !== stored) writeDurably(file, `${key}\n`)
  return key
}
