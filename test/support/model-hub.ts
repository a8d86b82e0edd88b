/**
 * A hub of models that speaks the API of Hugging Face as far as a cache needs it, with a second host for
 * large files. Real sockets.
 */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The content of a file: given, or so many bytes that are made as they are sent. */
export type HubContent = string | { readonly bytes: number; readonly seed: number }

/** A model of the hub. */
export interface HubModelFiles {
  readonly files: Readonly<Record<string, HubContent>>
  /** Tokens that may read it; everybody when left out. */
  readonly tokens?: readonly string[]
  /** True if its description is public, as that of gated models; private unless given. */
  readonly isGated?: boolean
}

/** A request that came, to the hub or to the host of large files. */
export interface HubRequest {
  readonly to: 'hub' | 'files'
  readonly method: string
  readonly path: string
  readonly range: string | null
  readonly token: string | null
}

interface Revision {
  readonly commit: string
  readonly model: HubModelFiles
  readonly files: ReadonlyMap<
    string,
    { content: HubContent; bytes: number; sha256: string; git: string; large: boolean }
  >
}

/** Files from this size on are stored apart, as with git LFS. */
const LARGE_BYTES = 1_000
const BLOCK = 1024 * 1024

/** A hub that runs. */
export class ModelHub {
  readonly requests: HubRequest[] = []
  /** Faults of the hub; all off by default. */
  readonly faults = {
    ignoresRanges: false,
    /** Ends the next responses of large files after so many bytes. */
    cuts: [] as number[],
    /** Statuses of the next responses. */
    statuses: [] as number[],
    /** True to send other bytes in place of a large file. */
    wrongContent: false,
    /** Names in lists that no file should have. */
    oddNames: [] as string[],
    /** Waits before each part of a large file; null to send at once. */
    slowly: null as (() => Promise<void>) | null,
  }
  pageSize = 100
  readonly #revisions = new Map<string, Revision>()
  readonly #branches = new Map<string, string>()
  readonly #hub: Server
  readonly #files: Server

  constructor() {
    this.#hub = createServer((request, response) => this.#answer('hub', request, response))
    this.#files = createServer((request, response) => this.#answer('files', request, response))
  }

  /** Starts one for a test. */
  static async open(context: { readonly after: (action: () => void) => void }): Promise<ModelHub> {
    const hub = new ModelHub()
    for (const server of [hub.#hub, hub.#files])
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    context.after(() => hub.close())
    return hub
  }

  close(): void {
    for (const server of [this.#hub, this.#files]) {
      server.close()
      server.closeAllConnections()
    }
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`
  }

  /** Sets what a branch of a model has. @returns the commit */
  push(name: string, model: HubModelFiles, branch = 'main'): string {
    const files = new Map(
      Object.entries(model.files).map(([path, content]) => {
        const bytes = typeof content === 'string' ? Buffer.byteLength(content) : content.bytes
        const [sha256, git] = contentHashes(content, bytes)
        return [path, { content, bytes, sha256, git, large: bytes >= LARGE_BYTES }] as const
      }),
    )
    const commit = createHash('sha1')
      .update(JSON.stringify([name, [...files]]))
      .digest('hex')
    this.#revisions.set(`${name}@${commit}`, { commit, model, files })
    this.#branches.set(`${name}@${branch}`, commit)
    return commit
  }

  /** Requests for large files. */
  fileRequests(): HubRequest[] {
    return this.requests.filter(({ to }) => to === 'files')
  }

  async #answer(to: 'hub' | 'files', request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = request
    const url = new URL(request.url ?? '', this.url)
    const token = headers.authorization?.replace(/^Bearer /, '') ?? null
    const path = decodeURIComponent(url.pathname)
    this.requests.push({ to, method, path, range: headers.range ?? null, token })
    const status = this.faults.statuses.shift()
    if (status !== undefined) return fail(response, status)
    if (to === 'files') return this.#sendLarge(url, request, response)
    const [, name = '', revision = '', page = 0] =
      /^\/api\/models\/([^/]+\/[^/]+)\/(?:revision|tree)\/(.+)$/.exec(path) ??
      /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/.+$/.exec(path) ??
      []
    const entry = this.#revisions.get(`${name}@${this.#branches.get(`${name}@${revision}`) ?? revision}`)
    if (entry === undefined) return fail(response, token === null ? 401 : 404, 'RepoNotFound')
    const { tokens, isGated = false } = entry.model
    const isAllowed = tokens === undefined || (token !== null && tokens.includes(token))
    const isDescription = path.startsWith('/api/')
    if (!isAllowed && !(isGated && isDescription))
      return fail(response, isGated && token !== null ? 403 : 401, isGated ? 'GatedRepo' : 'RepoNotFound')
    if (path.startsWith(`/api/models/${name}/revision/`)) {
      const gated = isGated ? 'auto' : false
      return sendJson(response, {
        _id: '1',
        id: name,
        sha: entry.commit,
        gated,
        private: tokens !== undefined && !isGated,
      })
    }
    if (isDescription) return this.#sendTree(entry, url, Number(url.searchParams.get('cursor') ?? page), response)
    return this.#sendFile(entry, name, path.slice(`/${name}/resolve/${revision}/`.length), request, response)
  }

  #sendTree({ files }: Revision, url: URL, from: number, response: ServerResponse): void {
    const folders = new Set(
      [...files.keys()].flatMap(path => (path.includes('/') ? [path.slice(0, path.lastIndexOf('/'))] : [])),
    )
    const odd = this.faults.oddNames.map(path => ({ type: 'file', path, size: 1, oid: '0'.repeat(40) }))
    const listed = [...files].map(([path, { bytes, git, sha256, large }]) => ({
      type: 'file',
      path,
      size: bytes,
      oid: git,
      ...(large ? { lfs: { oid: sha256, size: bytes, pointerSize: 130 } } : {}),
    }))
    const all = [
      ...[...folders].map(path => ({ type: 'directory', path, size: 0, oid: '0'.repeat(40) })),
      ...listed,
      ...odd,
    ]
    const next = from + this.pageSize
    if (next < all.length) {
      url.searchParams.set('cursor', String(next))
      response.setHeader('link', `<${url}>; rel="next"`)
    }
    sendJson(response, all.slice(from, next))
  }

  async #sendFile(
    { commit, files }: Revision,
    name: string,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const file = files.get(path)
    if (file === undefined) return fail(response, 404, 'EntryNotFound')
    response.setHeader('x-repo-commit', commit)
    response.setHeader('etag', `"${file.git}"`)
    if (!file.large) {
      response.setHeader('content-length', file.bytes)
      response.end(request.method === 'HEAD' ? '' : file.content)
      return
    }
    response.setHeader('x-linked-etag', `"${file.sha256}"`)
    response.setHeader('x-linked-size', file.bytes)
    const { port } = this.#files.address() as AddressInfo
    // Another name of the same machine, so another host.
    const location = `http://localhost:${port}/${name}/${commit}/${path}`
    response.writeHead(302, { location }).end()
  }

  async #sendLarge({ pathname }: URL, { method, headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, owner, short, commit, ...rest] = decodeURIComponent(pathname).split('/')
    const file = this.#revisions.get(`${owner}/${short}@${commit}`)?.files.get(rest.join('/'))
    if (file === undefined) return fail(response, 404)
    const [, from] = this.faults.ignoresRanges ? [] : (/^bytes=(\d+)-$/.exec(headers.range ?? '') ?? [])
    const offset = Number(from ?? 0)
    if (offset >= file.bytes && from !== undefined) return fail(response, 416)
    if (from !== undefined) response.setHeader('content-range', `bytes ${offset}-${file.bytes - 1}/${file.bytes}`)
    response.writeHead(from === undefined ? 200 : 206, { 'content-length': file.bytes - offset })
    if (method === 'HEAD') return void response.end()
    const cut = this.faults.cuts.shift() ?? Number.POSITIVE_INFINITY
    let sentBytes = 0
    for (const part of contentParts(file.content, file.bytes, offset)) {
      await this.faults.slowly?.()
      const wrong = this.faults.wrongContent ? Buffer.alloc(part.length, 'x') : part
      const allowed = wrong.subarray(0, Math.max(0, cut - sentBytes))
      sentBytes += allowed.length
      if (response.destroyed) return
      if (!response.write(allowed)) await drained(response)
      if (sentBytes >= cut) return void setImmediate(() => response.destroy())
    }
    response.end()
  }
}

/** The content from an offset on, in parts. */
function* contentParts(content: HubContent, bytes: number, offset: number): Generator<Buffer> {
  if (typeof content === 'string') return yield Buffer.from(content).subarray(offset)
  const block = Buffer.alloc(Math.min(BLOCK, bytes))
  for (let at = 0; at < block.length; at += 4)
    block.writeUInt32LE((at * 2_654_435_761 + content.seed) >>> 0, Math.min(at, block.length - 4))
  for (let at = offset - (offset % BLOCK); at < bytes; at += BLOCK) {
    block.writeUInt32LE(at / BLOCK, 0)
    yield Buffer.from(block.subarray(Math.max(0, offset - at), Math.min(BLOCK, bytes - at)))
  }
}

function contentHashes(content: HubContent, bytes: number): [sha256: string, git: string] {
  const sha256 = createHash('sha256')
  const git = createHash('sha1').update(`blob ${bytes}\0`)
  for (const part of contentParts(content, bytes, 0)) {
    sha256.update(part)
    if (bytes < LARGE_BYTES) git.update(part)
  }
  return [sha256.digest('hex'), git.digest('hex')]
}

/** Resolves when more can be written, or when the reader has gone. */
async function drained(response: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  response.once('drain', resolve).once('close', resolve)
  await promise
  response.off('drain', resolve).off('close', resolve)
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(value))
}

function fail(response: ServerResponse, status: number, code?: string): void {
  if (code !== undefined) response.setHeader('x-error-code', code)
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: `status ${status}` }))
}
