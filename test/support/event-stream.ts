/** Reads server-sent events like a client: a blank line completes an event. */

/** One event. */
export interface StreamedEvent {
  readonly id: string
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever shape they expect.
  readonly data: any
}

/** A stream of events that is read while it arrives. */
export class EventReader {
  readonly events: StreamedEvent[] = []
  readonly comments: string[] = []
  /** Number of parts of the response. */
  parts = 0
  /** True if it ended without an error. */
  over = false
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #rest = ''

  /** Starts to read; nothing is read until `patient` resolves. */
  constructor(answer: Response, patient = false) {
    this.#reader = answer.body!.getReader()
    if (!patient) void this.readOn()
  }

  /** The lines of its data. */
  get lines(): string[] {
    return this.events.flatMap(({ data }) => data.line ?? [])
  }

  /** The id from which a reader continues. */
  get lastId(): string {
    return this.events.filter(({ id }) => id !== '').at(-1)?.id ?? ''
  }

  /** Reads to the end of the stream. */
  async readOn(): Promise<void> {
    const decoder = new TextDecoder()
    try {
      for (;;) {
        const { done, value } = await this.#reader.read()
        if (done) break
        this.parts += 1
        this.#take(decoder.decode(value, { stream: true }))
      }
      this.over = true
    } catch {}
  }

  /** Closes the connection. */
  async leave(): Promise<void> {
    await this.#reader.cancel()
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop()!
    for (const block of blocks) {
      const fields = block.split('\n').map(line => /^(\w*): ?(.*)$/.exec(line)!)
      const field = (name: string) => fields.find(([, key]) => key === name)?.[2] ?? ''
      for (const [, name, value] of fields) if (name === '') this.comments.push(value!)
      if (field('data') !== '') {
        this.events.push({ id: field('id'), event: field('event'), data: JSON.parse(field('data')) })
      }
    }
  }
}
