/** Rising numbers: added at the end, dropped at the beginning, found by binary search. */
export class SortedNumbers {
  #numbers: number[] = []
  #head = 0

  get length(): number {
    return this.#numbers.length - this.#head
  }

  at(index: number): number | undefined {
    return this.#numbers[this.#head + index]
  }

  push(number: number): void {
    this.#numbers.push(number)
  }

  /** Index of the first number that is not smaller; the length where all are. */
  indexOf(number: number): number {
    let [low, high] = [this.#head, this.#numbers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#numbers[middle]! < number) low = middle + 1
      else high = middle
    }
    return low - this.#head
  }

  /** Drops the numbers below one. Returns the number of dropped ones. */
  dropBelow(number: number): number {
    const count = this.indexOf(number)
    this.#head += count
    if (this.#head > 25_000) {
      this.#numbers = this.#numbers.slice(this.#head)
      this.#head = 0
    }
    return count
  }
}
