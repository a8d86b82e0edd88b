import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import * as http from 'node:http'
import * as https from 'node:https'
import { basename, extname, resolve } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { sleep } from './backoff.ts'
import { AddressError, publicLookup, requirePublicHost } from './public-address.ts'
import type { Job } from './types.ts'
import { unzip } from './unzip.ts'

/** Bounds of a download. */
export type DownloadOptions = {
  /** Largest size of one file, in bytes. Default RUNPOD_MAX_DOWNLOAD_BYTES, else 5 GiB. */
  maxBytes?: number
  /** Longest silence of a server, in ms. Default 30000. */
  timeoutMs?: number
  /** Ends the downloads; the `signal` of the handler's context does so when the job is cancelled. */
  signal?: AbortSignal
}

/** Bounds of one download and of what is unpacked from it; `maxBytes` holds for each unpacked file too. */
export type DownloadFileOptions = DownloadOptions & {
  /** Maximum number of files and folders in a zip file. Default 10000. */
  maxUnpackedEntries?: number
  /** Largest size of all files of a zip file together, in bytes. Default RUNPOD_MAX_DOWNLOAD_BYTES, else 5 GiB. */
  maxUnpackedBytes?: number
}

/** A file that was downloaded. */
export type DownloadedFile = {
  path: string
  /** The extension of its original name, without the dot; empty if it has none. */
  type: string
  /** The name that the server or the address gives to it. It is the sender's text: use `path` to open the file. */
  originalName: string
  /** The folder with the files of a zip file; null for others. */
  extractedPath: string | null
}

const mostFiles = 1000
const atOnce = 8
const tries = 3
const mostRedirects = 5
const defaultBytes = 5 * 1024 ** 3
const defaultEntries = 10_000

/** A failure of a download that another attempt cannot fix. */
class FinalError extends Error {}

/**
 * Downloads files that a job's input names into `jobs/<job>/downloaded_files` of the working folder and resolves to
 * their paths, in the order of the addresses; each has a random name with the extension it had. Addresses that are not
 * public are refused, in redirects too, unless RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS is `true`: the sender of a job must
 * not reach the private network of the worker. Rejects with the address and the reason if one file cannot be
 * downloaded, and then leaves no file.
 */
export async function downloadFiles(
  job: Job | string,
  urls: string | readonly string[],
  options: DownloadOptions = {},
): Promise<string[]> {
  const list = typeof urls === 'string' ? [urls] : urls
  if (list.length > mostFiles)
    throw new RangeError(`${list.length} files are more than the ${mostFiles} that are allowed`)
  const folder = resolve(jobFolder(job), 'downloaded_files')
  await mkdir(folder, { recursive: true })
  const stop = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
  const paths: string[] = []
  const places = list.entries()
  const work = async () => {
    for (const [index, url] of places) paths[index] = (await download(url, folder, { ...options, signal })).path
  }
  const workers = Array.from({ length: Math.min(atOnce, list.length) }, work)
  try {
    await Promise.all(workers)
  } catch (error) {
    stop.abort()
    await Promise.allSettled(workers)
    await Promise.all(paths.map(path => rm(path, { force: true })))
    throw error
  }
  return paths
}

/**
 * Downloads one file as `downloadFiles` does, and unpacks it if its name ends in `.zip`, into a folder beside it:
 * names that lead out of that folder, links and encrypted files are refused. Unpacking needs the package `yauzl`.
 * Rejects with the address and the reason, and then leaves neither file nor folder.
 */
export async function downloadFile(
  job: Job | string,
  url: string,
  options: DownloadFileOptions = {},
): Promise<DownloadedFile> {
  const folder = resolve(jobFolder(job), 'downloaded_files')
  await mkdir(folder, { recursive: true })
  const { path, base, name } = await download(url, folder, options)
  const type = fileExtension(name).slice(1)
  const file = { path, type, originalName: name, extractedPath: null }
  if (type.toLowerCase() !== 'zip') return file
  try {
    await unzip(path, base, {
      maxEntries: options.maxUnpackedEntries ?? defaultEntries,
      maxFileBytes: options.maxBytes ?? mostBytes(),
      maxTotalBytes: options.maxUnpackedBytes ?? mostBytes(),
      signal: options.signal,
    })
  } catch (error) {
    await rm(path, { force: true })
    options.signal?.throwIfAborted()
    throw new Error(`${shown(url)} was not unpacked: ${(error as Error).message}`, { cause: error })
  }
  return { ...file, extractedPath: base }
}

/** Removes the files that `downloadFiles` and `downloadFile` wrote into the working folder for this job. */
export async function removeDownloads(job: Job | string): Promise<void> {
  await rm(jobFolder(job), { recursive: true, force: true })
}

function jobFolder(job: Job | string): string {
  const id = typeof job === 'string' ? job : job.id
  // An id is not a path: characters that would lead out of the folder are encoded.
  return resolve('jobs', encodeURIComponent(id).replaceAll('.', '%2E'))
}

/** A file at `path`, which is `base` with the extension of its original name. */
type Downloaded = { path: string; base: string; name: string }

async function download(url: string, folder: string, bounds: DownloadOptions): Promise<Downloaded> {
  for (let attempt = 1; ; attempt += 1) {
    const base = resolve(folder, randomUUID())
    try {
      return await fetchInto(url, base, bounds)
    } catch (error) {
      bounds.signal?.throwIfAborted()
      const { message } = error as Error
      const isFinal = error instanceof FinalError || error instanceof AddressError
      if (isFinal || attempt === tries)
        throw new Error(`${shown(url)} was not downloaded: ${message}`, { cause: error })
      await sleep(250 * 2 ** attempt, bounds.signal)
    }
  }
}

async function fetchInto(url: string, base: string, bounds: DownloadOptions): Promise<Downloaded> {
  const { response, from } = await open(url, bounds)
  const most = bounds.maxBytes ?? mostBytes()
  const tooLarge = () => new FinalError(`it is larger than ${most} bytes`)
  let bytes = 0
  const counter = new Transform({
    transform(chunk: Buffer, _, done) {
      bytes += chunk.length
      done(bytes > most ? tooLarge() : null, chunk)
    },
  })
  if (Number(response.headers['content-length'] ?? 0) > most) {
    response.destroy()
    throw tooLarge()
  }
  const name = responseName(response, [parse(url), from])
  const path = `${base}${fileExtension(name)}`
  const { signal } = bounds
  try {
    await pipeline(response, counter, createWriteStream(path, { flags: 'wx' }), signal ? { signal } : {})
  } catch (error) {
    await rm(path, { force: true })
    throw error
  }
  return { path, base, name }
}

function mostBytes(): number {
  return Number(process.env.RUNPOD_MAX_DOWNLOAD_BYTES) || defaultBytes
}

async function open(url: string, bounds: DownloadOptions): Promise<{ response: http.IncomingMessage; from: URL }> {
  let from = parse(url)
  for (let hops = 0; hops <= mostRedirects; hops += 1) {
    const response = await get(from, bounds)
    const { statusCode = 0, headers } = response
    if (statusCode >= 200 && statusCode < 300) return { response, from }
    response.destroy()
    const isRedirect = [301, 302, 303, 307, 308].includes(statusCode) && headers.location !== undefined
    const mayPass = statusCode >= 500 || statusCode === 408 || statusCode === 429
    if (!isRedirect) throw new (mayPass ? Error : FinalError)(`the server answered ${statusCode}`)
    from = parse(new URL(headers.location ?? '', from).href)
  }
  throw new FinalError(`it was redirected more than ${mostRedirects} times`)
}

function get(url: URL, { signal, timeoutMs = 30_000 }: DownloadOptions): Promise<http.IncomingMessage> {
  return new Promise((done, fail) => {
    const allowsAll = /^(?:1|true|yes)$/i.test(process.env.RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS ?? '')
    if (!allowsAll) requirePublicHost(url)
    const settings = {
      timeout: timeoutMs,
      agent: false,
      ...(signal ? { signal } : {}),
      ...(allowsAll ? {} : { lookup: publicLookup }),
    }
    const request = (url.protocol === 'https:' ? https : http).get(url, settings, done)
    request.on('timeout', () => request.destroy(new Error(`the server was silent for ${timeoutMs} ms`)))
    request.on('error', fail)
  })
}

function parse(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol === 'http:' || parsed?.protocol === 'https:') return parsed
  throw new FinalError('it is not an http or https address')
}

/** The name that the server gives, else that of the requested address or of the one that it redirects to. */
function responseName({ headers }: http.IncomingMessage, addresses: URL[]): string {
  const given = /filename="?([^";]*)/i.exec(headers['content-disposition'] ?? '')?.[1] ?? ''
  const names = [given, ...addresses.map(({ pathname }) => pathname)].map(text =>
    // A server that runs on Windows may send a path of that system.
    basename(text.trim().replaceAll('\\', '/')).slice(-255),
  )
  return names[0] || (names.find(name => fileExtension(name) !== '') ?? names[1] ?? '')
}

function fileExtension(name: string): string {
  const extension = extname(name)
  return /^\.\w{1,16}$/.test(extension) ? extension : ''
}

/** An address for messages: without its query, in which a presigned address has its signature. */
function shown(url: string): string {
  return String(url).split(/[?#]/)[0]?.slice(0, 256) ?? ''
}
