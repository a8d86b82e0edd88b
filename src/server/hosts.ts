/**
 * The host names of this server. A foreign page whose host name points at this machine (DNS rebinding) calls the
 * server by that name, and the browser takes both for one origin; so unknown names get no response.
 */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { absoluteTarget } from '../core/request-head.ts'

/** The reason why a request is refused by its head, most often for the host that it names. */
export interface HostRefusal {
  readonly status: 400 | 403 | 421
  readonly error: string
}

/** Names that a server has. All are compared without case, port and a dot at the end. */
export interface ServerHosts {
  readonly names: readonly string[]
  /** Domains that are known with every name below them. */
  readonly domains: readonly string[]
  /**
   * True for a further name that is valid at this moment: a domain of an endpoint. By
   * default no further name is valid.
   */
  readonly also?: (name: string) => boolean
}

/** True for a name of the server itself. @param name in lower case, without a port and a dot at the end */
export function serverNames(known: Pick<ServerHosts, 'names' | 'domains'>): (name: string) => boolean {
  const names = new Set([...known.names, ...known.domains, ...MACHINE_IN_CONTAINERS, 'localhost'].map(plainHost))
  const ends = [...known.domains, 'localhost'].map(domain => `.${plainHost(domain)}`)
  return name => names.has(name) || ends.some(end => name.endsWith(end))
}

/** Names of the machine in containers. */
const MACHINE_IN_CONTAINERS = ['host.docker.internal', 'host.containers.internal']

/** A name or an address with a port, as in RFC 9110, 7.2; `_` is in names of services. */
const HOST = /^(?:\[[0-9a-f:.]+\]|[a-z0-9_](?:[a-z0-9_.-]{0,253}))(?::\d{0,5})?$/i

/**
 * Judges requests by the host that they name. One client names the same host again and again, so the latest is
 * remembered.
 * @param known besides loopback names, addresses as numbers, and names that containers have for their machine
 * @returns null for an accepted request, and for one without a host
 */
export function hostCheck(known: ServerHosts): (asked: Pick<IncomingMessage, 'url' | 'headers'>) => HostRefusal | null {
  const isOwn = serverNames(known)
  const { also = () => false } = known
  const judge = (host: string): HostRefusal | null => {
    if (!HOST.test(host) || !URL.canParse(`http://${host}/`)) return MALFORMED
    const name = plainHost(host)
    if (isOwn(name) || isIP(name.replace(/^\[|\]$/g, '')) !== 0) return null
    return { status: 421, error: unknownHostText(name) }
  }
  let latest: { readonly host: string; readonly refusal: HostRefusal | null } = { host: 'localhost', refusal: null }
  return asked => {
    const host = namedHost(asked)
    if (host === null) return null
    if (host !== latest.host) latest = { host, refusal: judge(host) }
    // Domains of endpoints change.
    return latest.refusal?.status === 421 && also(plainHost(host)) ? null : latest.refusal
  }
}

/** The host that a request names, unchanged; null without one. */
export function namedHost({ url = '/', headers }: Pick<IncomingMessage, 'url' | 'headers'>): string | null {
  // The authority of an absolute target is the host, and the header does not count (RFC 9112, 3.2.2).
  return absoluteTarget(url)?.host ?? headers.host ?? null
}

const MALFORMED: HostRefusal = { status: 400, error: 'the Host of the request is not a host name' }

/** Refusal of requests that the API cannot answer without a host and a path. */
export const NO_TARGET: HostRefusal = { status: 400, error: 'the request names no host, or no path' }

function unknownHostText(name: string): string {
  return `this server does not accept the name ${name}; its operator can allow it with --allowed-host ${name}, which may be repeated`
}

/** A host without case, port and a dot at its end. */
export function plainHost(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
}
