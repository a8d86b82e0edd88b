/** Positions of rows of several lines of text, without measuring them: the font has one width. */

/** Heights of rows in lines of text; rows are added at the end and dropped at the beginning. */
export class RowHeights {
  readonly #columns: number
  /** Height of all rows up to the end of each one, counted from the first row ever. */
  #ends: number[] = []
  #head = 0
  #gone = 0

  /** @param columns characters of a line of text; infinite where rows are not wrapped */
  constructor(columns: number) {
    this.#columns = Math.max(1, columns)
  }

  get count(): number {
    return this.#ends.length - this.#head
  }

  /** Height of all rows. */
  get total(): number {
    return (this.#ends.at(-1) ?? this.#gone) - this.#gone
  }

  /** Adds a row. @param width its characters */
  add(width: number): void {
    const height = Math.max(1, Math.ceil(width / this.#columns))
    this.#ends.push((this.#ends.at(-1) ?? this.#gone) + height)
  }

  /** Removes rows at the beginning. */
  drop(rows: number): void {
    if (rows === 0) return
    this.#gone = this.#ends[this.#head + rows - 1]!
    this.#head += rows
    if (this.#head > 25_000) {
      this.#ends = this.#ends.slice(this.#head)
      this.#head = 0
    }
  }

  /** Lines of text above a row. */
  rowTop(row: number): number {
    return row === 0 ? 0 : (this.#ends[this.#head + row - 1] ?? this.#gone) - this.#gone
  }

  rowHeight(row: number): number {
    return this.rowTop(row + 1) - this.rowTop(row)
  }

  /** The row at a line of text; the last one for a line after the end. */
  rowAt(line: number): number {
    const wanted = this.#gone + Math.max(0, line)
    let [low, high] = [this.#head, this.#ends.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#ends[middle]! > wanted) high = middle
      else low = middle + 1
    }
    return Math.max(0, low - this.#head)
  }
}
