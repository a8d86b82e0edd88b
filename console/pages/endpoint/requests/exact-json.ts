/** JSON whose large integers stay as they are: inputs may have seeds and ids that no number of JavaScript can hold. */

/** What newer browsers have for it (https://tc39.es/proposal-json-parse-with-source/). */
interface ExactJson {
  readonly rawJSON?: (text: string) => object
  readonly parse: (
    text: string,
    reviver: (key: string, value: unknown, context?: { readonly source?: string }) => unknown,
  ) => unknown
}

const MANY_DIGITS = /\d{16}/

/** Parses a JSON text. Integers past 2^53 become objects that `JSON.stringify` writes as they were, where the browser can do that. */
export function parseExact(text: string): unknown {
  const { rawJSON, parse } = JSON as ExactJson
  if (rawJSON === undefined || !MANY_DIGITS.test(text)) return JSON.parse(text)
  return parse(text, (_, value, context) =>
    typeof value === 'number' &&
    Number.isInteger(value) &&
    !Number.isSafeInteger(value) &&
    context?.source !== undefined
      ? rawJSON(context.source)
      : value,
  )
}

/** The body of a response, exactly. */
export async function exactBody<Type>(response: Response): Promise<Type> {
  return parseExact(await response.text()) as Type
}
