/** Minimum length: fewer characters can be guessed. */
const MIN_LENGTH = 20
const MAX_LENGTH = 256

/** Problems of an API key that an operator chose, each as the rest of a sentence; empty for a good key. */
export function givenKeyProblems(key: string): string[] {
  return /^[\x21-\x7e]+$/.test(key) && key.length >= MIN_LENGTH && key.length <= MAX_LENGTH
    ? []
    : [`must have ${MIN_LENGTH} to ${MAX_LENGTH} visible ASCII characters`]
}
