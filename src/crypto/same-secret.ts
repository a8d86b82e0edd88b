/** Comparison of secrets that says nothing about how much of one is right. */
import { createHash, timingSafeEqual } from 'node:crypto'

/** True when both are equal. The time that it takes depends on their lengths alone. */
export function isSameSecret(given: string, wanted: string): boolean {
  return timingSafeEqual(sha256(given), sha256(wanted))
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
