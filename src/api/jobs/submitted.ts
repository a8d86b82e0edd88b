/** Bodies of run, runsync and replay: read in memory, or passed to the store as they arrive. */
import type { Context } from 'hono'
import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import { readSubmission, type SubmissionReading } from '../../core/jobs/submission.ts'
import { bodyRequest, isPassing } from '../body.ts'
import type { ApiParts } from '../parts.ts'
import type { SurfaceEnv } from '../surface.ts'

/**
 * Reads the body of a submission, and makes a job of it.
 * @param kind whose limits the body has
 * @param held registers the request as open; the signal ends a body that passes
 * @param submit gets what the body says, and a small body itself; a large body with failures is refused before
 * @throws AppError as `BodyReader.passing`, `LargeInputs.receive` and `submit` do
 */
export function withSubmission<Job>(
  { room, largeInputs, ports }: ApiParts,
  call: Context<{ Bindings: SurfaceEnv }>,
  { owner }: Endpoint,
  { kind, held }: { readonly kind: 'run' | 'runsync'; readonly held: () => AbortSignal },
  submit: (reading: SubmissionReading, body: string | null) => Promise<Job>,
): Promise<Job> {
  return room.of(owner).passing(bodyRequest(call), largeInputs.bodyLimit(kind), async body => {
    if (isPassing(body)) {
      return largeInputs.receive(owner, body, { ended: held(), submit: submission => submit({ submission }, null) })
    }
    if (typeof body === 'string') return submit(readSubmission(body), body)
    return submit(await ports.bodies.read(owner, 'submission', body), null)
  })
}
