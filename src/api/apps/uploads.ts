/** Uploads of archives of apps: `PUT /v2/flash/uploads/<key>?token=...`, without a key of the API. */
import { AppError, toAppError } from '../../core/errors.ts'
import { fairShare, Holdings, mayHavePlace } from '../../core/fair-share.ts'
import type { Ports } from '../../ports/ports.ts'
import type { AppBuilds } from '../../services/apps/app-builds.ts'
import { pacedPieces } from '../paced-body.ts'
import { admitTo, jsonText, refusalHeaders, reportFailure, type Surface, type SurfaceCall } from '../surface.ts'

/** Dependencies of {@link uploadSurface}. */
export interface UploadParts {
  readonly appBuilds: AppBuilds
  readonly ports: Pick<Ports, 'clock' | 'emit'>
}

/**
 * Uploads at once, the part of them that one account leaves to others, and the last ones, which are for accounts with
 * few.
 */
const PLACES = { all: 32, left: 1 / 2, last: { kept: 8, few: 2 } }

/** Takes archives. The token in the address is the right; the client sends no key. */
export function uploadSurface({ appBuilds, ports: { clock, emit } }: UploadParts): Surface {
  const held = new Holdings<string>()
  let places = 0
  const enter = (account: string) => {
    const own = held.of(account)
    if (!mayHavePlace(PLACES.all - places, own, PLACES.last) || own >= fairShare(PLACES.all, PLACES.left)) {
      throw new AppError('rate_limited', 'too many archives are coming in', { retryAfterSeconds: 5 })
    }
    places += 1
    held.add(account, 1)
    return () => {
      places -= 1
      held.add(account, -1)
    }
  }
  const receive = async ({ request, env }: SurfaceCall) => {
    const { url, segments } = env.route
    if (request.method !== 'PUT') {
      throw new AppError('method_not_allowed', `an upload takes PUT, not ${request.method}`, { allow: ['PUT'] })
    }
    if (segments.length !== 5) throw new AppError('not_found', 'there is nothing at this path')
    const upload = await appBuilds.findUpload(segments[4]!, url.searchParams.get('token') ?? '')
    admitTo(env, upload.owner)
    const leave = enter(upload.owner)
    try {
      env.streams?.()
      const length = request.headers.get('content-length')
      const bytes = length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null
      const pieces = () => pacedPieces({ request, env }, clock, request.signal, ERRORS)
      await appBuilds.receive(upload, { bytes, pieces })
    } finally {
      leave()
    }
    return jsonText('{}')
  }
  return async (request, env) => {
    try {
      return await receive({ request, env })
    } catch (thrown) {
      reportFailure(emit, 'uploads', { request, env }, thrown)
      const error = toAppError(thrown)
      return jsonText(JSON.stringify({ error: error.message }), error.status, refusalHeaders(error))
    }
  }
}

const ERRORS = {
  slow: () => new AppError('invalid', 'the archive arrived too slowly'),
  cut: (cause: unknown) => new AppError('invalid', 'the archive did not arrive whole', { cause }),
  over: () => new AppError('invalid', 'the connection ended before the archive'),
}
