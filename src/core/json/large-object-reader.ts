/** Reads a JSON object that is too large to be held in memory, as it arrives. */
import { type JsonProblem, JsonScanner, type JsonSink } from './json-scanner.ts'

/** The text of a member. */
export interface MemberText {
  readonly text: string
  /** False where the text is cut, because it is longer than what is kept. */
  readonly isWhole: boolean
}

interface KeptMember extends MemberText {
  readonly most: number
  text: string
  isWhole: boolean
}

/** The members that matter of a large object. */
export interface LargeObject {
  /** The member whose text is passed on, character for character. */
  readonly passed: string
  /** The members that are kept, with the most characters of each. */
  readonly kept: ReadonlyMap<string, number>
  /** True to take the tokens that Python writes and JSON does not have; see {@link JsonScanner}. */
  readonly lenient: boolean
}

/** Reads an object piece by piece: passes one member on, keeps the texts of others, and checks all of it. */
export class LargeObjectReader implements JsonSink {
  readonly #scanner
  readonly #object
  readonly #onPassed
  readonly #members = new Map<string, KeptMember>()
  #present: KeptMember | 'passed' | null = null
  #hasPassed = false
  #isTwice = false
  #isObject = true
  #problem: JsonProblem | null = null

  /** @param onPassed called with each next part of the member that is passed on, or of a value that is no object */
  constructor(object: LargeObject, onPassed: (part: string) => void) {
    this.#scanner = new JsonScanner(this, object.lenient)
    this.#object = object
    this.#onPassed = onPassed
  }

  /** True where the member that is passed on comes twice. What was passed on is useless then. */
  get isTwice(): boolean {
    return this.#isTwice
  }

  /** True where the member that is passed on has come. */
  get hasPassed(): boolean {
    return this.#hasPassed
  }

  /** False for a value that is no object. */
  get isObject(): boolean {
    return this.#isObject
  }

  /** True once what is passed on is useless, so that the rest need not be read. */
  get isRefused(): boolean {
    return this.#problem !== null || this.#isTwice
  }

  /** Number of values that JSON cannot hold and that became `null`. */
  get replaced(): number {
    return this.#scanner.replaced
  }

  /** Reads the next piece of the text. */
  push(text: string): void {
    this.#problem ??= this.#scanner.push(text)
  }

  /** Ends the text. @returns the reason against it; null for JSON */
  end(): JsonProblem | null {
    this.#problem ??= this.#scanner.end()
    return this.#problem
  }

  /** A member that is kept, the last one of its name; undefined without one. */
  member(name: string): MemberText | undefined {
    return this.#members.get(name)
  }

  begin(name: string | null): void {
    this.#isObject &&= name !== null
    if (name === null || name === this.#object.passed) {
      this.#isTwice ||= this.#hasPassed
      this.#hasPassed = true
      this.#present = 'passed'
      return
    }
    this.#present = null
    const most = this.#object.kept.get(name)
    if (most === undefined) return
    this.#present = { most, text: '', isWhole: true }
    this.#members.set(name, this.#present)
  }

  text(part: string): void {
    const present = this.#present
    if (present === 'passed') this.#onPassed(part)
    else if (present?.isWhole === true) {
      present.isWhole = present.text.length + part.length <= present.most
      present.text = (present.text + part).slice(0, present.most)
    }
  }
}
