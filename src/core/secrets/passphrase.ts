/** How long the passphrase of a backup may be. */
export const PASSPHRASE_CHARACTERS = { min: 12, max: 1_024 } as const

/** What is wrong with the passphrase of a backup, as the rest of a sentence; null when nothing is. */
export function passphraseProblem({ length }: string): string | null {
  const { min, max } = PASSPHRASE_CHARACTERS
  return length < min || length > max ? `must have ${min} to ${max} characters` : null
}
