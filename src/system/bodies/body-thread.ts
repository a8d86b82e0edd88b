/** The program of a thread that reads large bodies. */
import { parentPort } from 'node:worker_threads'
import { readHere } from '../../core/bodies/body-readings.ts'
import { packError } from '../../store/engines/thread-messages.ts'
import type { ReadingAnswer, ReadingRequest } from './body-threads.ts'

let pieces: Uint8Array[] = []

parentPort?.on('message', (request: ReadingRequest) => {
  if (request.kind === 'piece') pieces.push(request.bytes)
  else parentPort!.postMessage(answer(request))
})

function answer({ name, rest, text }: ReadingRequest & { kind: 'read' }): ReadingAnswer {
  const read = text ?? pieces
  pieces = []
  try {
    return { ok: true, value: readHere(name, read, rest as never) }
  } catch (error) {
    return { ok: false, error: packError(error) }
  }
}
