/** The key of an Authorization header, with or without the word Bearer; null without a header. */
export function readAuthorizationKey(header: string | null | undefined): string | null {
  const text = header?.trim() ?? ''
  if (text === '') return null
  return /^bearer(?:\s|$)/i.test(text) ? text.slice('bearer'.length).trim() : text
}
