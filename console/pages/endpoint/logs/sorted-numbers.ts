/** Rising numbers: added at the end, gone at the beginning, found in the middle. */
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

  /** Forgets the numbers below one. Returns how many these were. */
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
