/** Parts of texts from outside, found in time that grows with the text alone. */
import { invalidRequest } from './errors.ts'

/** Maximum items of a list that comes as one text. */
const MAX_ITEMS = 1_000

/** A text without the run of a character at its end. */
export function withoutEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end -= 1
  return text.slice(0, end)
}

/** The text before the first of some characters; all of it where there is none. */
export function textBefore(text: string, ...marks: readonly string[]): string {
  const found = marks.map(mark => text.indexOf(mark)).filter(at => at !== -1)
  return found.length === 0 ? text : text.slice(0, Math.min(...found))
}

/** True when a text has these words, each behind the previous one. */
export function hasInOrder(text: string, ...words: readonly string[]): boolean {
  let at = 0
  return words.every(word => {
    const found = text.indexOf(word, at)
    at = found + word.length
    return found !== -1
  })
}

/** The parts of a list that comes as one text, trimmed and without empty ones. @throws AppError `invalid` if there are too many */
export function listItems(text: string, separator: ',' | '\n'): string[] {
  const items = text.split(separator, MAX_ITEMS + 1)
  if (items.length > MAX_ITEMS) throw invalidRequest([`a list has more than ${MAX_ITEMS} items`])
  return items.map(item => item.trim()).filter(item => item !== '')
}
