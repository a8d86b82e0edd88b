/** Statements of the domains of endpoints. */
import type { EndpointDomain } from '../../core/endpoints/domain.ts'
import type { EndpointId, OwnerId } from '../../core/ids.ts'

/** A row of `endpoint_domains`. */
export interface DomainRow {
  readonly domain: string
  readonly endpoint_id: EndpointId
  readonly owner: OwnerId
}

/** $1 endpoint, $2 the domain that it keeps. Its other domains become free. */
export const dropOtherDomains = 'DELETE FROM endpoint_domains WHERE endpoint_id = $1 AND domain <> $2'

/** $1 domain, $2 endpoint, $3 owner. Nothing when another endpoint has it. */
export const addDomain = `
  INSERT INTO endpoint_domains (domain, endpoint_id, owner) VALUES ($1, $2, $3) ON CONFLICT (domain) DO NOTHING`

/** $1 domain. */
export const findDomain = 'SELECT domain, endpoint_id, owner FROM endpoint_domains WHERE domain = $1'

/** The domains of all accounts. */
export const listDomains = 'SELECT domain, endpoint_id, owner FROM endpoint_domains ORDER BY domain'

/** A row as a domain with its endpoint. */
export function toDomain({ domain, endpoint_id, owner }: DomainRow): EndpointDomain {
  return { domain, endpointId: endpoint_id, owner }
}
