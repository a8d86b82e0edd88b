/** Lines of a worker's output that report a port in use. */

const IN_USE =
  /EADDRINUSE|address already in use|\bport \d{2,5} is (?:already )?in use|Connection in use|failed to listen|could ?n[o']t bind/i
/** Words before the port; times at the beginning of a line have the same form as an address with a port. */
const WORD_BEFORE_PORT = /\b(?:listen|bind|port|in use|address)/i
const PORT = /(?:[:,]\s?|\bport[ =:]\s?)(\d{2,5})\b/gi
/** Maximum number of characters of a line that are read. */
const MAX_LINE = 2_000
const LAST_PORT = 65_535

/**
 * The port that a line reports as in use; `unnamed` if the line does not contain it, as with Python; null for any
 * other line.
 */
export function portInUse(line: string): number | 'unnamed' | null {
  const read = line.slice(0, MAX_LINE)
  if (!IN_USE.test(read)) return null
  const rest = read.slice(read.search(WORD_BEFORE_PORT))
  const ports = [...rest.matchAll(PORT)].map(([, digits]) => Number(digits))
  return ports.findLast(port => port <= LAST_PORT) ?? 'unnamed'
}
