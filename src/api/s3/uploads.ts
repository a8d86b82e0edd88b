import { createHash } from 'node:crypto'
import { readConditions, writingCondition } from '../../core/files/conditions.ts'
import { FileError } from '../../core/files/file-error.ts'
import { childText, readXml, type XmlOut } from '../../core/files/xml.ts'
import { FILE_LIMITS, type NamedPart } from '../../services/files/files.ts'
import { keyEncoder } from './buckets.ts'
import type { S3Call } from './call.ts'
import { readIncoming } from './incoming.ts'
import { type ObjectParts, openSource, refuseUnkept } from './objects.ts'
import { lateResponse, xmlResponse, xmlTime } from './responses.ts'

/** Limit of the parts, and of the uploads, of one list. */
const MAX_LISTED = 1_000

/** CreateMultipartUpload. */
export async function beginUpload(call: S3Call, { files }: ObjectParts): Promise<Response> {
  refuseUnkept(call.head.header)
  const bucket = await files.bucket(call.caller, call.bucket, 'write')
  const { id } = await files.beginUpload(bucket, call.file)
  return xmlResponse([
    'InitiateMultipartUploadResult',
    [
      ['Bucket', bucket.name],
      ['Key', call.file],
      ['UploadId', id],
    ],
  ])
}

/** UploadPart and UploadPartCopy. */
export async function putPart(call: S3Call, { files, clock }: ObjectParts): Promise<Response> {
  const { head, caller, file, query } = call
  const bucket = await files.bucket(caller, call.bucket, 'write')
  const place = { upload: query.get('uploadId') ?? '', number: Number(query.get('partNumber')) }
  if (head.header('x-amz-copy-source') === null) {
    const incoming = readIncoming(call, clock, true)
    const { tag } = await files.putPart(bucket, file, place, incoming, incoming.md5)
    return new Response(null, { status: 200, headers: { etag: tag } })
  }
  const { opened, range } = await openSource(call, files)
  try {
    const { first, last } = range
    const hash = createHash('md5')
    const pieces = async function* () {
      for await (const piece of opened.read(first, last)) {
        hash.update(piece)
        yield piece
      }
    }
    const part = await files.putPart(bucket, file, place, { bytes: last - first + 1, pieces }, () => hash.digest('hex'))
    return xmlResponse([
      'CopyPartResult',
      [
        ['ETag', part.tag],
        ['LastModified', xmlTime(part.modifiedMs)],
      ],
    ])
  } finally {
    await opened.close()
  }
}

/** Dependencies of a completion. */
export interface CompletionParts extends ObjectParts {
  readonly outlasts: (work: Promise<unknown>) => void
  /** Makes the document of an error that comes after the beginning of the response. */
  readonly failed: (error: unknown) => string
}

/** CompleteMultipartUpload. @param text the body of the request */
export async function completeUpload(
  call: S3Call,
  { files, clock, outlasts, failed }: CompletionParts,
  text: string,
): Promise<Response> {
  const { head, caller, file, query, env } = call
  const bucket = await files.bucket(caller, call.bucket, 'write')
  const condition = writingCondition(readConditions(head.header))
  const completion = await files.completion(bucket, file, query.get('uploadId') ?? '', namedParts(text), condition)
  const done = completion.complete().then(
    ({ tag }): XmlOut => [
      'CompleteMultipartUploadResult',
      [
        ['Location', `${env.route.url.origin}${env.route.url.pathname}`],
        ['Bucket', bucket.name],
        ['Key', file],
        ['ETag', tag],
      ],
    ],
  )
  outlasts(done)
  return lateResponse(done, failed, (ms, callback) => clock.after(ms, callback))
}

function namedParts(text: string): NamedPart[] {
  const root = readXml(text)
  const parts = root.children.filter(({ name }) => name === 'Part')
  if (root.name !== 'CompleteMultipartUpload' || parts.length > FILE_LIMITS.parts) throw new FileError('MalformedXML')
  return parts.map(part => {
    const [number, tag] = [childText(part, 'PartNumber') ?? '', childText(part, 'ETag')]
    if (!/^\d{1,5}$/.test(number) || tag === null) throw new FileError('MalformedXML')
    return { number: Number(number), tag }
  })
}

/** AbortMultipartUpload. */
export async function abortUpload({ caller, bucket, file, query }: S3Call, { files }: ObjectParts): Promise<Response> {
  await files.abort(await files.bucket(caller, bucket, 'write'), file, query.get('uploadId') ?? '')
  return new Response(null, { status: 204 })
}

/** ListParts. */
export async function listParts(call: S3Call, { files }: ObjectParts): Promise<Response> {
  const { caller, file, query } = call
  const bucket = await files.bucket(caller, call.bucket, 'read')
  const upload = query.get('uploadId') ?? ''
  const marker = numberIn(query, 'part-number-marker', 0)
  const most = Math.min(MAX_LISTED, numberIn(query, 'max-parts', MAX_LISTED))
  const behind = (await files.parts(bucket, file, upload)).filter(({ number }) => number > marker)
  const parts = behind.slice(0, most)
  return xmlResponse([
    'ListPartsResult',
    [
      ['Bucket', bucket.name],
      ['Key', keyEncoder(query)(file)],
      ['UploadId', upload],
      ['PartNumberMarker', marker],
      ['NextPartNumberMarker', parts.at(-1)?.number ?? marker],
      ['MaxParts', most],
      ['IsTruncated', behind.length > parts.length],
      ...parts.map(
        ({ number, modifiedMs, tag, bytes }): XmlOut => [
          'Part',
          [
            ['PartNumber', number],
            ['LastModified', xmlTime(modifiedMs)],
            ['ETag', tag],
            ['Size', bytes],
          ],
        ],
      ),
    ],
  ])
}

function numberIn(query: ReadonlyMap<string, string>, name: string, fallback: number): number {
  const text = query.get(name) ?? String(fallback)
  if (!/^\d{1,9}$/.test(text)) throw new FileError('InvalidArgument', `${name} must be a number`)
  return Number(text)
}

/** ListMultipartUploads; all of them, since a volume has a limited number. */
export async function listUploads(call: S3Call, { files }: ObjectParts): Promise<Response> {
  const { caller, query } = call
  const bucket = await files.bucket(caller, call.bucket, 'read')
  const prefix = query.get('prefix') ?? ''
  const uploads = (await files.uploads(bucket)).filter(({ key }) => key.startsWith(prefix))
  const encode = keyEncoder(query)
  return xmlResponse([
    'ListMultipartUploadsResult',
    [
      ['Bucket', bucket.name],
      ['Prefix', encode(prefix)],
      ['MaxUploads', MAX_LISTED],
      ['IsTruncated', false],
      ...uploads.map(
        ({ key, id, startedMs }): XmlOut => [
          'Upload',
          [
            ['Key', encode(key)],
            ['UploadId', id],
            ['Initiated', xmlTime(startedMs)],
          ],
        ],
      ),
    ],
  ])
}
