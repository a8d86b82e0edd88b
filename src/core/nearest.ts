/** Names longer than this are not compared: the cost grows with the square of their length. */
const MAX_LENGTH = 64

/** The known name closest to a mistyped one, for "did you mean"; null if no name is close. Case is ignored. */
export function nearest(typed: string, words: readonly string[]): string | null {
  if (typed.length > MAX_LENGTH) return null
  const typedLower = typed.toLowerCase()
  let best: { name: string; edits: number } | null = null
  for (const name of words) {
    if (name.length > MAX_LENGTH) continue
    const edits = editsBetween(typedLower, name.toLowerCase())
    if (edits <= Math.max(1, Math.floor(name.length / 3)) && edits < (best?.edits ?? Number.POSITIVE_INFINITY)) {
      best = { name, edits }
    }
  }
  return best?.name ?? null
}

/** Number of characters that are added, left out or replaced, and of neighbors that are swapped. */
function editsBetween(a: string, b: string): number {
  const chars = [...a]
  let rowBeforeLast: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (const [index, char] of chars.entries()) {
    const next = [index + 1]
    for (let at = 1; at <= b.length; at += 1) {
      const replaced = row[at - 1]! + (char === b[at - 1] ? 0 : 1)
      const isSwapped = index > 0 && at > 1 && char === b[at - 2] && chars[index - 1] === b[at - 1]
      const swapped = isSwapped ? rowBeforeLast[at - 2]! + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(replaced, swapped, row[at]! + 1, next[at - 1]! + 1))
    }
    rowBeforeLast = row
    row = next
  }
  return row[b.length]!
}
