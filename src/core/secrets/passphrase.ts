/** Length of the passphrase of a backup, in characters. */
export const PASSPHRASE_CHARACTERS = { min: 12, max: 1_024 } as const

/** Problem of the passphrase of a backup, as the rest of a sentence; null if it is good. */
export function passphraseProblem({ length }: string): string | null {
  const { min, max } = PASSPHRASE_CHARACTERS
  return length < min || length > max ? `must have ${min} to ${max} characters` : null
}
