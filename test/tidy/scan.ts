/** A tokenizer that blanks comments and strings of a source, and findings with line numbers. */

/** One violation of a rule. */
export interface Finding {
  line: number
  what: string
}

/** A regular expression as it is written in a source. */
export interface RegexLiteral {
  readonly line: number
  readonly source: string
  readonly flags: string
}

/** The line of the character at `index`, counted from 1. */
export function lineAt(source: string, index: number): number {
  let line = 1
  for (let at = source.indexOf('\n'); at !== -1 && at < index; at = source.indexOf('\n', at + 1)) line++
  return line
}

/** A finding for each match of `pattern` in `text`. @param pattern a global one */
export function findingsOf(text: string, pattern: RegExp, what: (match: RegExpExecArray) => string): Finding[] {
  return [...text.matchAll(pattern)].map(match => ({ line: lineAt(text, match.index), what: what(match) }))
}

const pairs: Record<string, string> = { '(': ')', '[': ']', '{': '}' }

/** The index of the bracket that closes the one at `open` in a text from `codeOnly`, or its length without one. */
export function closing(code: string, open: number): number {
  const opener = code[open] as string
  const closer = pairs[opener] as string
  let depth = 0
  for (let at = open; at < code.length; at++) {
    if (code[at] === opener) depth++
    else if (code[at] === closer && --depth === 0) return at
  }
  return code.length
}

/** The index of the first character from `from` on that is no white space. */
export function skipSpace(code: string, from: number): number {
  let at = from
  while (at < code.length && /\s/.test(code[at] as string)) at++
  return at
}

const blanked = new Map<string, string>()

/**
 * The source with comments, and the insides of strings, templates and regular expressions, replaced by spaces. Quotes,
 * line breaks and the code within `${}` stay, so that indexes and line numbers of the result are those of the source.
 */
export function codeOnly(source: string): string {
  let code = blanked.get(source)
  if (code === undefined) {
    code = new Blanker(source).run()
    blanked.set(source, code)
  }
  return code
}

/** The regular expressions that are written between slashes in a source without JSX. */
export function regexLiterals(source: string): RegexLiteral[] {
  const blanker = new Blanker(source)
  blanker.run()
  return blanker.regexes.map(([start, end]) => ({
    line: lineAt(source, start),
    source: source.slice(start + 1, end),
    flags: /\w*/y.exec(source.slice(end + 1))?.[0] ?? '',
  }))
}

/** A comment, or several lines of `//` that follow each other. */
export interface Comment {
  /** The line of its beginning, counted from 1, and the characters before it in that line. */
  readonly line: number
  readonly column: number
  readonly text: string
}

/** The comments of a source, in order. */
export function commentsOf(source: string): Comment[] {
  const blanker = new Blanker(source)
  blanker.run()
  const spans: [start: number, end: number][] = []
  for (const [start, end] of blanker.comments) {
    const last = spans.at(-1)
    if (
      last !== undefined &&
      isOneLine(source, start) &&
      isOneLine(source, last[0]) &&
      !/\S/.test(source.slice(last[1], start))
    )
      last[1] = end
    else spans.push([start, end])
  }
  return spans.map(([start, end]) => ({
    line: lineAt(source, start),
    column: start - lineStart(source, start),
    text: source.slice(start, end),
  }))
}

/** A comment with `//` that has its line for itself. */
function isOneLine(source: string, start: number): boolean {
  return source.startsWith('//', start) && !/\S/.test(source.slice(lineStart(source, start), start))
}

function lineStart(source: string, at: number): number {
  return source.lastIndexOf('\n', at - 1) + 1
}

const WORD = /[\w$\u0080-\uffff]+/y
const BEFORE_REGEX =
  /^(?:return|typeof|case|in|of|do|else|void|delete|throw|new|instanceof|yield|await|default|extends)$/
const CONTROL = /^(?:if|while|for|with)$/

class Blanker {
  /** The indexes of both slashes of each regular expression. */
  readonly regexes: [start: number, end: number][] = []
  /** Start and end of each comment. */
  readonly comments: [start: number, end: number][] = []
  readonly #source: string
  #out = ''
  #at = 0
  /** The last word or sign of code; '' at the start. */
  #last = ''
  /** For each open `(`: whether it follows if, while, for or with, so that a statement follows its end. */
  readonly #parens: boolean[] = []
  /** For each open `{`: whether it is the `${` of a template. */
  readonly #braces: boolean[] = []

  constructor(source: string) {
    this.#source = source
  }

  run(): string {
    if (this.#source.startsWith('#!')) this.#blankTo(this.#endOfLine())
    while (this.#at < this.#source.length) this.#step()
    return this.#out
  }

  #step(): void {
    const char = this.#source[this.#at] as string
    if (this.#source.startsWith('//', this.#at)) this.#blankComment(this.#endOfLine())
    else if (this.#source.startsWith('/*', this.#at)) this.#comment()
    else if (char === "'" || char === '"') this.#string(char)
    else if (char === '`') this.#template()
    else if (char === '/') this.#slash()
    else if (/\s/.test(char)) this.#keep(1)
    else this.#word() || this.#sign(char)
  }

  #keep(length: number): void {
    this.#out += this.#source.slice(this.#at, this.#at + length)
    this.#at += length
  }

  #blankTo(end: number): void {
    this.#out += this.#source.slice(this.#at, end).replace(/[^\n]/g, ' ')
    this.#at = end
  }

  #blankComment(end: number): void {
    this.comments.push([this.#at, end])
    this.#blankTo(end)
  }

  #endOfLine(): number {
    const end = this.#source.indexOf('\n', this.#at)
    return end === -1 ? this.#source.length : end
  }

  #comment(): void {
    const end = this.#source.indexOf('*/', this.#at + 2)
    this.#blankComment(end === -1 ? this.#source.length : end + 2)
  }

  #word(): boolean {
    WORD.lastIndex = this.#at
    const word = WORD.exec(this.#source)?.[0]
    if (word === undefined) return false
    // The word after a dot is the name of a property, never a keyword.
    this.#last = this.#last === '.' ? 'property' : word
    this.#keep(word.length)
    return true
  }

  #sign(char: string): void {
    if (char === '(') this.#parens.push(CONTROL.test(this.#last))
    if (char === '{') this.#braces.push(false)
    if (char === '}' && this.#braces.pop() === true) {
      this.#blankTo(this.#at + 1)
      this.#templateText()
      return
    }
    const doubled = (char === '+' || char === '-') && this.#source[this.#at - 1] === char
    const postfixBang = char === '!' && /[\w$)\]]/.test(this.#source[this.#at - 1] ?? '')
    this.#last = doubled || postfixBang ? 'postfix' : char
    if (char === ')' && this.#parens.pop() === true) this.#last = ';'
    this.#keep(1)
  }

  /**
   * A string ends at its quote, or at the end of the line, so that a mistake here does not blank the rest of the
   * file.
   */
  #string(quote: string): void {
    let end = this.#at + 1
    while (end < this.#source.length && this.#source[end] !== quote && this.#source[end] !== '\n') {
      end += this.#source[end] === '\\' ? 2 : 1
    }
    this.#keep(1)
    this.#blankTo(Math.min(end, this.#source.length))
    if (this.#source[this.#at] === quote) this.#keep(1)
    this.#last = 'string'
  }

  #template(): void {
    this.#keep(1)
    this.#templateText()
  }

  #templateText(): void {
    let end = this.#at
    while (end < this.#source.length && this.#source[end] !== '`' && !this.#source.startsWith('${', end)) {
      end += this.#source[end] === '\\' ? 2 : 1
    }
    this.#blankTo(Math.min(end, this.#source.length))
    if (this.#source[this.#at] === '`') {
      this.#keep(1)
      this.#last = 'string'
    } else if (this.#at < this.#source.length) {
      this.#blankTo(this.#at + 2)
      this.#braces.push(true)
      this.#last = '('
    }
  }

  #slash(): void {
    const valueBefore = /^[\w$\u0080-\uffff)\]}]/.test(this.#last) && !BEFORE_REGEX.test(this.#last)
    const end = valueBefore ? -1 : this.#endOfRegex()
    if (end === -1) {
      this.#last = '/'
      this.#keep(1)
      return
    }
    this.regexes.push([this.#at, end])
    this.#keep(1)
    this.#blankTo(end)
    this.#keep(1)
    this.#last = 'regex'
  }

  /** The index of the slash that closes the regular expression that starts here, or -1 if this does not start one. */
  #endOfRegex(): number {
    let inClass = false
    for (let at = this.#at + 1; at < this.#source.length && this.#source[at] !== '\n'; at++) {
      const char = this.#source[at]
      if (char === '\\') at++
      else if (char === '[') inClass = true
      else if (char === ']') inClass = false
      else if (char === '/' && !inClass) return at
    }
    return -1
  }
}
