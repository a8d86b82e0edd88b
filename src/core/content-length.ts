/**
 * True if a Content-Length has only one reading: a number of bytes without a sign, a list or leading zeros, which
 * some programs read as octal (RFC 9110, 8.6).
 */
export function isContentLength(text: string): boolean {
  return /^(?:0|[1-9]\d{0,14})$/.test(text)
}
