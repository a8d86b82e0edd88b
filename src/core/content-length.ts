/**
 * True when the value of a Content-Length can be read in one way only: a number of bytes without a sign, a list or leading zeros, which some
 * read as octal (RFC 9110, 8.6).
 */
export function isContentLength(text: string): boolean {
  return /^(?:0|[1-9]\d{0,14})$/.test(text)
}
