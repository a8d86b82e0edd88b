/** Maximum nesting of lists and objects in JSON input: deeper text could exhaust the stack of a recursive reader. */
export const MAX_JSON_DEPTH = 1_000

/** The problem of a deeper text. */
export const TOO_DEEP = `it has more than ${MAX_JSON_DEPTH} levels of lists and objects`

const QUOTE = 0x22

/**
 * True if lists and objects nest deeper than {@link MAX_JSON_DEPTH} in a text that may be JSON. One pass before the
 * text is parsed; texts that are too short to be that deep cost nothing.
 */
export function isTooDeep(text: string): boolean {
  if (text.length <= MAX_JSON_DEPTH) return false
  let depth = 0
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = stringEnd(text, at + 1) - 1
      continue
    }
    // With this bit set, [ and { are 0x7b, ] and } are 0x7d.
    const bracket = code | 0x20
    if (bracket === 0x7b) {
      depth += 1
      if (depth > MAX_JSON_DEPTH) return true
    } else if (bracket === 0x7d) depth -= 1
  }
  return false
}

/**
 * The end of the string whose first character is at `from`. A loop, since a pattern that repeats a group overflows on
 * megabytes.
 */
export function stringEnd(text: string, from: number): number {
  for (let at = from; ; ) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return text.length
    let escapes = 0
    while (quote - escapes > at && text[quote - escapes - 1] === '\\') escapes += 1
    at = quote + 1
    if (escapes % 2 === 0) return at
  }
}
