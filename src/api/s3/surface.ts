/**
 * The S3 door: files of network volumes for `rp_upload`, the AWS SDKs and other clients of S3, with path-style
 * addresses (`/s3/<network volume>/<key>`) and AWS Signature Version 4 (docs/adr/0099-files-over-s3.md).
 */
import { AppError, toAppError } from '../../core/errors.ts'
import { fairShare, Holdings, mayHavePlace } from '../../core/fair-share.ts'
import { FileError, type FileErrorCode } from '../../core/files/file-error.ts'
import { xmlDocument } from '../../core/files/xml.ts'
import type { Emit } from '../../events.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Access } from '../../services/accounts/access.ts'
import type { S3Keys } from '../../services/accounts/s3-keys.ts'
import type { Files } from '../../services/files/files.ts'
import type { BodyRoom } from '../body.ts'
import { admitTo, reportFailure, type Surface, type SurfaceEnv } from '../surface.ts'
import { bucketFact, deleteObjects, listBuckets, listObjects } from './buckets.ts'
import { readCall, type S3Call } from './call.ts'
import { readIncoming } from './incoming.ts'
import { deleteObject, getObject, putObject } from './objects.ts'
import { abortUpload, beginUpload, completeUpload, listParts, listUploads, putPart } from './uploads.ts'

/** Dependencies of the S3 door. */
export interface S3Parts {
  readonly keys: S3Keys
  readonly access: Pick<Access, 'hold'>
  /** Null where the server cannot keep links out of the way to files. */
  readonly files: Files | null
  readonly room: BodyRoom
  readonly clock: Clock
  readonly emit: Emit
}

/**
 * Requests that are worked on at once, the part of them that one account leaves to others, and the last ones, which
 * are for accounts with few: uploads may hold their places for long.
 */
const PLACES = { all: 128, left: 1 / 2, last: { kept: 32, few: 4 } }
/** Limit of a body of XML: a completion of 10,000 parts, each with a checksum. */
const MAX_XML_BYTES = 4 * 1024 ** 2

/** The S3 door. */
export function s3Surface(parts: S3Parts): Surface {
  const held = new Holdings<string>()
  let places = 0
  const enter = (account: string) => {
    const own = held.of(account)
    const isFree = mayHavePlace(PLACES.all - places, own, PLACES.last)
    if (!isFree || own >= fairShare(PLACES.all, PLACES.left)) throw new FileError('SlowDown')
    places += 1
    held.add(account, 1)
    return () => {
      places -= 1
      held.add(account, -1)
    }
  }
  return async (request, env) => {
    try {
      const { files } = parts
      if (files === null) throw new FileError('NotImplemented', 'the S3 door needs a server on Linux')
      const call = await readCall(request, env, parts)
      admitTo(env, call.caller.owner)
      env.streams?.()
      const leave = enter(call.caller.owner)
      const work: Promise<unknown>[] = []
      try {
        const response = await answer(call, { ...parts, files, outlasts: promise => void work.push(promise) })
        response.headers.set('x-amz-request-id', env.requestId)
        return response
      } finally {
        void Promise.allSettled(work).then(leave)
      }
    } catch (thrown) {
      // The reason of the signal: work stopped, since its client is gone.
      const isExpected = thrown instanceof FileError || thrown === request.signal.reason
      if (!isExpected) reportFailure(parts.emit, 's3', { request, env }, thrown)
      const error = asFileError(thrown)
      const headers = { 'content-type': 'application/xml', 'x-amz-request-id': env.requestId }
      const isBare = request.method === 'HEAD' || error.status === 304
      return new Response(isBare ? null : errorDocument(error, env), { status: error.status, headers })
    }
  }
}

interface Parts extends S3Parts {
  readonly files: Files
  /** Keeps the place of the request until work has ended that may outlast the beginning of its response. */
  readonly outlasts: (work: Promise<unknown>) => void
}

function answer(call: S3Call, parts: Parts): Promise<Response> {
  const { bucket, file } = call
  if (bucket === '') return ofDoor(call, parts)
  return file === '' ? ofBucket(call, parts) : ofFile(call, parts)
}

async function ofDoor(call: S3Call, { files }: Parts): Promise<Response> {
  if (call.head.method !== 'GET') throw new FileError('MethodNotAllowed')
  return listBuckets(call, files)
}

async function ofBucket(call: S3Call, parts: Parts): Promise<Response> {
  const { files } = parts
  const { query, head } = call
  switch (head.method) {
    case 'HEAD':
      return bucketFact(call, files, null)
    case 'GET':
      if (query.has('location')) return bucketFact(call, files, ['LocationConstraint', ''])
      if (query.has('versioning')) return bucketFact(call, files, ['VersioningConfiguration', ''])
      if (query.has('uploads')) return listUploads(call, parts)
      if ([...query.keys()].every(name => LIST_WORDS.has(name))) return listObjects(call, files)
      throw new FileError('NotImplemented')
    case 'POST':
      if (!query.has('delete')) throw new FileError('NotImplemented')
      return withText(call, parts, text => deleteObjects(call, files, text))
    case 'PUT':
      if (query.size > 0) throw new FileError('NotImplemented')
      await files.bucket(call.caller, call.bucket, 'read').catch(error => {
        throw error instanceof FileError && error.code === 'NoSuchBucket'
          ? new FileError('NotImplemented', MAKE)
          : error
      })
      throw new FileError('BucketAlreadyOwnedByYou')
    case 'DELETE':
      throw new FileError('NotImplemented', 'a bucket is a network volume; delete it with the API of the server')
    default:
      throw new FileError('MethodNotAllowed')
  }
}

const MAKE = 'a bucket is a network volume; create it with runyard volumes create, and name it by its id'

const LIST_WORDS: ReadonlySet<string> = new Set([
  'list-type',
  'prefix',
  'delimiter',
  'max-keys',
  'marker',
  'start-after',
  'continuation-token',
  'encoding-type',
  'fetch-owner',
  'x-id',
])

async function ofFile(call: S3Call, parts: Parts): Promise<Response> {
  const { query, head } = call
  const other = [...query.keys()].find(name => !FILE_WORDS.has(name) && !name.startsWith('response-'))
  if (other !== undefined)
    throw new FileError('NotImplemented', `the part ${other.slice(0, 100)} of a file is not implemented`)
  const isOfUpload = query.has('uploadId')
  switch (head.method) {
    case 'GET':
      return isOfUpload ? listParts(call, parts) : getObject(call, parts)
    case 'HEAD':
      return getObject(call, parts)
    case 'PUT':
      return isOfUpload ? putPart(call, parts) : putObject(call, parts)
    case 'DELETE':
      return isOfUpload ? abortUpload(call, parts) : deleteObject(call, parts)
    case 'POST':
      if (query.has('uploads')) return beginUpload(call, parts)
      if (!isOfUpload) throw new FileError('NotImplemented')
      return withText(call, parts, text =>
        completeUpload(call, { ...parts, failed: error => errorDocument(asFileError(error), call.env) }, text),
      )
    default:
      throw new FileError('MethodNotAllowed')
  }
}

const FILE_WORDS: ReadonlySet<string> = new Set([
  'uploadId',
  'partNumber',
  'uploads',
  'part-number-marker',
  'max-parts',
  'encoding-type',
  'versionId',
  'x-id',
])

/** Reads a body of XML within the memory of its account. */
async function withText(
  call: S3Call,
  { room, clock }: Parts,
  use: (text: string) => Promise<Response>,
): Promise<Response> {
  const { pieces } = readIncoming(call, clock)
  const limit = { keptBytes: MAX_XML_BYTES, readBytes: MAX_XML_BYTES }
  const env = { body: () => ({ pieces, drop: () => {} }) }
  try {
    return await room.of(call.caller.owner).limited({ request: call.request, env }, limit, async ({ content }) => {
      if (content === null) throw new FileError('EntityTooLarge', `the body has more than ${MAX_XML_BYTES} bytes`)
      return use(typeof content === 'string' ? content : Buffer.concat(content).toString())
    })
  } catch (error) {
    throw error instanceof AppError && error.cause instanceof FileError ? error.cause : error
  }
}

const CODES: Readonly<Partial<Record<AppError['code'], FileErrorCode>>> = {
  invalid: 'InvalidRequest',
  unauthorized: 'InvalidAccessKeyId',
  forbidden: 'AccessDenied',
  not_found: 'NoSuchBucket',
  too_large: 'EntityTooLarge',
  rate_limited: 'SlowDown',
  unavailable: 'ServiceUnavailable',
}

/** The error of S3 for any error. */
function asFileError(thrown: unknown): FileError {
  if (thrown instanceof FileError) return thrown
  const { code, message } = toAppError(thrown)
  const known = CODES[code]
  if (known === undefined) return new FileError('InternalError')
  return new FileError(known, code === 'unauthorized' ? undefined : message)
}

function errorDocument({ code, message }: FileError, { requestId, route }: SurfaceEnv): string {
  return xmlDocument(
    [
      'Error',
      [
        ['Code', code],
        ['Message', message],
        ['Resource', route.url.pathname],
        ['RequestId', requestId],
      ],
    ],
    false,
  )
}
