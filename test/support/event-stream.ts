/** Reads server-sent events as clients do: an event is complete with its blank line. */

/** One event. */
export interface StreamedEvent {
  readonly id: string
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever shape they expect.
  readonly data: any
}

/** A stream that is read as it comes. */
export class EventReader {
  readonly events: StreamedEvent[] = []
  readonly comments: string[] = []
  /** How many parts the answer came in. */
  parts = 0
  /** Whether it has ended in order. */
  over = false
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #rest = ''

  /** Begins to read; nothing is read while `patient` keeps it from that. */
  constructor(answer: Response, patient = false) {
    this.#reader = answer.body!.getReader()
    if (!patient) void this.readOn()
  }

  /** The lines of its data. */
  get lines(): string[] {
    return this.events.flatMap(({ data }) => data.line ?? [])
  }

  /** The id that a reader goes on from. */
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

  /** Goes away. */
  async leave(): Promise<void> {
    await this.#reader.cancel()
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop()!
    for (const block of blocks) {
      const fields = block.split('\n').map(line => /^(\w*): ?(.*)$/.exec(line)!)
      const field = (name: string) => fields.find(([, found]) => found === name)?.[2] ?? ''
      for (const [, name, value] of fields) if (name === '') this.comments.push(value!)
      if (field('data') !== '') {
        this.events.push({ id: field('id'), event: field('event'), data: JSON.parse(field('data')) })
      }
    }
  }
}
