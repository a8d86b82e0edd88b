import {
  type ByteRange,
  matches,
  readConditions,
  readingProblem,
  readRange,
  writingCondition,
} from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import { contentType, readFileKey } from '../../core/files/file-key.ts'
import { readTarget } from '../../core/files/signature.ts'
import type { Clock } from '../../ports/clock.ts'
import type { FileFacts, OpenFile } from '../../ports/volume-files.ts'
import type { Files } from '../../services/files/files.ts'
import type { S3Call } from './call.ts'
import { readIncoming } from './incoming.ts'
import { xmlResponse, xmlTime } from './responses.ts'

/** Dependencies of the operations on files. */
export interface ObjectParts {
  readonly files: Files
  readonly clock: Clock
}

/** Headers of a response that its query may set, as in presigned URLs for downloads. */
const OVERRIDES = ['content-type', 'content-disposition', 'content-language', 'cache-control', 'expires']

/** GetObject and HeadObject. */
export async function getObject(call: S3Call, { files }: ObjectParts): Promise<Response> {
  const { head, caller, file, query } = call
  const bucket = await files.bucket(caller, call.bucket, 'read')
  const isHead = head.method === 'HEAD'
  const opened = isHead || file.endsWith('/') ? null : await files.open(bucket, file)
  try {
    const facts = opened ?? (await files.facts(bucket, file))
    if (facts === null) throw new FileError('NoSuchKey')
    const problem = readingProblem(readConditions(head.header), facts)
    if (problem?.code === 'NotModified') {
      await opened?.close()
      return new Response(null, { status: 304, headers: factHeaders(facts) })
    }
    if (problem !== null) throw problem
    const range = readRange(rangeFor(facts, head.header), facts.bytes)
    const { first, last } = range ?? { first: 0, last: facts.bytes - 1 }
    const headers: Record<string, string> = {
      ...factHeaders(facts),
      'accept-ranges': 'bytes',
      'content-length': String(last - first + 1),
      'content-type': contentType(readFileKey(file).path),
      // A page of an account acts for nobody at the address of the server.
      'content-security-policy': 'sandbox',
      ...(range === null ? {} : { 'content-range': `bytes ${first}-${last}/${facts.bytes}` }),
      ...overridden(query),
    }
    const status = range === null ? 200 : 206
    if (opened === null || facts.bytes === 0) {
      await opened?.close()
      return new Response(null, { status, headers })
    }
    // A response that nobody begins to read would leave the file open.
    call.env.delivery.onSettled(() => void opened.close().catch(() => {}))
    return new Response(fileStream(opened, { first, last }, call.ended), { status, headers })
  } catch (error) {
    await opened?.close()
    throw error
  }
}

function rangeFor({ tag }: FileFacts, header: S3Call['head']['header']): string | null {
  const ifRange = header('if-range')
  return ifRange === null || matches(ifRange, tag) ? header('range') : null
}

function factHeaders({ tag, modifiedMs }: FileFacts): Record<string, string> {
  return { etag: tag, 'last-modified': new Date(modifiedMs).toUTCString() }
}

function overridden(query: ReadonlyMap<string, string>): Record<string, string> {
  const given = OVERRIDES.flatMap(name => {
    const value = query.get(`response-${name}`)
    if (value === undefined) return []
    if (!/^[\x20-\x7e]{1,1000}$/.test(value)) throw new FileError('InvalidArgument', `response-${name} is not a header`)
    return [[name, value] as const]
  })
  return Object.fromEntries(given)
}

/** The bytes as fast as the client reads, cut off when the key ends. */
function fileStream(opened: OpenFile, { first, last }: ByteRange, ended: AbortSignal): ReadableStream<Uint8Array> {
  const pieces = opened.read(first, last)
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const cutOff = () => {
          controller.error(ended.reason)
          void opened.close().catch(() => {})
        }
        ended.addEventListener('abort', cutOff, { once: true })
      },
      async pull(controller) {
        ended.throwIfAborted()
        const { value, done } = await pieces.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await pieces.return(undefined)
        // A generator that has not begun closes nothing.
        await opened.close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** PutObject and CopyObject. */
export async function putObject(call: S3Call, { files, clock }: ObjectParts): Promise<Response> {
  const { head, caller, file } = call
  refuseUnkept(head.header)
  const bucket = await files.bucket(caller, call.bucket, 'write')
  const condition = writingCondition(readConditions(head.header))
  if (head.header('x-amz-copy-source') === null) {
    const { tag } = await files.put(bucket, file, { ...readIncoming(call, clock), condition })
    return new Response(null, { status: 200, headers: { etag: tag } })
  }
  const source = await openSource(call, files)
  try {
    const pieces = () => source.opened.read(0, source.opened.bytes - 1)
    const copied = await files.put(bucket, file, { bytes: source.opened.bytes, pieces, condition })
    return xmlResponse([
      'CopyObjectResult',
      [
        ['ETag', copied.tag],
        ['LastModified', xmlTime(copied.modifiedMs)],
      ],
    ])
  } finally {
    await source.opened.close()
  }
}

/** A file that is copied, and the part of it. */
export interface CopySource {
  readonly opened: OpenFile
  readonly range: ByteRange
}

/** Opens the file that `x-amz-copy-source` names. @throws FileError */
export async function openSource({ head, caller }: S3Call, files: Files): Promise<CopySource> {
  const { path, query } = readTarget(head.header('x-amz-copy-source')!)
  if (query.some(([name, value]) => name !== 'versionId' || value !== 'null')) throw new FileError('NotImplemented')
  const source = path.replace(/^\//, '')
  const slash = source.indexOf('/')
  if (slash < 1) throw new FileError('InvalidArgument', 'x-amz-copy-source must be <bucket>/<key>')
  const opened = await files.open(await files.bucket(caller, source.slice(0, slash), 'read'), source.slice(slash + 1))
  if (opened === null) throw new FileError('NoSuchKey')
  const header = (name: string) => head.header(`x-amz-copy-source-${name}`)
  try {
    const problem = readingProblem(readConditions(header), opened)
    if (problem !== null) throw new FileError('PreconditionFailed')
    return { opened, range: readCopyRange(header('range'), opened.bytes) }
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** The part of a file that is copied; unlike a range that is read, it must be whole and inside of the file. */
function readCopyRange(text: string | null, bytes: number): ByteRange {
  if (text === null) return { first: 0, last: bytes - 1 }
  const [, first, last] = (/^bytes=(\d{1,15})-(\d{1,15})$/.exec(text) ?? []).map(Number)
  if (first === undefined || last === undefined || first > last || last >= bytes) {
    throw new FileError('InvalidArgument', 'x-amz-copy-source-range must be bytes=<first>-<last>, inside of the file')
  }
  return { first, last }
}

/**
 * Refuses what a file in a folder cannot keep and a client relies on. Metadata, tags and storage classes are dropped.
 */
export function refuseUnkept(header: (name: string) => string | null): void {
  const acl = header('x-amz-acl')
  if (acl !== null && !PRIVATE.has(acl)) throw new FileError('AccessControlListNotSupported')
  for (const name of UNKEPT) {
    if (header(name) !== null) throw new FileError('NotImplemented', `${name} is not implemented`)
  }
}

const PRIVATE: ReadonlySet<string> = new Set(['private', 'bucket-owner-full-control'])
const UNKEPT = [
  'x-amz-server-side-encryption-customer-algorithm',
  'x-amz-object-lock-mode',
  'x-amz-object-lock-legal-hold',
  'x-amz-website-redirect-location',
  'x-amz-write-offset-bytes',
]

/** DeleteObject. */
export async function deleteObject({ caller, bucket, file, head }: S3Call, { files }: ObjectParts): Promise<Response> {
  if (head.header('if-match') !== null)
    throw new FileError('NotImplemented', 'If-Match of a deletion is not implemented')
  await files.remove(await files.bucket(caller, bucket, 'write'), file)
  return new Response(null, { status: 204 })
}
