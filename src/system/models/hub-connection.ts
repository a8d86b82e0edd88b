/**
 * HTTP to a hub and to the targets of its redirects. A token goes to the hub alone: the targets have addresses that
 * are signed. HTTP/1.1 on purpose: the windows of HTTP/2 in Node are too small for large files over long ways.
 */
import {
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { ModelError } from '../../core/models/model-problem.ts'

/** A call to the hub. */
export interface HubCall {
  readonly method?: 'GET' | 'HEAD'
  readonly headers?: Readonly<Record<string, string>>
  readonly token: string | null
  readonly signal: AbortSignal
  /** True to follow redirects to other hosts; the redirect is the response otherwise. */
  readonly leaves: boolean
}

/** A response whose body is still to be read, or destroyed. */
export interface HubResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: IncomingMessage
  /** Host of the response. */
  readonly host: string
}

const MAX_REDIRECTS = 5
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/** Connections to one hub, which are reused for a while. */
export class HubConnection {
  /** Address of the hub, without a slash at its end. */
  readonly hub: string
  readonly #origin: string
  readonly #stallMs
  readonly #agents: { readonly http: HttpAgent; readonly https: HttpsAgent }

  constructor({
    hub,
    stallMs,
    env,
  }: {
    /** Address of the hub, without a slash at its end. */
    readonly hub: string
    /** Longest silence of the other side. */
    readonly stallMs: number
    /** Environment with HTTPS_PROXY and similar variables. */
    readonly env: Readonly<Record<string, string | undefined>>
  }) {
    this.hub = hub
    this.#origin = new URL(hub).origin
    this.#stallMs = stallMs
    const options = { keepAlive: true, timeout: stallMs, proxyEnv: env as NodeJS.ProcessEnv }
    this.#agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }
  }

  /** The name of the hub's host, for people. */
  get host(): string {
    return new URL(this.hub).host
  }

  /** @throws ModelError without a response */
  async call(address: string, call: HubCall): Promise<HubResponse> {
    let url = new URL(address)
    for (let redirects = 0; ; redirects += 1) {
      const response = await this.#send(url, call)
      const { location } = response.headers
      if (!REDIRECTS.has(response.status) || location === undefined) return response
      const next = URL.canParse(location, url) ? new URL(location, url) : null
      if (next !== null && next.origin !== this.#origin && !call.leaves) return response
      response.body.destroy()
      if (next === null || !isAllowed(url, next) || redirects === MAX_REDIRECTS)
        throw new ModelError({ kind: 'answer_unreadable', host: url.host, said: 'it redirects to nowhere' })
      url = next
    }
  }

  /** Closes the kept connections. */
  close(): void {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }

  #send(url: URL, { method = 'GET', headers, token, signal }: HubCall): Promise<HubResponse> {
    const { promise, resolve, reject } = Promise.withResolvers<HubResponse>()
    const isSecure = url.protocol === 'https:'
    const options: RequestOptions = {
      method,
      agent: isSecure ? this.#agents.https : this.#agents.http,
      signal,
      headers: {
        'user-agent': 'runyard',
        'accept-encoding': 'identity',
        ...headers,
        ...(token !== null && url.origin === this.#origin ? { authorization: `Bearer ${token}` } : {}),
      },
    }
    const request = (isSecure ? requestHttps : requestHttp)(url, options)
    // Holds for the whole exchange, the read of the body included.
    request.setTimeout(this.#stallMs, () =>
      request.destroy(new ModelError({ kind: 'download_stalled', host: url.host })),
    )
    request.on('error', error => reject(modelErrorFrom(error, url.host, signal)))
    request.on('response', body =>
      resolve({ status: body.statusCode ?? 0, headers: body.headers, body, host: url.host }),
    )
    request.end()
    return promise
  }
}

/** The failure of a call or of the read of its body, as a problem of the model. */
export function modelErrorFrom(thrown: unknown, host: string, signal: AbortSignal): ModelError {
  if (thrown instanceof ModelError) return thrown
  if (signal.aborted) return new ModelError({ kind: 'stopped' }, thrown)
  const errors = thrown instanceof AggregateError ? thrown.errors : [thrown]
  const { code, message } = (errors[0] ?? thrown) as NodeJS.ErrnoException
  return new ModelError({ kind: 'hub_unreachable', host, said: code ?? message }, thrown)
}

/** A secure connection is never continued as a plain one. */
function isAllowed(source: URL, target: URL): boolean {
  return target.protocol === 'https:' || (target.protocol === 'http:' && source.protocol === 'http:')
}
