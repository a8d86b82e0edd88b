/** Reads JSON of any size piece by piece, without keeping it. */
import { MAX_JSON_DEPTH, TOO_DEEP } from './json-depth.ts'

/** Gets the values of the outermost level, as they are read. */
export interface JsonSink {
  /** A value begins. @param name of its member; null when the whole text is a value that is no object */
  begin(name: string | null): void
  /** The next part of its text, character for character; `NaN` and the infinities are `null` in it. */
  text(part: string): void
}

/** The reason why a text is refused. */
export interface JsonProblem {
  /** The end of a sentence. */
  readonly problem: string
  readonly tooDeep: boolean
}

/** Numbers of what may come next. */
const Next = {
  value: 0,
  valueOrEnd: 1,
  name: 2,
  nameOrEnd: 3,
  colon: 4,
  commaOrEnd: 5,
  nothing: 6,
  string: 7,
  escape: 8,
  unicode: 9,
  literal: 10,
  minus: 11,
  zero: 12,
  digits: 13,
  point: 14,
  fraction: 15,
  exponent: 16,
  exponentSign: 17,
  exponentDigits: 18,
} as const
type Next = (typeof Next)[keyof typeof Next]

const LIST = 0
const OBJECT = 1
/** A longer name is none that a reader asks for. */
const MAX_NAME = 256
/** Tokens that Python writes and JSON does not have. */
const NON_FINITE = ['NaN', 'Infinity', '-Infinity'] as const
const LONGEST_NON_FINITE = 9

const QUOTE = 0x22
const BACKSLASH = 0x5c
const MINUS = 0x2d
const OPEN_LIST = 0x5b
const OPEN_OBJECT = 0x7b
const CLOSE_LIST = 0x5d
const CLOSE_OBJECT = 0x7d
const COMMA = 0x2c
const COLON = 0x3a
const POINT = 0x2e

/**
 * Checks a text against the grammar of JSON, up to {@link MAX_JSON_DEPTH} levels, and passes on the values of its
 * outermost level. It takes what `readJson` takes (json-text.ts), and keeps one level of nesting in one byte, nothing
 * else.
 */
export class JsonScanner {
  readonly #sink
  readonly #lenient
  readonly #stack = new Uint8Array(MAX_JSON_DEPTH + 1)
  #depth = 0
  #next: Next = Next.value
  /** True in the string that is the name of a member. */
  #isName = false
  /** The name of the member of the outermost object, as it is written; null where it is not kept. */
  #name: string | null = null
  /** The place in the present piece from which a value is passed on; -1 outside of such values. */
  #from = -1
  /** Digits of an escape that are still to come. */
  #digits = 0
  #word = ''
  /** The end of the last piece, which is read with the next one. */
  #rest = ''
  /** Characters before the present piece. */
  #before = 0
  #replaced = 0
  #problem: JsonProblem | null = null

  /** @param lenient also takes the bare tokens `NaN`, `Infinity` and `-Infinity` that Python writes */
  constructor(sink: JsonSink, lenient: boolean) {
    this.#sink = sink
    this.#lenient = lenient
  }

  /** Number of values that JSON cannot hold and that became `null`. */
  get replaced(): number {
    return this.#replaced
  }

  /** Reads the next piece. @returns the reason against the text, as soon as there is one */
  push(piece: string): JsonProblem | null {
    return this.#read(this.#rest === '' ? piece : this.#rest + piece, false)
  }

  /** Ends the text. @returns the reason against it; null for JSON */
  end(): JsonProblem | null {
    this.#read(this.#rest, true)
    // A number ends with the text.
    if (this.#problem === null && this.#depth === 0 && isCompleteNumber(this.#next)) this.#valueEnds('', 0)
    if (this.#problem === null && this.#next !== Next.nothing) this.#refuse('it ends too early')
    return this.#problem
  }

  #read(text: string, isLast: boolean): JsonProblem | null {
    this.#rest = ''
    if (this.#problem !== null) return this.#problem
    if (this.#from >= 0) this.#from = 0
    let at = 0
    while (at < text.length && this.#problem === null) {
      const end = this.#step(text, at, isLast)
      if (end === at) break
      at = end
    }
    if (this.#from >= 0 && at > this.#from && this.#problem === null) this.#sink.text(text.slice(this.#from, at))
    this.#rest = text.slice(at)
    this.#before += at
    return this.#problem
  }

  /** Reads some characters. @returns the place behind them, or `at` to wait for more */
  #step(text: string, at: number, isLast: boolean): number {
    const code = text.charCodeAt(at)
    switch (this.#next) {
      case Next.string:
        return this.#stringPart(text, at)
      case Next.escape:
        return this.#escape(code, at)
      case Next.unicode:
        return this.#unicodeDigit(code, at)
      case Next.literal:
        return this.#literal(text, at)
      case Next.value:
      case Next.valueOrEnd:
        return isBlank(code) ? at + 1 : this.#value(text, at, isLast)
      case Next.name:
      case Next.nameOrEnd:
      case Next.colon:
      case Next.commaOrEnd:
      case Next.nothing:
        return isBlank(code) ? at + 1 : this.#between(text, at, code)
      default:
        return this.#number(text, at)
    }
  }

  #value(text: string, at: number, isLast: boolean): number {
    const code = text.charCodeAt(at)
    if (code === CLOSE_LIST && this.#next === Next.valueOrEnd) return this.#closes(text, at)
    // A text that is cut in such a token is read again with the next piece.
    if (this.#lenient && (code === MINUS || code === 0x4e || code === 0x49)) {
      if (!isLast && text.length - at < LONGEST_NON_FINITE) return at
      const token = NON_FINITE.find(word => text.startsWith(word, at))
      if (token !== undefined) return this.#nonFinite(text, at, token)
    }
    this.#valueBegins(at, code === OPEN_OBJECT)
    if (code === QUOTE) this.#next = Next.string
    else if (code === OPEN_LIST) this.#opens(LIST)
    else if (code === OPEN_OBJECT) this.#opens(OBJECT)
    else if (code === MINUS) this.#next = Next.minus
    else if (code === 0x30) this.#next = Next.zero
    else if (isDigit(code)) this.#next = Next.digits
    else if (!this.#beginsWord(code)) return this.#unexpected(at)
    return at + 1
  }

  #beginsWord(code: number): boolean {
    const word = code === 0x74 ? 'true' : code === 0x66 ? 'false' : code === 0x6e ? 'null' : ''
    if (word === '') return false
    this.#word = word.slice(1)
    this.#next = Next.literal
    return true
  }

  #between(text: string, at: number, code: number): number {
    switch (this.#next) {
      case Next.name:
      case Next.nameOrEnd:
        if (code === CLOSE_OBJECT && this.#next === Next.nameOrEnd) return this.#closes(text, at)
        if (code !== QUOTE) return this.#unexpected(at)
        this.#isName = true
        this.#name = this.#depth === 1 ? '' : null
        this.#next = Next.string
        return at + 1
      case Next.colon:
        if (code !== COLON) return this.#unexpected(at)
        this.#next = Next.value
        return at + 1
      case Next.commaOrEnd: {
        const isObject = this.#stack[this.#depth] === OBJECT
        if (code === (isObject ? CLOSE_OBJECT : CLOSE_LIST)) return this.#closes(text, at)
        if (code !== COMMA) return this.#unexpected(at)
        this.#next = isObject ? Next.name : Next.value
        return at + 1
      }
      default:
        return this.#unexpected(at)
    }
  }

  #opens(kind: typeof LIST | typeof OBJECT): void {
    if (this.#depth === MAX_JSON_DEPTH) {
      this.#problem = { problem: TOO_DEEP, tooDeep: true }
      return
    }
    this.#depth += 1
    this.#stack[this.#depth] = kind
    this.#next = kind === OBJECT ? Next.nameOrEnd : Next.valueOrEnd
  }

  #closes(text: string, at: number): number {
    this.#depth -= 1
    this.#valueEnds(text, at + 1)
    return at + 1
  }

  /** @param isObject the value is an object; the outermost one is passed on by its members */
  #valueBegins(at: number, isObject: boolean): void {
    const isMember = this.#depth === 1 && this.#stack[1] === OBJECT
    if (isMember) this.#sink.begin(readName(this.#name))
    else if (this.#depth === 0 && !isObject) this.#sink.begin(null)
    else return
    this.#from = at
  }

  /** @param end the place behind the value in the piece */
  #valueEnds(text: string, end: number): void {
    this.#next = this.#depth === 0 ? Next.nothing : Next.commaOrEnd
    const isOuter = this.#depth === 0 || (this.#depth === 1 && this.#stack[1] === OBJECT)
    if (!isOuter || this.#from < 0) return
    if (end > this.#from) this.#sink.text(text.slice(this.#from, end))
    this.#from = -1
  }

  #nonFinite(text: string, at: number, token: string): number {
    this.#replaced += 1
    const end = at + token.length
    this.#valueBegins(at, false)
    if (this.#from >= 0) {
      if (at > this.#from) this.#sink.text(text.slice(this.#from, at))
      this.#sink.text('null')
      this.#from = end
    }
    this.#valueEnds(text, end)
    return end
  }

  #stringPart(text: string, start: number): number {
    const at = plainEnd(text, start)
    const code = text.charCodeAt(at)
    if (this.#isName && this.#name !== null) this.#keepName(text.slice(start, at))
    if (at >= text.length) return text.length
    if (code === BACKSLASH) {
      this.#keepName('\\')
      this.#next = Next.escape
      return at + 1
    }
    if (code !== QUOTE) return this.#unexpected(at)
    if (this.#isName) {
      this.#isName = false
      this.#next = Next.colon
    } else this.#valueEnds(text, at + 1)
    return at + 1
  }

  #keepName(part: string): void {
    if (!this.#isName || this.#name === null) return
    this.#name = this.#name.length + part.length > MAX_NAME ? null : this.#name + part
  }

  #escape(code: number, at: number): number {
    const character = String.fromCharCode(code)
    if (!'"\\/bfnrtu'.includes(character)) return this.#unexpected(at)
    this.#keepName(character)
    this.#digits = 4
    this.#next = character === 'u' ? Next.unicode : Next.string
    return at + 1
  }

  #unicodeDigit(code: number, at: number): number {
    const letter = code | 0x20
    if (!isDigit(code) && !(letter >= 0x61 && letter <= 0x66)) return this.#unexpected(at)
    this.#keepName(String.fromCharCode(code))
    this.#digits -= 1
    if (this.#digits === 0) this.#next = Next.string
    return at + 1
  }

  #literal(text: string, at: number): number {
    if (text[at] !== this.#word[0]) return this.#unexpected(at)
    this.#word = this.#word.slice(1)
    if (this.#word === '') this.#valueEnds(text, at + 1)
    return at + 1
  }

  #number(text: string, start: number): number {
    let state = this.#next
    let at = start
    for (; at < text.length; at += 1) {
      const code = text.charCodeAt(at)
      if (isDigit(code) && takesDigits(state)) continue
      const next = numberStep(state, code)
      if (next === null) break
      state = next
    }
    this.#next = state
    if (at === text.length) return at
    if (!isCompleteNumber(state)) return this.#unexpected(at)
    this.#valueEnds(text, at)
    return this.#step(text, at, true)
  }

  #unexpected(at: number): number {
    this.#refuse(`there is an unexpected character after ${this.#before + at} characters`)
    return at
  }

  #refuse(problem: string): void {
    this.#problem = { problem, tooDeep: false }
  }
}

/** The end of the characters of a string that stand for themselves. */
function plainEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === QUOTE || code === BACKSLASH || code < 0x20) return at
  }
  return text.length
}

/** The state after a character of a number; null for one that does not belong to it. */
function numberStep(state: Next, code: number): Next | null {
  const digit = isDigit(code)
  const exponent = (code | 0x20) === 0x65
  switch (state) {
    case Next.minus:
      return digit ? (code === 0x30 ? Next.zero : Next.digits) : null
    case Next.zero:
      return code === POINT ? Next.point : exponent ? Next.exponent : null
    case Next.digits:
      return digit ? Next.digits : code === POINT ? Next.point : exponent ? Next.exponent : null
    case Next.point:
      return digit ? Next.fraction : null
    case Next.fraction:
      return digit ? Next.fraction : exponent ? Next.exponent : null
    case Next.exponent:
      return digit ? Next.exponentDigits : code === 0x2b || code === MINUS ? Next.exponentSign : null
    default:
      return digit ? Next.exponentDigits : null
  }
}

/** True where each further digit leaves the state as it is. */
function takesDigits(state: Next): boolean {
  return state === Next.digits || state === Next.fraction || state === Next.exponentDigits
}

function isCompleteNumber(state: Next): boolean {
  return state === Next.zero || takesDigits(state)
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** A name as it is meant; empty for one that was too long to be kept. */
function readName(name: string | null): string {
  return name === null ? '' : (JSON.parse(`"${name}"`) as string)
}
