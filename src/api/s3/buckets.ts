import { FileError } from '../../core/files/file-error.ts'
import { uriEncode } from '../../core/files/signature.ts'
import { childText, readXml, type XmlOut } from '../../core/files/xml.ts'
import type { FileList } from '../../ports/volume-files.ts'
import type { Files } from '../../services/files/files.ts'
import type { S3Call } from './call.ts'
import { xmlResponse, xmlTime } from './responses.ts'

/** Limit of the keys of one list, and of one deletion. */
const MAX_KEYS = 1_000

/** ListBuckets. */
export async function listBuckets({ caller }: S3Call, files: Files): Promise<Response> {
  const volumes = await files.buckets(caller)
  const buckets: XmlOut[] = volumes.map(({ id, createdAtMs }) => [
    'Bucket',
    [
      ['Name', id],
      ['CreationDate', xmlTime(createdAtMs)],
    ],
  ])
  return xmlResponse(['ListAllMyBucketsResult', [owner(caller.owner), ['Buckets', buckets]]])
}

function owner(id: string): XmlOut {
  return [
    'Owner',
    [
      ['ID', id],
      ['DisplayName', id],
    ],
  ]
}

/** HeadBucket, GetBucketLocation and GetBucketVersioning, which say that a bucket exists. */
export async function bucketFact({ caller, bucket }: S3Call, files: Files, document: XmlOut | null): Promise<Response> {
  await files.bucket(caller, bucket, 'read')
  return document === null ? new Response(null, { status: 200 }) : xmlResponse(document)
}

/** ListObjectsV2, and ListObjects with its other words. */
export async function listObjects(call: S3Call, files: Files): Promise<Response> {
  const { caller, query, request } = call
  const bucket = await files.bucket(caller, call.bucket, 'read')
  const isSecond = query.get('list-type') === '2'
  const delimiter = query.get('delimiter') ?? ''
  if (delimiter !== '' && delimiter !== '/') throw new FileError('NotImplemented', 'the delimiter can only be /')
  const most = query.get('max-keys') ?? String(MAX_KEYS)
  if (!/^\d{1,9}$/.test(most)) throw new FileError('InvalidArgument', 'max-keys must be a number')
  const prefix = query.get('prefix') ?? ''
  const token = query.get('continuation-token')
  const start = query.get(isSecond ? 'start-after' : 'marker') ?? ''
  const after = isSecond && token !== undefined ? readToken(token) : start
  const limit = Math.min(MAX_KEYS, Number(most))
  const list = await files.list(bucket, { prefix, after, byFolder: delimiter === '/', limit }, request.signal)
  const encode = keyEncoder(query)
  const { next } = list
  return xmlResponse([
    'ListBucketResult',
    [
      ['Name', bucket.name],
      ['Prefix', encode(prefix)],
      delimiter === '' ? null : ['Delimiter', encode(delimiter)],
      ['MaxKeys', limit],
      query.get('encoding-type') === 'url' ? ['EncodingType', 'url'] : null,
      ['IsTruncated', next !== null],
      ...(isSecond
        ? ([
            ['KeyCount', list.files.length + list.folders.length],
            token === undefined ? null : ['ContinuationToken', token],
            start === '' ? null : ['StartAfter', encode(start)],
            next === null ? null : ['NextContinuationToken', Buffer.from(next).toString('base64url')],
          ] satisfies (XmlOut | null)[])
        : ([
            ['Marker', encode(start)],
            next === null ? null : ['NextMarker', encode(next)],
          ] satisfies (XmlOut | null)[])),
      ...contents(list, encode),
    ],
  ])
}

function contents({ files, folders }: FileList, encode: (text: string) => string): XmlOut[] {
  return [
    ...files.map(
      ({ key, modifiedMs, tag, bytes }): XmlOut => [
        'Contents',
        [
          ['Key', encode(key)],
          ['LastModified', xmlTime(modifiedMs)],
          ['ETag', tag],
          ['Size', bytes],
          ['StorageClass', 'STANDARD'],
        ],
      ],
    ),
    ...folders.map((folder): XmlOut => ['CommonPrefixes', [['Prefix', encode(folder)]]]),
  ]
}

/** Names in a list, encoded where the client asks for it: XML has no form for some. */
export function keyEncoder(query: ReadonlyMap<string, string>): (text: string) => string {
  const encoding = query.get('encoding-type')
  if (encoding === undefined) return text => text
  if (encoding !== 'url') throw new FileError('InvalidArgument', 'encoding-type can only be url')
  return text => text.split('/').map(uriEncode).join('/')
}

function readToken(token: string): string {
  if (!/^[A-Za-z0-9_-]{1,2000}$/.test(token)) {
    throw new FileError('InvalidArgument', 'the continuation token is not one that a list has returned')
  }
  return Buffer.from(token, 'base64url').toString()
}

/** DeleteObjects. @param text the body of the request */
export async function deleteObjects(call: S3Call, files: Files, text: string): Promise<Response> {
  const { caller, bucket: name, request } = call
  const root = readXml(text)
  const keys = root.children.filter(({ name }) => name === 'Object').map(object => childText(object, 'Key') ?? '')
  if (root.name !== 'Delete' || keys.length === 0 || keys.length > MAX_KEYS) {
    throw new FileError('MalformedXML', `a deletion names 1 to ${MAX_KEYS} keys`)
  }
  const bucket = await files.bucket(caller, name, 'write')
  const isQuiet = childText(root, 'Quiet') === 'true'
  const results: XmlOut[] = []
  for (const key of keys) {
    request.signal.throwIfAborted()
    try {
      await files.remove(bucket, key)
      if (!isQuiet) results.push(['Deleted', [['Key', key]]])
    } catch (error) {
      if (!(error instanceof FileError)) throw error
      const { code, message } = error
      results.push([
        'Error',
        [
          ['Key', key],
          ['Code', code],
          ['Message', message],
        ],
      ])
    }
  }
  return xmlResponse(['DeleteResult', results])
}
