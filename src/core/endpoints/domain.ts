/** The domain that an endpoint has for itself. */
import { AppError } from '../errors.ts'
import type { EndpointId, OwnerId } from '../ids.ts'

/** A domain, and who has it. */
export interface EndpointDomain {
  readonly domain: string
  readonly endpointId: EndpointId
  readonly owner: OwnerId
}

/** Limit of characters of a domain (RFC 1035, 2.3.4). */
const MAX_DOMAIN = 253
/** Letters, digits and hyphens within: what names of hosts have, and certificates. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
/** What would be more than a name to a reader of URLs. */
const NO_NAME = /[\s/\\?#@:%[\]*]/

/** Whether a domain is one of the server's own names, or below one that is the server's. @param name in lower case, without a dot at the end */
export type IsServerName = (name: string) => boolean

/**
 * A domain as it is kept: in lower case, in ASCII (punycode), without a dot at its end. What is no domain stays as it is, and
 * {@link domainProblem} says why. Null, and an empty text, are none.
 */
export function tidiedDomain(text: string | null): string | null {
  const trimmed = text?.trim() ?? ''
  if (trimmed === '') return null
  if (trimmed.length > MAX_DOMAIN || NO_NAME.test(trimmed)) return trimmed
  return (URL.parse(`http://${trimmed}/`)?.hostname ?? trimmed).replace(/\.$/, '')
}

/** Why an endpoint cannot have a domain, as a phrase behind it; null when it can. @param domain as {@link tidiedDomain} has it */
export function domainProblem(domain: string, isServerName: IsServerName): string | null {
  const labels = domain.split('.')
  if (/^\d+(?:\.\d+){3}$/.test(domain) || domain.startsWith('[')) return `is an address; ${FORM}`
  const isName = domain.length <= MAX_DOMAIN && labels.every(label => LABEL.test(label))
  // A name that ends like a number is an address to clients.
  if (!isName || URL.parse(`http://${domain}/`)?.hostname !== domain) return `is no domain; ${FORM}`
  if (domain === 'localhost' || domain.endsWith('.localhost')) {
    return `is of loopback, where an endpoint has its name already (<endpoint>.localhost); ${FORM}`
  }
  if (isServerName(domain)) return 'is a name of this server or of its endpoints (--lb-domain)'
  return labels.length < 2 ? `has no dot; ${FORM}` : null
}

const FORM = 'give a name such as chat.example.org'

/** The error for a domain that another endpoint has, which is named to its own account alone. @param holder who has it, as far as that is known */
export function domainTaken(domain: string, asking: OwnerId, holder: EndpointDomain | null): AppError {
  const whose =
    holder?.owner === asking ? `endpoint ${holder.endpointId} has it` : 'another endpoint of this server has it'
  return new AppError('conflict', `the domain ${domain} is taken: ${whose}`)
}
