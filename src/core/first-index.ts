/**
 * The first index whose value passes; the length when none does. Values that pass come behind those that do not, as `value > 5` in sorted ones.
 */
export function firstIndex(values: ArrayLike<number>, passes: (value: number) => boolean): number {
  let low = 0
  let high = values.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (passes(values[middle]!)) high = middle
    else low = middle + 1
  }
  return low
}
