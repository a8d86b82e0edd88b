import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { operationOf } from './operations/table.ts'
import { type EngineOptions, MAX_BATCH, SqliteEngine } from './sqlite-engine.ts'
import { type NumberedCall, type NumberedOutcome, packError, type Request, type Response } from './thread-messages.ts'

/**
 * Answers the main thread's calls. Everything that has arrived is taken together: first the reads, which wait for no
 * flush, then the writes, with one commit for as many as came in while the last one was flushed.
 */
export function serveStore(port: MessagePort, options: EngineOptions): void {
  const send = (response: Response) => port.postMessage(response)
  let engine: SqliteEngine
  try {
    engine = new SqliteEngine(options)
  } catch (error) {
    send({ kind: 'failed', error: packError(error) })
    port.close()
    return
  }
  port.on('message', (first: Request) => {
    const requests = [first, ...arrived(port)]
    answer(
      engine,
      requests.flatMap(request => (request.kind === 'calls' ? request.calls : [])),
      send,
    )
    for (const request of requests) {
      if (request.kind === 'stats') send({ kind: 'stats', id: request.id, stats: engine.stats })
    }
    if (requests.some(request => request.kind === 'close')) {
      engine.close()
      port.close()
    }
  })
  send({ kind: 'ready' })
}

function arrived(port: MessagePort): Request[] {
  const requests: Request[] = []
  for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
    requests.push(next.message as Request)
  }
  return requests
}

function answer(engine: SqliteEngine, calls: readonly NumberedCall[], send: (response: Response) => void): void {
  const reads = calls.filter(({ name }) => operationOf(name).reads)
  if (reads.length > 0) send({ kind: 'outcomes', outcomes: reads.map(call => readOutcome(engine, call)) })
  const writes = calls.filter(({ name }) => !operationOf(name).reads)
  for (let at = 0; at < writes.length; at += MAX_BATCH) {
    const batch = writes.slice(at, at + MAX_BATCH)
    const outcomes = engine.write(batch).map((outcome, index) => packed({ ...outcome, id: batch[index]!.id }))
    send({ kind: 'outcomes', outcomes })
  }
}

function readOutcome(engine: SqliteEngine, call: NumberedCall): NumberedOutcome {
  try {
    return { id: call.id, ok: true, value: engine.read(call) }
  } catch (error) {
    return packed({ id: call.id, ok: false, error })
  }
}

function packed(outcome: NumberedOutcome): NumberedOutcome {
  return outcome.ok ? outcome : { ...outcome, error: packError(outcome.error) }
}
