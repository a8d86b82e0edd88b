import type { Random } from '../ports/random.ts'

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

/**
 * A new id of lower-case letters and digits, beginning with a letter; `length` characters (36 ^ 13 of them by
 * default).
 */
export function shortId(random: Random, length = 14): string {
  return [...random.bytes(length)].map((byte, index) => LETTERS[byte % (index === 0 ? 26 : LETTERS.length)]).join('')
}
