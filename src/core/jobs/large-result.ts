/** Reads a result that is too large to be held in memory, as it arrives. */
import { LargeObjectReader } from '../json/large-object-reader.ts'
import { MAX_ERROR_CHARACTERS, type ResultReading, readErrorText, replacedWarning } from './result.ts'

/** The members of a result that have a meaning, with the characters that are kept of each besides `output`. */
const MEMBERS = {
  passed: 'output',
  kept: new Map([
    ['error', 2_097_152],
    ['status', 64],
    ['stopPod', 64],
  ]),
  lenient: true,
} as const

/** A large post to job-done, as it was read. Its output went to the receiver of {@link LargeResultReader}. */
export type LargeResultReading =
  /** A progress update, which is not kept. */
  { readonly kind: 'progress' } | (ResultReading & { readonly kind: 'final' })

/**
 * Reads a post to job-done as it arrives, as `readResult` reads a small one, and passes its output on character for
 * character.
 */
export class LargeResultReader {
  readonly #object

  /** @param onOutput called with each next part of the output */
  constructor(onOutput: (part: string) => void) {
    this.#object = new LargeObjectReader(MEMBERS, onOutput)
  }

  /** True once the output is useless, so that the rest need not be passed. */
  get isRefused(): boolean {
    return this.#object.isRefused
  }

  /** Reads the next piece of the text. */
  push(text: string): void {
    this.#object.push(text)
  }

  /** Ends the text. The outcome of a completed job has no output: the receiver has it. */
  end(): LargeResultReading {
    // The rest of such a text was not read.
    if (this.#object.isTwice) return failed('the worker sent a large result that has the member "output" twice')
    const refusal = this.#object.end()
    if (refusal !== null) {
      const { problem, tooDeep } = refusal
      return failed(`the worker sent a result that is ${tooDeep ? 'too deep' : 'not JSON'}: ${problem}`)
    }
    if (this.#value('status') === 'IN_PROGRESS') return { kind: 'progress' }
    const warning = replacedWarning(this.#object.replaced)
    const refresh = this.#value('stopPod') === true
    const error = this.#error()
    const status = error === null ? 'COMPLETED' : 'FAILED'
    return { kind: 'final', refresh, outcome: { status, output: null, error, warning } }
  }

  /** The value of a member; undefined where it is missing or longer than those that have a meaning. */
  #value(name: string): unknown {
    const kept = this.#object.member(name)
    return kept?.isWhole === true ? JSON.parse(kept.text) : undefined
  }

  /** The error of the job; null without one. */
  #error(): string | null {
    const kept = this.#object.member('error')
    if (kept === undefined) return null
    if (kept.isWhole) return readErrorText(JSON.parse(kept.text), kept.text)
    const first = kept.text.slice(0, MAX_ERROR_CHARACTERS).toWellFormed()
    return `${first}... (the first ${MAX_ERROR_CHARACTERS} characters, as the worker wrote them)`
  }
}

function failed(error: string): LargeResultReading {
  return { kind: 'final', refresh: false, outcome: { status: 'FAILED', output: null, error, warning: null } }
}
