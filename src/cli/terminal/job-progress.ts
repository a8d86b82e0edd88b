/**
 * The progress of a job, on standard error, while a command waits for it: a line in place on a terminal, plain lines
 * in a pipe.
 */

import { withoutControls } from '../../main/terminal/plain-text.ts'
import { ask, type ConnectionOptions } from '../client/connection.ts'
import { printText } from './terminal-text.ts'

/** Interval of questions why the job waits, and of pictures of the spinner, in ms. */
const ASK_MS = 1_000
const SPIN_MS = 100
const SPINNER = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
/** Lines of a worker's output that are shown with a cause. */
const MAX_EVIDENCE = 10

interface Explained {
  readonly cause: string
  readonly summary: string
  readonly action: string | null
  readonly commands: readonly string[]
  readonly evidence: readonly string[]
}

/** The progress of one job. Each cause that needs somebody to act is printed once, with its evidence. */
export class JobProgress {
  readonly #options
  readonly #path
  readonly #id
  readonly #isLive = process.stderr.isTTY === true
  readonly #begunMs = performance.now()
  readonly #printed = new Set<string>()
  readonly #asking = new AbortController()
  #summary = 'is kept'
  #spins = 0
  #isShown = false
  #asker: NodeJS.Timeout | undefined
  #spinner: NodeJS.Timeout | undefined

  /** @param path of the endpoint's job operations */
  constructor(options: ConnectionOptions, path: string, id: string) {
    this.#options = options
    this.#path = path
    this.#id = id
  }

  /** Prints the id, and begins to print the progress of the job; nothing with `--json`. */
  begin(): void {
    if (this.#options.json === true) return
    printText(`job ${this.#id}\n`, process.stderr)
    this.#asker = setInterval(() => void this.#ask(), ASK_MS)
    if (this.#isLive) this.#spinner = setInterval(() => this.#spin(), SPIN_MS)
  }

  /** Removes the line in place, so that something else can be printed. */
  clear(): void {
    if (this.#isShown) process.stderr.write('\r\u001b[2K')
    this.#isShown = false
  }

  /** Ends it. */
  end(): void {
    clearInterval(this.#asker)
    clearInterval(this.#spinner)
    this.#asking.abort()
    this.clear()
  }

  async #ask(): Promise<void> {
    const signal = AbortSignal.any([this.#asking.signal, AbortSignal.timeout(ASK_MS)])
    try {
      const answer = await ask(this.#options, `${this.#path}/explain/${this.#id}`, { signal })
      if (!signal.aborted) this.#explained((await answer.json()) as Explained)
    } catch {
      // The wait itself reports problems of the server.
    }
  }

  #explained({ cause, summary, action, commands, evidence }: Explained): void {
    if (cause === 'finished' || this.#asking.signal.aborted) return
    this.#summary = summary
    const isNews = !this.#printed.has(cause)
    this.#printed.add(cause)
    if (!isNews || (this.#isLive && action === null)) return
    this.clear()
    const lines = [`${cause}: ${summary}`]
    if (action !== null) {
      lines.push(`  -> ${action}`, ...evidence.slice(-MAX_EVIDENCE).map(line => `  | ${line}`))
      lines.push(...commands.map(command => `  $ ${command}`))
    }
    printText(`${lines.join('\n')}\n`, process.stderr)
  }

  #spin(): void {
    this.#spins += 1
    const seconds = Math.round((performance.now() - this.#begunMs) / 1_000)
    const line = `${SPINNER[this.#spins % SPINNER.length]} ${seconds} s  ${withoutControls(this.#summary)}`
    const width = Math.max(20, process.stderr.columns || 80) - 1
    process.stderr.write(`\r\u001b[2K${[...line].slice(0, width).join('')}`)
    this.#isShown = true
  }
}
