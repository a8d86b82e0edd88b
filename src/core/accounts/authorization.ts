/** The key of an Authorization header, with or without the word Bearer; null when there is none. */
export function keyOfAuthorization(header: string | null | undefined): string | null {
  const text = header?.trim() ?? ''
  if (text === '') return null
  const bearer = /^bearer(?:\s+(.*))?$/i.exec(text)
  return bearer === null ? text : (bearer[1] ?? '').trim()
}
