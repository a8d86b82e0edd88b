/** Parts of texts from outside, found in linear time. */
import { invalidRequest } from './errors.ts'

/** Maximum number of items of a list in one text. */
const MAX_ITEMS = 1_000

/** A text without the repeated character at its end. */
export function withoutEnd(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end -= 1
  return text.slice(0, end)
}

/** The text before the first of some marks; the whole text if it has no mark. */
export function textBefore(text: string, ...marks: readonly string[]): string {
  let end = text.length
  for (const mark of marks) {
    const at = text.indexOf(mark)
    if (at !== -1 && at < end) end = at
  }
  return end === text.length ? text : text.slice(0, end)
}

/** True if a text has these words in this order. */
export function hasInOrder(text: string, ...words: readonly string[]): boolean {
  let at = 0
  return words.every(word => {
    const position = text.indexOf(word, at)
    at = position + word.length
    return position !== -1
  })
}

/** Parts of a list in one text, trimmed and without empty ones. @throws AppError `invalid` if there are too many */
export function listItems(text: string, separator: ',' | '\n'): string[] {
  const items = text.split(separator, MAX_ITEMS + 1)
  if (items.length > MAX_ITEMS) throw invalidRequest([`a list has more than ${MAX_ITEMS} items`])
  return items.map(item => item.trim()).filter(item => item !== '')
}
