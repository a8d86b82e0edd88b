/** A word as a shell reads it: in single quotes unless it has only characters without a meaning. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
