/** Answers of the server as values for decisions, with the text of each to print and to send on. */
import { compactJson, JsonText, jsonText } from '../../core/json/json-format.ts'
import { elementTexts, memberTexts } from '../../core/json/json-text.ts'

/** The texts of values; a copy of a value has none. */
const texts = new WeakMap<object, string>()

/** The value of an answer with a JSON body. */
export async function answerValue<Value extends object>(answer: Response): Promise<Value> {
  return parsed(await answer.text())
}

/** The value of a JSON text that the server has sent. */
export function parsed<Value extends object>(text: string): Value {
  const value = JSON.parse(text) as Value
  if (typeof value === 'object' && value !== null) texts.set(value, text)
  return value
}

/** The items of a list in a value, each with its own text. */
export function pageItems<Item extends object>(page: object, member: string): Item[] {
  const items = (page as Record<string, unknown>)[member] as Item[]
  const text = texts.get(page)
  const list = text === undefined ? undefined : memberTexts(text).get(member)
  if (list === undefined) return items
  for (const [index, itemText] of elementTexts(list).entries()) {
    const item = items[index]
    if (typeof item === 'object' && item !== null) texts.set(item, itemText)
  }
  return items
}

/** A value as JSON on one line: in the text that it came as, where it came from the server. */
export function jsonLine(value: object): string {
  const text = texts.get(value)
  return text === undefined ? jsonText(value) : compactJson(text)
}

/** A member of a value in the text that it came as; null where there is none. */
export function memberJson(value: object, member: string): JsonText | null {
  const text = memberTexts(texts.get(value) ?? JSON.stringify(value)).get(member)
  return text === undefined ? null : new JsonText(text)
}
