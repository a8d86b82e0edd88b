/** The place of a sealed text: it opens there and nowhere else. */
export interface SealPlace {
  /** Kind of the text, as SEAL_KINDS in ports/management-store.ts names it. */
  readonly kind: string
  /** Permanent key of its row. */
  readonly row: string
}

/** Protects texts that must not be readable: hashes for keys and tokens, encryption for secrets. */
export interface Vault {
  /** A one-way hash of a key or token, equal for equal texts. The texts are random and long, so it needs no salt. */
  hash(text: string): string
  /** Compares two hashes in a time that does not depend on where they differ. */
  equal(a: string, b: string): boolean
  /** Encrypts a text for one place in the store. Two calls give different results. */
  seal(plain: string, place: SealPlace): string
  /**
   * The text that {@link seal} received. Texts of older forms are bound to no place.
   * @throws AppError `internal` when the text was changed, moved from another place, or sealed with another key
   */
  open(sealed: string, place: SealPlace): string
  /**
   * The present sealed form of a text that was sealed with an older key or in an older form; null for other texts.
   * @throws AppError `internal` as {@link open}
   */
  reseal(sealed: string, place: SealPlace): string | null
  /**
   * A secret of 43 letters, digits, `-` and `_` that only a server with this encryption key can make for this place:
   * the same at each call, and another one after a change of the encryption key.
   */
  derive(place: SealPlace): string
  /**
   * HMAC-SHA256 of texts that follow each other, in base64. Long ones are taken a part at a time.
   * @param key in base64
   */
  sign(key: string, texts: readonly string[]): Promise<string>
}
