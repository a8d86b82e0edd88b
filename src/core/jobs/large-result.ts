/** Reads a result that is too large to be held in memory, as it arrives. */
import { type JsonProblem, JsonScanner, type JsonSink } from '../json/json-scanner.ts'
import { MAX_ERROR_CHARACTERS, type ResultReading, readErrorText, replacedWarning } from './result.ts'

/** The members of a result besides `output` that have a meaning, with the characters that are kept of each. */
const KEPT_CHARACTERS: ReadonlyMap<string, number> = new Map([
  ['error', 2_097_152],
  ['status', 64],
  ['stopPod', 64],
])

/** A large post to job-done, as it was read. Its output went to the receiver of {@link LargeResultReader}. */
export type LargeResultReading =
  /** A progress update, which is not kept. */
  { readonly kind: 'progress' } | (ResultReading & { readonly kind: 'final' })

interface Kept {
  readonly most: number
  text: string
  /** False where the text is cut. */
  isWhole: boolean
}

/**
 * Reads a post to job-done as it arrives, as `readResult` reads a small one, and passes its output on character for
 * character.
 */
export class LargeResultReader implements JsonSink {
  readonly #scanner = new JsonScanner(this)
  readonly #onOutput
  readonly #members = new Map<string, Kept>()
  #present: Kept | 'output' | null = null
  #hasOutput = false
  #isTwice = false
  #problem: JsonProblem | null = null

  /** @param onOutput called with each next part of the output */
  constructor(onOutput: (part: string) => void) {
    this.#onOutput = onOutput
  }

  /** True once the output is useless, so that the rest need not be passed. */
  get isRefused(): boolean {
    return this.#problem !== null || this.#isTwice
  }

  /** Reads the next piece of the text. */
  push(text: string): void {
    this.#problem ??= this.#scanner.push(text)
  }

  /** Ends the text. The outcome of a completed job has no output: the receiver has it. */
  end(): LargeResultReading {
    // The rest of such a text was not read.
    if (this.#isTwice) return failed('the worker sent a large result that has the member "output" twice')
    this.#problem ??= this.#scanner.end()
    if (this.#problem !== null) {
      const { problem, tooDeep } = this.#problem
      return failed(`the worker sent a result that is ${tooDeep ? 'too deep' : 'not JSON'}: ${problem}`)
    }
    if (this.#value('status') === 'IN_PROGRESS') return { kind: 'progress' }
    const warning = replacedWarning(this.#scanner.replaced)
    const refresh = this.#value('stopPod') === true
    const error = this.#error()
    const status = error === null ? 'COMPLETED' : 'FAILED'
    return { kind: 'final', refresh, outcome: { status, output: null, error, warning } }
  }

  begin(name: string | null): void {
    if (name === null || name === 'output') {
      this.#isTwice ||= this.#hasOutput
      this.#hasOutput = true
      this.#present = 'output'
      return
    }
    this.#present = null
    const most = KEPT_CHARACTERS.get(name)
    if (most === undefined) return
    this.#present = { most, text: '', isWhole: true }
    this.#members.set(name, this.#present)
  }

  text(part: string): void {
    if (this.#present === 'output') this.#onOutput(part)
    else if (this.#present !== null) this.#keep(this.#present, part)
  }

  #keep(kept: Kept, part: string): void {
    if (!kept.isWhole) return
    kept.isWhole = kept.text.length + part.length <= kept.most
    kept.text = (kept.text + part).slice(0, kept.most)
  }

  /** The value of a member; undefined where it is missing or longer than those that have a meaning. */
  #value(name: string): unknown {
    const kept = this.#members.get(name)
    return kept?.isWhole === true ? JSON.parse(kept.text) : undefined
  }

  /** The error of the job; null without one. */
  #error(): string | null {
    const kept = this.#members.get('error')
    if (kept === undefined) return null
    if (kept.isWhole) return readErrorText(JSON.parse(kept.text), kept.text)
    const first = kept.text.slice(0, MAX_ERROR_CHARACTERS).toWellFormed()
    return `${first}... (the first ${MAX_ERROR_CHARACTERS} characters, as the worker wrote them)`
  }
}

function failed(error: string): LargeResultReading {
  return { kind: 'final', refresh: false, outcome: { status: 'FAILED', output: null, error, warning: null } }
}
