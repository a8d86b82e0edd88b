import { isLargeText, type ViewPart } from '../core/jobs/job-view.ts'
import type { LargeText } from '../core/jobs/large-text.ts'
import { gatherSlices } from '../core/json/text-slices.ts'
import { pacedStream, type ReadingPace } from './paced-stream.ts'
import type { ApiParts } from './parts.ts'
import type { SurfaceEnv } from './surface.ts'

/** Limits of a reader of a large text, which holds a connection and about a megabyte of memory. */
const READING: ReadingPace = { graceMs: 60_000, bytesPerSecond: 64 * 1024, deadlineMs: 12 * 60 * 60_000 }

/** A reader of a large text. */
export interface LargeTextReader {
  /** Names the text in the error of a slow reader. */
  readonly what: string
  /** Aborts when the caller may no longer have it. */
  readonly ended: AbortSignal
  /** Called with the error where a large text cannot be read, before the response breaks off. */
  readonly onUnreadable?: (text: LargeText, error: unknown) => Promise<void>
}

/**
 * A response of JSON text with large texts, which are read from the store as fast as the reader takes them. If one is
 * removed meanwhile, the response ends before its announced length.
 */
export function largeText(
  parts: ApiParts,
  env: SurfaceEnv,
  view: readonly ViewPart[],
  { what, ended, onUnreadable }: LargeTextReader,
): Response {
  const bytes = view.reduce((sum, part) => sum + (isLargeText(part) ? part.bytes : Buffer.byteLength(part)), 0)
  const headers = { 'content-type': 'application/json', 'content-length': String(bytes) }
  env.streams?.()
  const source = { pieces: pieces(parts, view, onUnreadable), drop: async () => {} }
  return new Response(pacedStream(what, source, READING, { clock: parts.ports.clock, ended }), { headers })
}

async function* pieces(
  { largeTexts }: ApiParts,
  view: readonly ViewPart[],
  onUnreadable: LargeTextReader['onUnreadable'],
): AsyncGenerator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for (const part of view) {
    try {
      const texts = isLargeText(part) ? largeTexts.read(part) : [part]
      for await (const text of texts) for (const slice of gatherSlices([text])) yield encoder.encode(slice)
    } catch (error) {
      if (isLargeText(part)) await onUnreadable?.(part, error)
      throw error
    }
  }
}
