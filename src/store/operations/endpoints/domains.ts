import { domainTaken, type EndpointDomain } from '../../../core/endpoints/domain.ts'
import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import * as sql from '../../tables/endpoint-domains.ts'
import { type DomainRow, toDomain } from '../../tables/endpoint-domains.ts'
import { perform, query, queryOne, type Steps } from '../operation.ts'

/** Stores the domain of an endpoint, and frees its previous one. @throws AppError `conflict` when another endpoint has the domain */
export function* linkDomain({ id, owner, domain }: Pick<Endpoint, 'id' | 'owner' | 'domain'>): Steps<void> {
  yield* perform(sql.dropOtherDomains, [id, domain ?? ''])
  if (domain === null) return
  yield* perform(sql.addDomain, [domain, id, owner])
  const holder = yield* findDomain(domain)
  if (holder?.endpointId !== id) throw domainTaken(domain, owner, holder)
}

/** The endpoint and account of a domain; null without one. */
export function* findDomain(domain: string): Steps<EndpointDomain | null> {
  const row = yield* queryOne<DomainRow>(sql.findDomain, [domain])
  return row === null ? null : toDomain(row)
}

/** All domains of endpoints. */
export function* listDomains(): Steps<EndpointDomain[]> {
  return (yield* query<DomainRow>(sql.listDomains)).map(toDomain)
}
