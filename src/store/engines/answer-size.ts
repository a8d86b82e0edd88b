/** Of all the texts in an answer, in characters. */
export function countCharacters(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  let sum = 0
  for (const part of Object.values(value)) sum += countCharacters(part)
  return sum
}
