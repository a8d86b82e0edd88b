/** In place of the thread that reads large bodies: ends when it is given the word, else reads. */
import { parentPort } from 'node:worker_threads'
import { readHere } from '../../src/core/bodies/body-readings.ts'
import type { ReadingRequest } from '../../src/system/bodies/body-threads.ts'

let pieces: Uint8Array[] = []

parentPort?.on('message', (request: ReadingRequest) => {
  if (request.kind === 'piece') {
    pieces.push(request.bytes)
    return
  }
  if (Buffer.concat(pieces).includes('END')) process.exit(1)
  parentPort?.postMessage({ ok: true, value: readHere(request.name, pieces, request.rest as never) })
  pieces = []
})
