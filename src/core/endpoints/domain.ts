/** The own domain of an endpoint. */
import { AppError } from '../errors.ts'
import type { EndpointId, OwnerId } from '../ids.ts'

/** A domain with its endpoint and account. */
export interface EndpointDomain {
  readonly domain: string
  readonly endpointId: EndpointId
  readonly owner: OwnerId
}

/** Limit of characters of a domain (RFC 1035, 2.3.4). */
const MAX_DOMAIN = 253
/** Letters and digits, with hyphens within: the labels of host names and of certificates. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** Characters that would end the host in a URL. */
const NO_NAME = /[\s/\\?#@:%[\]*]/

/**
 * True for a name of the server, and for a domain below one that belongs to the server.
 * @param name in lower case, without a dot at the end
 */
export type IsServerName = (name: string) => boolean

/**
 * A domain in its stored form: in lower case, in ASCII (punycode), without a dot at its end. A text that is not a
 * domain stays as it is, and {@link domainProblem} gives the reason. Null for null and for an empty text.
 */
export function tidiedDomain(text: string | null): string | null {
  const trimmed = text?.trim() ?? ''
  if (trimmed === '') return null
  if (trimmed.length > MAX_DOMAIN || NO_NAME.test(trimmed)) return trimmed
  return (URL.parse(`http://${trimmed}/`)?.hostname ?? trimmed).replace(/\.$/, '')
}

/**
 * The reason why an endpoint cannot have a domain, as a phrase that follows its name; null when it can.
 * @param domain as {@link tidiedDomain} returns it
 */
export function domainProblem(domain: string, isServerName: IsServerName): string | null {
  const labels = domain.split('.')
  if (/^\d+(?:\.\d+){3}$/.test(domain) || domain.startsWith('[')) return `is an address; ${FORM}`
  const isName = domain.length <= MAX_DOMAIN && labels.every(label => LABEL.test(label))
  // Clients parse a name whose last label is a number as an address.
  if (!isName || URL.parse(`http://${domain}/`)?.hostname !== domain) return `is not a domain; ${FORM}`
  if (domain === 'localhost' || domain.endsWith('.localhost')) {
    return `is of loopback, where an endpoint has its name already (<endpoint>.localhost); ${FORM}`
  }
  if (isServerName(domain)) return 'is a name of this server or of its endpoints (--lb-domain)'
  return labels.length < 2 ? `has no dot; ${FORM}` : null
}

const FORM = 'give a name such as chat.example.org'

/**
 * The error for a domain of another endpoint, whose id only its own account gets.
 * @param holder the endpoint; null if it is unknown
 */
export function domainTaken(domain: string, asking: OwnerId, holder: EndpointDomain | null): AppError {
  const whose =
    holder?.owner === asking ? `endpoint ${holder.endpointId} has it` : 'another endpoint of this server has it'
  return new AppError('conflict', `the domain ${domain} is taken: ${whose}`)
}
