/** Reads a body of run or runsync that is too large to be held in memory, as it arrives. */
import { LargeObjectReader } from '../json/large-object-reader.ts'
import { readSubmission, type SubmissionReading } from './submission.ts'

/**
 * Characters that are kept of the members besides `input`. A longer webhook is no address that is taken, also where
 * each of its characters is written as `\u0041`.
 */
const KEPT = { webhook: 32_768, policy: 1_048_576, s3Config: 1_048_576 } as const

/** Reads such a body as `readSubmission` reads a small one, and passes its input on character for character. */
export class LargeSubmissionReader {
  readonly #object
  /** The first character of the input, which shows its type; empty before it. */
  #first = ''

  /** @param onInput called with each next part of an input that is an object */
  constructor(onInput: (part: string) => void) {
    const kept = new Map<string, number>(Object.entries(KEPT))
    this.#object = new LargeObjectReader({ passed: 'input', kept, lenient: false }, part => {
      this.#first ||= part.slice(0, 1)
      if (this.#first === '{' && this.#object.isObject) onInput(part)
    })
  }

  /** True once the input is useless, so that the rest need not be passed. */
  get isRefused(): boolean {
    return this.#object.isRefused
  }

  /** Reads the next piece of the text. */
  push(text: string): void {
    this.#object.push(text)
  }

  /** Ends the text. The input of the submission is empty: the receiver has it. */
  end(): SubmissionReading {
    // The rest of such a text was not read.
    if (this.#object.isTwice) return { failures: ['a large body must not have the member "input" twice'] }
    const refusal = this.#object.end()
    if (refusal !== null) return { failures: [`the body is not JSON: ${refusal.problem}`] }
    if (!this.#object.isObject) return readSubmission('null')
    const reading = readSubmission(this.#small())
    const failures = [...('failures' in reading ? reading.failures : []), ...this.#tooLong()]
    if ('failures' in reading || failures.length > 0) return { failures }
    return { submission: { ...reading.submission, input: '' } }
  }

  /** The body with a short value of the same type in place of each long one, for the checks of small bodies. */
  #small(): string {
    const input = this.#object.hasPassed ? [`"input":${shortValue(this.#first)}`] : []
    const others = Object.keys(KEPT).flatMap(name => {
      const member = this.#object.member(name)
      return member === undefined ? [] : [`"${name}":${member.isWhole ? member.text : shortValue(member.text)}`]
    })
    return `{${[...input, ...others].join(',')}}`
  }

  #tooLong(): string[] {
    return (['policy', 's3Config'] as const)
      .filter(name => this.#object.member(name)?.isWhole === false)
      .map(name => `"${name}" of a large body must have at most ${KEPT[name]} characters`)
  }
}

/** A short value of the type of a long one. @param text its begin */
function shortValue(text: string): string {
  const [first = ''] = text
  const values: Readonly<Record<string, string>> = {
    '{': '{}',
    '[': '[]',
    '"': '"x"',
    t: 'true',
    f: 'false',
    n: 'null',
  }
  return values[first] ?? '0'
}
