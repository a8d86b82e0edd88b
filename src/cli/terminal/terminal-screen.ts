/** The whole terminal, written in place and given back as it was. */

const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const END_OF_LINE = '\u001b[K'
const END_OF_SCREEN = '\u001b[J'

const CTRL_Z = '\u001a'
/** q and Ctrl-C. */
const ENDING = ['q', 'Q', '\u0003']

/** What a terminal that does not know its size is taken for. */
const SIZE = { columns: 80, rows: 24 }

/**
 * A screen of its own until it is closed: by {@link TerminalScreen.close}, the key q, Ctrl-C, a signal, or the end of the process
 * whatever its reason. Ctrl-Z gives the terminal back while the command is stopped.
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
    // Nobody looks any more.
    this.#on(process.stdout, 'error', end)
    this.#on(process.stdin, 'data', (data: Buffer) => this.#pressed(data.toString('latin1')))
    this.#enter()
  }

  /** Aborted when whoever looks wants it to end. */
  get ended(): AbortSignal {
    return this.#ending.signal
  }

  /** How much fits. */
  size(): { columns: number; rows: number } {
    const { columns, rows } = process.stdout
    return { columns: columns || SIZE.columns, rows: rows || SIZE.rows }
  }

  /** @param draw is called when the terminal has another size, or is there again */
  onResize(draw: () => void): void {
    this.#draw = draw
  }

  /** Writes these lines over what there was, in one piece so that nothing flickers. */
  show(lines: readonly string[]): void {
    if (!this.#open) return
    // Without a line end after the last one, which would move everything up.
    process.stdout.write(`${HOME}${lines.map(line => `${line}${END_OF_LINE}`).join('\r\n')}${END_OF_SCREEN}`)
  }

  /** Gives the terminal back. */
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
    // Else what is typed would be written over the lines.
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
