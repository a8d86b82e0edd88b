/**
 * Certificates of the active server that a standby server trusts: its own, or one that an authority known to Node
 * signed for the address of the active server or for a name in its own (docs/adr/0063-tls-by-itself.md).
 */
import { X509Certificate } from 'node:crypto'
import { Agent } from 'node:https'
import { checkServerIdentity, createSecureContext, getCACertificates, type PeerCertificate } from 'node:tls'
import type { ListenerTls } from './tls.ts'

/** Connections over TLS to the active server. */
export interface PeerAgents {
  /** For requests, whose connections are kept. */
  readonly kept: Agent
  /** For upgrades, which have a connection of their own. */
  readonly once: Agent
  /** Ends the connections that no request uses. */
  close(): void
}

/** @param tls the own certificate; null without one */
export function peerAgents(tls: ListenerTls | null): PeerAgents {
  let agents: { readonly kept: Agent; readonly once: Agent } | null = null
  const unfollow = tls?.watch(() => {
    agents?.kept.destroy()
    agents = null
  })
  // Created at the first use: reading all authorities takes a moment, and most servers pass nothing on.
  const current = () => {
    agents ??= agentsFor(tls?.current.cert ?? null)
    return agents
  }
  return {
    get kept() {
      return current().kept
    },
    get once() {
      return current().once
    },
    close() {
      unfollow?.()
      agents?.kept.destroy()
    },
  }
}

/** True if a connection failed because its certificate is not trusted. */
export function isDistrusted(cause: unknown): boolean {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  return /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)/.test(code)
}

function agentsFor(cert: string | null) {
  const certificate = cert === null ? null : new X509Certificate(cert)
  const ca = [...getCACertificates('default'), ...(cert === null ? [] : [cert])]
  // A partial chain, since an own certificate may have no authority.
  const secureContext = createSecureContext({ ca, minVersion: 'TLSv1.2', allowPartialTrustChain: true })
  const options = { secureContext, checkServerIdentity: identityCheck(certificate) }
  return { kept: new Agent({ ...options, keepAlive: true }), once: new Agent({ ...options, keepAlive: false }) }
}

/** @returns the check of a name, as of `tls.checkServerIdentity` */
function identityCheck(certificate: X509Certificate | null): typeof checkServerIdentity {
  const names = (certificate?.subjectAltName ?? '')
    .split(', ')
    .flatMap(entry => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? [])
  return (host: string, cert: PeerCertificate) => {
    if (certificate !== null && cert.fingerprint256 === certificate.fingerprint256) return undefined
    const problem = checkServerIdentity(host, cert)
    if (
      problem === undefined ||
      names.some(name => checkServerIdentity(name.replace(/^\*\./, 'any.'), cert) === undefined)
    )
      return undefined
    return problem
  }
}
