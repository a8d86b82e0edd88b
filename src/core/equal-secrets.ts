/**
 * True if two secrets are the same, in a time that depends on their lengths alone. For texts of some dozens of
 * characters this takes less than a call of the crypto library.
 */
export function equalSecrets(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0
}
