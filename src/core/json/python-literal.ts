/** Maximum depth of a value; deeper ones are refused, so that no text can exhaust the stack. */
const MAX_DEPTH = 64

const BLANK = /[ \t\r\n]*/y
const NUMBER = /[+-]?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y
const WORD = /None|True|False|nan|inf|-inf/y
const WORDS: Readonly<Record<string, unknown>> = { None: null, True: true, False: false, nan: null, inf: null }
const PLAIN_ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '\n': '',
  '\\': '\\',
  "'": "'",
  '"': '"',
}
const CODED_ESCAPE = /x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})/y

/**
 * The value of a text from Python's `repr` of dicts, lists, tuples, strings, numbers, None, True and False. Nothing
 * is executed. Tuples become arrays, keys strings, and numbers that JSON cannot hold null.
 * @returns null if the text is anything else
 */
export function readPythonLiteral(text: string): { readonly value: unknown } | null {
  try {
    const reader = new Reader(text)
    return { value: reader.whole() }
  } catch (error) {
    if (error instanceof NotALiteral) return null
    throw error
  }
}

class NotALiteral extends Error {}

class Reader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  whole(): unknown {
    const value = this.#value(0)
    this.#match(BLANK)
    if (this.#at !== this.#text.length) throw new NotALiteral()
    return value
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new NotALiteral()
    this.#match(BLANK)
    const first = this.#text[this.#at]
    if (first === '{') return this.#dict(depth)
    if (first === '[') return this.#list(']', depth)
    if (first === '(') return this.#list(')', depth)
    if (first === "'" || first === '"') return this.#string(first)
    const word = this.#match(WORD)
    if (word !== null) return WORDS[word[0]] ?? null
    const number = this.#match(NUMBER)
    if (number === null) throw new NotALiteral()
    const value = Number(number[0].replaceAll('_', ''))
    return Number.isFinite(value) ? value : null
  }

  #dict(depth: number): Record<string, unknown> {
    const entries: [string, unknown][] = []
    this.#items('}', () => {
      const key = this.#value(depth + 1)
      if (typeof key === 'object' && key !== null) throw new NotALiteral()
      if (!this.#take(':')) throw new NotALiteral()
      entries.push([String(key), this.#value(depth + 1)])
    })
    return Object.fromEntries(entries)
  }

  #list(end: ']' | ')', depth: number): unknown[] {
    const values: unknown[] = []
    this.#items(end, () => values.push(this.#value(depth + 1)))
    return values
  }

  /** Reads items up to the closing bracket; a comma may come before that. */
  #items(end: string, readOne: () => void): void {
    this.#at += 1
    while (!this.#take(end)) {
      readOne()
      if (this.#take(',')) continue
      if (this.#take(end)) return
      throw new NotALiteral()
    }
  }

  #string(quote: string): string {
    const pieces: string[] = []
    this.#at += 1
    for (let from = this.#at; ; ) {
      const character = this.#text[this.#at]
      if (character === undefined) throw new NotALiteral()
      if (character !== quote && character !== '\\') {
        this.#at += 1
        continue
      }
      pieces.push(this.#text.slice(from, this.#at))
      this.#at += 1
      if (character === quote) return pieces.join('')
      pieces.push(this.#escape())
      from = this.#at
    }
  }

  /** The character of an escape. An unknown escape keeps the backslash, as in Python. */
  #escape(): string {
    const plain = PLAIN_ESCAPES[this.#text[this.#at] ?? '']
    if (plain !== undefined) {
      this.#at += 1
      return plain
    }
    const coded = this.#match(CODED_ESCAPE)
    if (coded === null) return '\\'
    const octal = coded[4]
    const code = octal === undefined ? Number.parseInt(coded[0].slice(1), 16) : Number.parseInt(octal, 8)
    if (code > 0x10ffff) throw new NotALiteral()
    return String.fromCodePoint(code)
  }

  #take(character: string): boolean {
    this.#match(BLANK)
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#text)
    if (match !== null) this.#at = pattern.lastIndex
    return match
  }
}
