/**
 * JSON whose numbers stay as they are written: inputs may have seeds and ids that no number of JavaScript can hold,
 * and 1.0 differs from 1 in Python.
 */

/** Functions of newer browsers for it (https://tc39.es/proposal-json-parse-with-source/). */
interface ExactJson {
  readonly rawJSON?: (text: string) => object
  readonly parse: (
    text: string,
    reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown,
  ) => unknown
}

/** Text that has a number which JavaScript may write in another way. */
const MAY_CHANGE = /\d{16}|\d[.eE]|-0/

/**
 * Parses a JSON text. If the browser can, numbers that JavaScript would write in another way become objects that
 * `JSON.stringify` writes in the original form.
 */
export function parseExact(text: string): unknown {
  const { rawJSON, parse } = JSON as ExactJson
  if (rawJSON === undefined || !MAY_CHANGE.test(text)) return JSON.parse(text)
  return parse(text, (_, value, context) =>
    typeof value === 'number' && context?.source !== undefined && context.source !== JSON.stringify(value)
      ? rawJSON(context.source)
      : value,
  )
}

/** The body of a response, exactly. */
export async function exactBody<Type>(response: Response): Promise<Type> {
  return parseExact(await response.text()) as Type
}
