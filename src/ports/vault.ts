/** Keeps what must not be readable: hashes for keys and tokens, encryption for secrets. */
export interface Vault {
  /** A one-way hash of a key or token, equal for equal texts. The texts are random and long, so it needs no salt. */
  hash(text: string): string
  /** Compares two hashes in a time that does not depend on where they differ. */
  equal(a: string, b: string): boolean
  /** Encrypts a text for the store. Two calls give different results. */
  seal(plain: string): string
  /**
   * What {@link seal} was given.
   * @throws AppError `internal` when the text was changed or sealed with another key
   */
  open(sealed: string): string
  /**
   * What {@link seal} would make of a text that was sealed with an older key; null when it was sealed with the present one.
   * @throws AppError `internal` as {@link open}
   */
  reseal(sealed: string): string | null
  /**
   * HMAC-SHA256 of a text, in base64.
   * @param key in base64
   */
  sign(key: string, text: string): string
}
