/**
 * Inputs and results with a checksum: `#`, eight hexadecimal digits of the CRC-32 of the text, the text. What is
 * stored is JSON or sealed, so nothing else begins with `#`, and texts of earlier versions, which have no checksum,
 * are known as such. Sealed texts have a seal instead.
 */
import { crc32 } from 'node:zlib'

const MARK = '#'
/** Number of characters before a text that has a checksum. */
export const SUM_LENGTH = 9
/**
 * Maximum characters of a text with a checksum: those of larger ones would hold the loop of a server on PostgreSQL.
 */
const MAX_SUMMED = 4 * 1024 * 1024
const SEALED = 'sealed:'

/** A text as it is stored; null without one. */
export function summed<Text extends string | null>(text: Text): Text {
  if (text === null || text.length > MAX_SUMMED || text.startsWith(SEALED)) return text
  return `${MARK}${checksum(text)}${text}` as Text
}

/** A stored text, and a flag that it is unchanged. */
export interface ReadText<Text extends string | null> {
  readonly text: Text
  readonly isWhole: boolean
}

/** A text as it was given to {@link summed}. */
export function readSummed<Text extends string | null>(stored: Text): ReadText<Text> {
  if (stored === null || stored.length > SUM_LENGTH + MAX_SUMMED) return { text: stored, isWhole: true }
  const text = stored.slice(SUM_LENGTH) as Text & string
  const fits = stored.slice(1, SUM_LENGTH) === checksum(text)
  // If the mark itself was changed, the checksum behind it still fits.
  return stored.startsWith(MARK) ? { text, isWhole: fits } : { text: stored, isWhole: !fits }
}

/** The error of a job whose stored result is another one now, or whose input is; `text` for a part of either. */
export function changedText(what: 'input' | 'result' | 'text'): string {
  return `the stored ${what} of this job was changed by damage of the disk or of the database (its checksum is wrong); see runyard check`
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
