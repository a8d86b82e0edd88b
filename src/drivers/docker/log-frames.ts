/**
 * The engine's form of a container's output: frames with a head of eight bytes, each an entry with its time in front.
 */
import { type ByteSource, gatherBytes } from '../base/byte-source.ts'
import { entryTime, type LogEntry } from '../base/log-position.ts'

const HEAD_BYTES = 8
/** No engine writes larger frames; a larger one is an unknown format. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024

/** The entries of an engine's stream of output, as they come. */
export async function* entriesFromFrames(
  stream: ByteSource & { destroy(): void },
): AsyncGenerator<readonly LogEntry[]> {
  const frames = new FrameReader()
  try {
    for await (const chunk of gatherBytes(stream)) yield frames.push(chunk)
  } finally {
    stream.destroy()
  }
}

/** Puts frames together from pieces of a stream. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** The entries that are whole now. @throws Error when these are no frames */
  push(chunk: Buffer): LogEntry[] {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const entries: LogEntry[] = []
    while (rest.length >= HEAD_BYTES) {
      const length = rest.readUInt32BE(4)
      if ((rest[0] ?? 9) > 3 || length > MAX_FRAME_BYTES) throw new Error('the engine sends output in an unknown form')
      if (rest.length < HEAD_BYTES + length) break
      entries.push(entryFromFrame(rest[0] ?? 0, rest.subarray(HEAD_BYTES, HEAD_BYTES + length)))
      rest = rest.subarray(HEAD_BYTES + length)
    }
    this.#rest = rest
    return entries
  }
}

function entryFromFrame(stream: number, frame: Buffer): LogEntry {
  const blank = frame.indexOf(0x20)
  const at = blank === -1 ? null : entryTime(frame.subarray(0, blank).toString('latin1'))
  return at === null ? { at: '', stream, text: frame } : { at, stream, text: frame.subarray(blank + 1) }
}
