import type { ViewPart } from '../../core/jobs/job-view.ts'
import { gatherSlices } from '../../core/json/text-slices.ts'
import { pacedStream, type ReadingPace } from '../paced-stream.ts'
import type { ApiParts } from '../parts.ts'
import type { SurfaceEnv } from '../surface.ts'

/** Limits of a reader of a large output, which holds a connection and about a megabyte of memory. */
const READING: ReadingPace = { graceMs: 60_000, bytesPerSecond: 64 * 1024, deadlineMs: 12 * 60 * 60_000 }

/**
 * A response of JSON text with a large output, which is read from the store as fast as the client takes it. If it is
 * removed meanwhile, the response ends before its announced length.
 * @param ended aborts when the caller may no longer have it
 */
export function largeText(parts: ApiParts, env: SurfaceEnv, view: readonly ViewPart[], ended: AbortSignal): Response {
  const bytes = view.reduce((sum, part) => sum + (typeof part === 'string' ? Buffer.byteLength(part) : part.bytes), 0)
  const headers = { 'content-type': 'application/json', 'content-length': String(bytes) }
  env.streams?.()
  const source = { pieces: pieces(parts, view), drop: async () => {} }
  return new Response(pacedStream('the result', source, READING, { clock: parts.ports.clock, ended }), { headers })
}

async function* pieces({ largeResults }: ApiParts, view: readonly ViewPart[]): AsyncGenerator<Uint8Array, void> {
  const encoder = new TextEncoder()
  for (const part of view) {
    const texts = typeof part === 'string' ? [part] : largeResults.texts(part)
    for await (const text of texts) for (const slice of gatherSlices([text])) yield encoder.encode(slice)
  }
}
