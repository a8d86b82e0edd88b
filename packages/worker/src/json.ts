/** The error of a value that cannot be sent as JSON without a loss; the message has the place and the reason. */
export class NotJsonError extends TypeError {
  override name = 'NotJsonError'
}

/**
 * JSON text of `value`. Unlike `JSON.stringify` it writes BigInts with all digits and throws a `NotJsonError` for
 * values that would silently vanish: functions, symbols, promises, maps and sets. `undefined` is left out of objects.
 */
export function toJson(value: unknown): string {
  let mark = ''
  const replace = (key: string, item: unknown): unknown => {
    if (typeof item === 'bigint') {
      mark ||= `bigint${Math.random().toString(36).slice(2)}:`
      return mark + item
    }
    const kind = unsendable(item)
    if (kind) throw new NotJsonError(`the output cannot be sent as JSON: ${key ? `"${key}"` : 'it'} is ${kind}`)
    return item
  }
  let text: string | undefined
  try {
    text = JSON.stringify(value, replace)
  } catch (error) {
    if (error instanceof NotJsonError) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw new NotJsonError(`the output cannot be sent as JSON: ${reason}`, { cause: error })
  }
  if (text === undefined) return 'null'
  return mark ? text.replace(new RegExp(`"${mark}(-?\\d+)"`, 'g'), '$1') : text
}

function unsendable(item: unknown): string | undefined {
  if (typeof item === 'function') return 'a function'
  if (typeof item === 'symbol') return 'a symbol'
  if (typeof item !== 'object' || item === null) return undefined
  if (item instanceof Promise) return 'a promise (is an await missing?)'
  if (item instanceof Map) return 'a Map (use Object.fromEntries)'
  if (item instanceof Set) return 'a Set (use an array)'
  return undefined
}
