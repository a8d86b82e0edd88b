/** Files and standard input that commands read. */
import { readFileSync } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { errorText } from '../../disk/access-problem.ts'
import { CliError, EXIT } from '../exit.ts'

/** Options of {@link readText}. */
interface ReadOptions {
  /** The exit code where it cannot be read; default: no such thing. */
  readonly unreadable?: number
  /** True when a byte order mark at the beginning is part of the text; false when left out. */
  readonly keepsMark?: boolean
}

/**
 * The text of a file in UTF-8.
 * @param file null for standard input
 * @throws CliError where it cannot be read, or is not UTF-8: other bytes would be replaced without a word
 */
export function readText(
  file: string | null,
  { unreadable = EXIT.notFound, keepsMark = false }: ReadOptions = {},
): string {
  const name = file ?? 'standard input'
  let bytes: Buffer
  try {
    bytes = readFileSync(file ?? 0)
  } catch (error) {
    throw new CliError(`${name} cannot be read: ${errorText(error)}`, unreadable)
  }
  return decoded(bytes, name, keepsMark)
}

/**
 * All of standard input, also where it comes in pieces.
 * @throws CliError as {@link readText}
 */
export async function readInput(
  input: NodeJS.ReadableStream,
  { keepsMark = false }: ReadOptions = {},
): Promise<string> {
  return decoded(await buffer(input), 'standard input', keepsMark)
}

function decoded(bytes: Buffer, name: string, keepsMark: boolean): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: keepsMark }).decode(bytes)
  } catch {
    throw new CliError(`${name} is not UTF-8`, EXIT.data)
  }
}
