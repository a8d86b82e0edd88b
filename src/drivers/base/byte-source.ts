/** Bytes that come piece by piece, such as the response of an engine that sends each line by itself. */
export interface ByteSource extends AsyncIterable<Uint8Array> {
  /** A piece of the bytes that have come; null for no such piece. Left out where pieces do not wait. */
  read?(): Uint8Array | null
}

/** Size from which pieces are not joined. */
const MOST_BYTES = 64 * 1024

/** All that has come since the last piece as one: a reader that pauses has that many fewer of them. */
export async function* gatherBytes(source: ByteSource): AsyncGenerator<Buffer> {
  for await (const first of source) {
    const pieces = [first]
    for (let bytes = first.length; bytes < MOST_BYTES; bytes += pieces.at(-1)!.length) {
      const next = source.read?.() ?? null
      if (next === null) break
      pieces.push(next)
    }
    yield Buffer.concat(pieces)
  }
}
