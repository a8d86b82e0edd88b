import type { Caller } from '../../core/accounts/permission.ts'
import { FileError } from '../../core/files/file-error.ts'
import {
  readSignature,
  readTarget,
  type Signature,
  type SignedHead,
  signatureTimeProblem,
} from '../../core/files/signature.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Access } from '../../services/accounts/access.ts'
import { InvalidKeyError } from '../../services/accounts/failed-keys.ts'
import type { S3Keys } from '../../services/accounts/s3-keys.ts'
import { heldFor, type SurfaceEnv } from '../surface.ts'
import { SigningKey } from './signing.ts'

/** A request to the S3 door whose signature was checked. */
export interface S3Call {
  readonly request: Request
  readonly env: SurfaceEnv
  readonly head: SignedHead
  readonly caller: Caller
  /** Aborts when the key ends before the response is sent. */
  readonly ended: AbortSignal
  readonly signature: Signature
  readonly key: SigningKey
  /** The bucket of the path; empty for the door itself. */
  readonly bucket: string
  /** The key of the path; empty for a bucket. */
  readonly file: string
  /** Values of the query by their names, without those of the signature. */
  readonly query: ReadonlyMap<string, string>
}

/** The path of the door. */
const DOOR = '/s3'

/**
 * Reads a request and checks its signature.
 * @throws FileError, or AppError as {@link S3Keys.find}
 */
export async function readCall(
  request: Request,
  env: SurfaceEnv,
  { keys, access, clock }: { readonly keys: S3Keys; readonly access: Pick<Access, 'hold'>; readonly clock: Clock },
): Promise<S3Call> {
  const { method, headers } = request
  const header = (name: string) => headers.get(name)
  const sent = env.target?.() ?? `${env.route.url.pathname}${env.route.url.search}`
  const head = { method, target: sent, header, headerNames: [...headers.keys()] }
  const target = readTarget(sent)
  const signature = readSignature(head, target)
  const pair = await keys.find(signature.accessKeyId, env.address)
  const key = new SigningKey(pair.secret, signature)
  if (!key.hasSigned(head, target)) {
    const error = keys.refusal(new InvalidKeyError('signature'), env.address)
    throw error instanceof InvalidKeyError ? new FileError('SignatureDoesNotMatch') : error
  }
  const late = signatureTimeProblem(signature, clock.now())
  if (late !== null) throw late
  const caller = await pair.caller()
  if (target.path !== DOOR && !target.path.startsWith(`${DOOR}/`)) throw new FileError('InvalidArgument')
  const path = target.path.slice(DOOR.length + 1)
  const slash = path.indexOf('/')
  const query = new Map(target.query.filter(([name]) => !name.startsWith('X-Amz-')))
  const [bucket, file] = slash === -1 ? [path, ''] : [path.slice(0, slash), path.slice(slash + 1)]
  const ended = heldFor(access, env, caller, () => {})
  return { request, env, head, caller, ended, signature, key, bucket, file, query }
}
