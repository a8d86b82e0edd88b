/** Fewer characters can be guessed or tried out. */
const LEAST = 20
const MOST = 256

/** What is wrong with an API key that somebody chose for the server, as the rest of a sentence; null when nothing is. */
export function givenKeyProblem(key: string): string | null {
  return /^[\x21-\x7e]+$/.test(key) && key.length >= LEAST && key.length <= MOST
    ? null
    : `must have ${LEAST} to ${MOST} visible ASCII characters`
}
