/** JSON of outputs for reading, and as a file. */
import { bytes } from '../../format.ts'
import { findFile, isScalar } from './detect.ts'

/** Number of characters of a text from which it is checked for being a file. */
const LONG = 500
/** Number of characters of a file that are shown. */
const SHOWN = 24

/** The whole JSON of a value, indented; a text as it is. */
export function wholeText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'null')
}

/** The JSON of a value in which files are shortened to their beginning, their type and their size. */
export function shownText(value: unknown): string {
  if (typeof value === 'string') return shortened(value)
  return (
    JSON.stringify(value, (_, member: unknown) => (typeof member === 'string' ? shortened(member) : member), 2) ?? ''
  )
}

function shortened(text: string): string {
  if (text.length < LONG) return text
  const file = findFile(text)
  if (file === null || file.form === 'plain') return text
  return `${text.slice(0, file.from + SHOWN)}… (${file.type}, ${bytes(file.bytes)})`
}

/** Limit of characters of a cell. */
const MAX_CELL = 200

/** A value as the text of a cell. */
export function cellText(value: unknown): string {
  if (value === undefined) return ''
  const text = typeof value === 'string' ? shortened(value) : (JSON.stringify(value) ?? '')
  return text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text
}

/** A value as a field of a file of a table: whole. */
export function cellValue(value: unknown): string | number | null {
  if (value === undefined || value === null) return null
  if (typeof value === 'string' || typeof value === 'number') return value
  return isScalar(value) ? JSON.stringify(value) : null
}
