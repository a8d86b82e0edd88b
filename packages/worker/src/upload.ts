import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { copyFile, mkdir, stat, writeFile } from 'node:fs/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { basename, extname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { sleep } from './backoff.ts'
import { log } from './log.ts'
import type { Job } from './types.ts'

/** A bucket with the API of S3, and the keys for it. */
export type Bucket = {
  endpointUrl: string
  accessId: string
  accessSecret: string
  /** Default: that of RunPod's SDK for Python, month and year as in `11-26`. */
  bucketName?: string
}

/** Options of an upload. */
export type UploadOptions = {
  /** Last part of its key. Default: the name of the file. */
  name?: string
  /** First part of its key, before the name and a slash. */
  prefix?: string
  contentType?: string
  /**
   * Default: BUCKET_ENDPOINT_URL, BUCKET_ACCESS_KEY_ID and BUCKET_SECRET_ACCESS_KEY, with BUCKET_NAME if it is set.
   */
  bucket?: Bucket
  /** Ends the upload; the `signal` of the handler's context does so when the job is cancelled. */
  signal?: AbortSignal
}

type Content = { bytes: number; open(): Readable; save(path: string): Promise<void> }

const tries = 3
const silenceMs = 60_000
/** Largest size of an upload in one piece to S3, in bytes. */
const mostBytes = 5 * 1024 ** 3
const readableSeconds = 7 * 24 * 3600
const folderWithoutBucket = 'local_upload'

/**
 * Uploads a file and resolves to an address at which everybody can read it for seven days. It is streamed,
 * up to 5 GiB. Needs the package `aws4fetch`, which signs the requests. Without a bucket the file is
 * copied into `local_upload` of the working folder, and its path returned; on a platform that is an error.
 * Rejects with the bucket's answer.
 */
export async function uploadFile(path: string, options: UploadOptions = {}): Promise<string> {
  const { size } = await stat(path)
  const content = { bytes: size, open: () => createReadStream(path), save: (copy: string) => copyFile(path, copy) }
  return upload(content, options.name ?? basename(path), options)
}

/** Uploads bytes or a text under this name, as `uploadFile` does. */
export async function uploadBytes(
  name: string,
  data: Uint8Array | string,
  options: UploadOptions = {},
): Promise<string> {
  const bytes = Buffer.from(data)
  const open = () => Readable.from([bytes], { objectMode: false })
  return upload({ bytes: bytes.length, open, save: copy => writeFile(copy, bytes) }, name, options)
}

/** Uploads an image of a job under a random name with the extension of the file, as `uploadFile` does. */
export async function uploadImage(job: Job | string, path: string, options: UploadOptions = {}): Promise<string> {
  const extension = extname(path).toLowerCase()
  const kind = extension.slice(1).replace(/^jpg$/, 'jpeg')
  const name = `${randomUUID().slice(0, 8)}${extension}`
  const prefix = typeof job === 'string' ? job : job.id
  return uploadFile(path, { name, prefix, contentType: `image/${kind}`, ...options })
}

async function upload(content: Content, name: string, options: UploadOptions): Promise<string> {
  const bucket = options.bucket ?? bucketFromEnv(process.env)
  if (!bucket) return saveHere(content, name)
  if (content.bytes > mostBytes)
    throw new RangeError(`${name} has more than the ${mostBytes} bytes that S3 takes in one piece`)
  const steps = [...(options.prefix ?? '').split('/').filter(Boolean), ...name.split('/').filter(Boolean)]
  // These two steps in an address lead out of the bucket.
  if (steps.length === 0 || steps.some(step => step === '.' || step === '..'))
    throw new RangeError(`${name} is not a valid name of a file in a bucket`)
  const { AwsClient } = await loadSigner()
  const { accessId, accessSecret, endpointUrl, bucketName = monthAndYear() } = bucket
  const signer = new AwsClient({
    accessKeyId: accessId,
    secretAccessKey: accessSecret,
    service: 's3',
    region: bucketRegion(endpointUrl),
    retries: 0,
  })
  const path = [bucketName, ...steps].map(encodeURIComponent).join('/')
  const url = `${endpointUrl.replace(/(?<!\/)\/+$/, '')}/${path}`
  const type = options.contentType ?? 'application/octet-stream'
  const headers = { 'content-type': type, 'content-length': String(content.bytes) }
  for (let attempt = 1; ; attempt += 1) {
    const signed = await signer.sign(url, { method: 'PUT', headers })
    const answer = await put(url, { ...headers, ...Object.fromEntries(signed.headers) }, content, options.signal)
    if (answer === undefined) break
    options.signal?.throwIfAborted()
    if (answer.isFinal || attempt === tries) throw new Error(`${name} was not uploaded: ${answer.reason}`)
    await sleep(250 * 2 ** attempt, options.signal)
  }
  const readable = new URL(url)
  readable.searchParams.set('X-Amz-Expires', String(readableSeconds))
  return (await signer.sign(readable, { aws: { signQuery: true } })).url
}

type Refused = { isFinal: boolean; reason: string }

/** Puts the content into the bucket. Resolves to undefined if the bucket accepts it. */
async function put(
  url: string,
  headers: Record<string, string>,
  content: Content,
  signal: AbortSignal | undefined,
): Promise<Refused | undefined> {
  const request = (url.startsWith('https:') ? https : http).request(url, {
    method: 'PUT',
    headers,
    timeout: silenceMs,
    agent: false,
    ...(signal ? { signal } : {}),
  })
  const answered = new Promise<Refused | undefined>((resolve, reject) => {
    request.on('timeout', () => request.destroy(new Error(`the bucket was silent for ${silenceMs} ms`)))
    request.on('error', reject)
    request.on('response', response => readRefusal(response).then(resolve, reject))
  })
  try {
    // A bucket that refuses the content may answer before all of it is sent.
    const sent = pipeline(content.open(), request)
    sent.catch(() => {})
    return await Promise.race([answered, sent.then(() => answered)])
  } catch (error) {
    return { isFinal: false, reason: error instanceof Error ? error.message : String(error) }
  }
}

async function readRefusal(response: http.IncomingMessage): Promise<Refused | undefined> {
  const { statusCode = 0 } = response
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    if (text.length > 16_384) break
  }
  if (statusCode >= 200 && statusCode < 300) return undefined
  const parts = /<Code>([^<]{1,64})<\/Code>(?:[\s\S]*?<Message>([^<]{1,256})<\/Message>)?/.exec(text)
  const words = parts ? `: ${parts[1]}${parts[2] ? `, ${parts[2]}` : ''}` : ''
  return { isFinal: statusCode < 500 && statusCode !== 429, reason: `the bucket answered ${statusCode}${words}` }
}

async function saveHere(content: Content, name: string): Promise<string> {
  if (process.env.RUNPOD_WEBHOOK_GET_JOB) {
    throw new Error('no bucket is set: set BUCKET_ENDPOINT_URL, BUCKET_ACCESS_KEY_ID and BUCKET_SECRET_ACCESS_KEY')
  }
  await mkdir(folderWithoutBucket, { recursive: true })
  const path = resolve(join(folderWithoutBucket, basename(name)))
  await content.save(path)
  log(`no bucket is set; ${name} was saved as ${path}`, { level: 'WARN' })
  return path
}

function bucketFromEnv(env: Record<string, string | undefined>): Bucket | undefined {
  const { BUCKET_ENDPOINT_URL: endpointUrl, BUCKET_ACCESS_KEY_ID: accessId } = env
  const { BUCKET_SECRET_ACCESS_KEY: accessSecret, BUCKET_NAME: bucketName } = env
  if (!endpointUrl || !accessId || !accessSecret) return undefined
  return { endpointUrl, accessId, accessSecret, ...(bucketName ? { bucketName } : {}) }
}

async function loadSigner(): Promise<typeof import('aws4fetch')> {
  try {
    return await import('aws4fetch')
  } catch (error) {
    throw new Error('uploading to a bucket needs a package that signs requests: npm install aws4fetch', {
      cause: error,
    })
  }
}

function bucketRegion(endpointUrl: string): string {
  const { hostname } = new URL(endpointUrl)
  const region =
    /(?:^|\.)s3[.-]([a-z]+-[a-z]+-\d+)\./.exec(hostname)?.[1] ??
    /^([\w-]+)\.digitaloceanspaces\.com$/.exec(hostname)?.[1]
  return region ?? (process.env.AWS_REGION || 'us-east-1')
}

function monthAndYear(): string {
  const now = new Date()
  return `${String(now.getMonth() + 1).padStart(2, '0')}-${String(now.getFullYear()).slice(-2)}`
}
