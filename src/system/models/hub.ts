/** API of a hub of models: revisions, lists of files, and the files. */
import type { IncomingMessage } from 'node:http'
import { type ModelFile, ModelFileList } from '../../core/models/model-files.ts'
import { ModelError, type ModelProblem } from '../../core/models/model-problem.ts'
import { type HubConnection, type HubResponse, modelErrorFrom } from './hub-connection.ts'

/** A model as its hub describes it. */
export interface HubModel {
  /** The commit that the revision means. */
  readonly commit: string
  /** True if not everyone may read it. */
  readonly isRestricted: boolean
}

/** The body of a file, or of its rest. */
export interface OpenedFile {
  readonly body: IncomingMessage
  readonly host: string
  /** Its position in the file: 0 from a hub that ignores the requested range. */
  readonly offset: number
}

/** Query for a model by a user. */
export interface HubQuestion {
  /** `owner/name`. */
  readonly name: string
  readonly revision: string
  readonly token: string | null
  readonly signal: AbortSignal
}

/** Limit of descriptions and lists. */
const MAX_JSON_BYTES = 16 * 1024 * 1024
const MAX_PAGES = 500

/** The API of a hub. All methods throw ModelError with the reason when they get no proper answer. */
export class Hub {
  readonly #connection

  constructor(connection: HubConnection) {
    this.#connection = connection
  }

  /** The commit of a revision, and the restriction of the model. */
  async model(question: HubQuestion): Promise<HubModel> {
    const { name, revision } = question
    const { modelInfo } = await import('@huggingface/hub')
    const at = { hubUrl: this.#connection.hub, fetch: this.#fetch(question) }
    const info = await read(this.#connection.host, () =>
      modelInfo({ name, revision, additionalFields: ['sha'], ...at }),
    )
    const { sha, gated, private: isPrivate } = info
    if (typeof sha !== 'string' || !/^[0-9a-f]{40}$/.test(sha)) throw this.#unreadable('no commit of the revision')
    return { commit: sha, isRestricted: Boolean(gated) || Boolean(isPrivate) }
  }

  /** The files of a commit. */
  async files(question: HubQuestion): Promise<ModelFile[]> {
    const { name, revision } = question
    const { listFiles } = await import('@huggingface/hub')
    const repo = { type: 'model' as const, name }
    const list = new ModelFileList()
    await read(this.#connection.host, async () => {
      const request = { repo, revision, recursive: true, hubUrl: this.#connection.hub, fetch: this.#fetch(question) }
      for await (const entry of listFiles(request)) list.add(entry)
    })
    return list.files
  }

  /** @throws ModelError when the hub refuses this file to the token */
  async checkAccess(question: HubQuestion, path: string): Promise<void> {
    const { token, signal } = question
    const address = this.#fileAddress(question, path)
    const response = await this.#connection.call(address, { method: 'HEAD', token, signal, leaves: false })
    response.body.destroy()
    const { status } = response
    // A redirect goes to the file itself.
    if (status >= 400) throw refusal(response, question)
  }

  /** Opens a file. @param offset bytes of it that are on disk */
  async open(question: HubQuestion, path: string, offset: number): Promise<OpenedFile> {
    const { token, signal } = question
    const headers: Record<string, string> = offset === 0 ? {} : { range: `bytes=${offset}-` }
    const response = await this.#connection.call(this.#fileAddress(question, path), {
      headers,
      token,
      signal,
      leaves: true,
    })
    const { status, body, host } = response
    if (status === 200) return { body, host, offset: 0 }
    const [, first] = /^bytes (\d+)-/.exec(String(response.headers['content-range'] ?? '')) ?? []
    if (status === 206 && Number(first) === offset) return { body, host, offset }
    body.destroy()
    if (status === 206 || status === 416)
      throw new ModelError({
        kind: 'answer_unreadable',
        host,
        said: 'it sends another part of a file than was asked for',
      })
    throw refusal(response, question)
  }

  #fileAddress({ name, revision }: HubQuestion, path: string): string {
    const parts = path.split('/').map(encodeURIComponent).join('/')
    return `${this.#connection.hub}/${name}/resolve/${encodeURIComponent(revision)}/${parts}`
  }

  /** The package has the paths and fields; tokens, redirects, limits and refusals are handled here. */
  #fetch(question: HubQuestion): typeof fetch {
    const { token, signal } = question
    let calls = 0
    return async (input, init) => {
      calls += 1
      if (calls > MAX_PAGES) throw this.#unreadable(`its list has more than ${MAX_PAGES} pages`)
      const accept = new Headers(init?.headers).get('accept') ?? 'application/json'
      const url = input instanceof Request ? input.url : String(input)
      const response = await this.#connection.call(url, { headers: { accept }, token, signal, leaves: true })
      if (response.status !== 200) {
        response.body.destroy()
        throw refusal(response, question)
      }
      const { link } = response.headers
      const headers = { 'content-type': 'application/json', ...(link === undefined ? {} : { link: String(link) }) }
      return new Response(await readText(response, signal), { headers })
    }
  }

  #unreadable(problem: string): ModelError {
    return new ModelError({ kind: 'answer_unreadable', host: this.#connection.host, said: problem })
  }
}

/** Calls the package, whose errors are about malformed responses. */
async function read<T>(host: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (thrown) {
    if (thrown instanceof ModelError) throw thrown
    const problem = thrown instanceof Error ? thrown.message.slice(0, 200) : 'it cannot be read'
    throw new ModelError({ kind: 'answer_unreadable', host, said: problem }, thrown)
  }
}

async function readText({ body, host }: HubResponse, signal: AbortSignal): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      bytes += part.length
      if (bytes > MAX_JSON_BYTES)
        throw new ModelError({ kind: 'answer_unreadable', host, said: 'its answer is too long' })
      parts.push(part)
    }
  } catch (thrown) {
    throw modelErrorFrom(thrown, host, signal)
  }
  return Buffer.concat(parts).toString('utf8')
}

/** Reason of a refusal by the hub, or by a host of its redirects. */
function refusal({ status, headers, host }: HubResponse, { revision, token }: HubQuestion): ModelError {
  const code = headers['x-error-code']
  return new ModelError(problem())

  function problem(): ModelProblem {
    if (status === 404 || (token !== null && code === 'RepoNotFound')) return { kind: 'not_found', revision }
    if (status !== 401 && status !== 403) return { kind: 'hub_failed', host, status }
    if (token === null) return { kind: 'token_missing' }
    return status === 403 || code === 'GatedRepo' ? { kind: 'access_refused' } : { kind: 'token_refused' }
  }
}
