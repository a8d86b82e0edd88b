/** Saves large inputs and outputs of jobs as files, as the server stores them. The browser keeps them on its disk. */
import { send } from '../../../client/api.ts'
import { saveBlob } from '../../../parts/csv.ts'

/** A large input or output. */
export interface LargePart {
  readonly endpointId: string
  readonly jobId: string
  readonly part: 'input' | 'output'
  /** Size in bytes; null if it is not known. */
  readonly size: number | null
}

/** Number of bytes in which the output begins in the answer of a job. */
const HEAD = 2_048
/** Time between two reports of the progress, in milliseconds. */
const REPORT_MS = 200

/**
 * Saves a large value whole.
 * @param onReceived called with the number of bytes so far
 * @throws ApiError; AbortError after an abort
 */
export async function saveLarge(
  { endpointId, jobId, part, size }: LargePart,
  onReceived: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const parameters = { path: { endpoint: endpointId, job: jobId }, signal }
  const response =
    part === 'input'
      ? await send('GET /v2/{endpoint}/requests/{job}/input', parameters)
      : await send('GET /v2/{endpoint}/status/{job}', parameters)
  const whole = await readCounted(response, onReceived)
  saveBlob(`${jobId}-${part}.json`, part === 'input' ? whole : await cutOutput(whole, size))
}

function readCounted(response: Response, onReceived: (bytes: number) => void): Promise<Blob> {
  let received = 0
  let reportedMs = 0
  const counter = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      received += piece.byteLength
      if (performance.now() - reportedMs >= REPORT_MS) {
        reportedMs = performance.now()
        onReceived(received)
      }
      controller.enqueue(piece)
    },
  })
  return new Response(response.body!.pipeThrough(counter)).blob()
}

/** The output within the answer of a job; the whole answer if its place is not certain. */
export async function cutOutput(answer: Blob, size: number | null): Promise<Blob> {
  const head = new TextDecoder('latin1').decode(await answer.slice(0, HEAD).arrayBuffer())
  const place = head.indexOf('"output":')
  if (place < 0 || size === null) return answer
  const from = place + '"output":'.length
  const next = await answer.slice(from + size, from + size + 2).text()
  return next === ',"' ? answer.slice(from, from + size, 'application/json') : answer
}
