/**
 * The first index whose value passes; the length if no value passes. All values that pass must come last, as with
 * `value > 5` in sorted values.
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
