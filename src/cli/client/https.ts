/** Requests over TLS that trust a certificate of the user: `fetch` trusts the authorities of Node alone. */
import { X509Certificate } from 'node:crypto'
import { Agent, request } from 'node:https'
import { Readable } from 'node:stream'
import { checkServerIdentity, createSecureContext, getCACertificates } from 'node:tls'
import { textBefore } from '../../core/text-parts.ts'

/** The certificates that a server may show. */
export interface Trust {
  /** Certificates in PEM, besides the authorities that Node knows. */
  readonly extra: string | null
  /**
   * The only certificate, in PEM, at whatever address: a server on this machine has said that it is its own. Null
   * where others will do.
   */
  readonly pinned: string | null
}

/** A request that is sent at once. */
export interface SecureRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/** Statuses whose responses have no body. */
const BODILESS = new Set([204, 205, 304])

/** One for each trust: commands that ask again and again keep their connection. */
const agents = new Map<string, Agent>()

/**
 * Sends a request. Follows no redirect.
 * @throws the system's error, or that of TLS
 */
export function requestSecurely(url: string, { body, ...options }: SecureRequest, trust: Trust): Promise<Response> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...options, agent: agentFor(trust) }, answer => {
      const { statusCode: status = 502, rawHeaders } = answer
      const headers = new Headers()
      for (let at = 0; at + 1 < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!)
      const content = BODILESS.has(status) ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>)
      if (content === null) answer.resume()
      resolve(new Response(content, { status, headers }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

function agentFor({ extra, pinned }: Trust): Agent {
  const key = pinned ?? extra ?? ''
  const cached = agents.get(key)
  if (cached !== undefined) return cached
  const ca = pinned === null ? [...getCACertificates('default'), ...(extra === null ? [] : [extra])] : [pinned]
  // A partial chain: who trusts the certificate of a server need not have that of its authority.
  const secureContext = createSecureContext({ ca, minVersion: 'TLSv1.2', allowPartialTrustChain: true })
  const only = pinned === null ? null : new X509Certificate(pinned).fingerprint256
  const agent = new Agent({
    keepAlive: true,
    secureContext,
    checkServerIdentity: (host, cert) => {
      if (only === null) return checkServerIdentity(host, cert)
      return cert.fingerprint256 === only ? undefined : new Error('it shows another certificate than it published')
    },
  })
  agents.set(key, agent)
  return agent
}

/** The reason against a certificate and a remedy, as the rest of a sentence; null for another error. */
export function trustProblem({ code = '', message }: NodeJS.ErrnoException): string | null {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'is for other names; give one of them in --url'
  if (code === 'CERT_HAS_EXPIRED') return 'has expired; its files must be renewed'
  if (!UNTRUSTED.test(code)) return null
  // Node adds advice of its own, behind a semicolon.
  return `is not trusted (${textBefore(message, ';')}); give it, or the one of its authority, with --ca-file or RUNYARD_CA_FILE`
}

const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|CERT_|_CERT/
