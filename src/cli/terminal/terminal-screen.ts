/** A full-screen terminal view that restores the terminal at its end. */

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const END_OF_LINE = '\u001b[K'
const END_OF_SCREEN = '\u001b[J'

const CTRL_Z = '\u001a'
/** Keys that end the view: q and Ctrl-C. */
const ENDING = ['q', 'Q', '\u0003']

/** Size of a terminal that does not report its size. */
const SIZE = { columns: 80, rows: 24 }

/**
 * Uses the alternate screen until {@link TerminalScreen.close}, the key q, Ctrl-C, a signal, or any end of the
 * process. Ctrl-Z restores the terminal while the command is stopped.
 */
export class TerminalScreen {
  readonly #ending = new AbortController()
  #draw: () => void = () => {}
  #open = false
  readonly #undo: (() => void)[] = []

  constructor() {
    const end = () => this.#ending.abort()
    this.#on(process, 'SIGINT', end)
    this.#on(process, 'SIGTERM', end)
    this.#on(process, 'SIGHUP', end)
    this.#on(process, 'SIGCONT', () => this.#enter())
    this.#on(process, 'exit', () => this.#leave())
    this.#on(process.stdout, 'resize', () => this.#draw())
    // The terminal is closed.
    this.#on(process.stdout, 'error', end)
    this.#on(process.stdin, 'data', (data: Buffer) => this.#pressed(data.toString('latin1')))
    this.#enter()
  }

  /** Aborts when the user ends the view. */
  get ended(): AbortSignal {
    return this.#ending.signal
  }

  /** Size of the terminal in characters. */
  size(): { columns: number; rows: number } {
    const { columns, rows } = process.stdout
    return { columns: columns || SIZE.columns, rows: rows || SIZE.rows }
  }

  /** @param draw called when the terminal was resized or is available again */
  onResize(draw: () => void): void {
    this.#draw = draw
  }

  /** Replaces the screen with these lines, in one write so that it does not flicker. */
  show(lines: readonly string[]): void {
    if (!this.#open) return
    // No line end after the last line: it would scroll the screen.
    process.stdout.write(`${HOME}${lines.map(line => `${line}${END_OF_LINE}`).join('\r\n')}${END_OF_SCREEN}`)
  }

  /** Restores the terminal. */
  close(): void {
    this.#leave()
    for (const undo of this.#undo) undo()
    process.stdin.pause()
  }

  #pressed(keys: string): void {
    if (keys.includes(CTRL_Z)) {
      this.#leave()
      process.kill(process.pid, 'SIGSTOP')
    } else if (ENDING.some(key => keys.includes(key))) {
      this.#ending.abort()
    } else {
      this.#draw()
    }
  }

  #enter(): void {
    if (this.#open || this.#ending.signal.aborted) return
    this.#open = true
    // Raw mode: otherwise typed keys would appear on the screen.
    if (process.stdin.isTTY) process.stdin.setRawMode(true)
    process.stdin.resume()
    process.stdout.write(ENTER)
    this.#draw()
  }

  #leave(): void {
    if (!this.#open) return
    this.#open = false
    if (process.stdin.isTTY) process.stdin.setRawMode(false)
    process.stdout.write(LEAVE)
  }

  #on(source: NodeJS.EventEmitter, event: string, listener: (...args: never[]) => void): void {
    source.on(event, listener as (...args: unknown[]) => void)
    this.#undo.push(() => source.off(event, listener as (...args: unknown[]) => void))
  }
}
