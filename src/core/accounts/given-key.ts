/** Fewer characters can be guessed or tried out. */
const LEAST = 20
const MOST = 256

/** What is wrong with an API key that somebody chose for the server, as the rest of a sentence each; empty when nothing is. */
export function givenKeyProblems(key: string): string[] {
  return /^[\x21-\x7e]+$/.test(key) && key.length >= LEAST && key.length <= MOST
    ? []
    : [`must have ${LEAST} to ${MOST} visible ASCII characters`]
}
