import type { Caller } from '../../core/accounts/permission.ts'
import { invalidRequest, toAppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import { batchView } from '../../core/jobs/batch-view.ts'
import { readJobListing } from '../../core/jobs/job-list.ts'
import { jobSummaryView } from '../../core/jobs/job-view.ts'
import type { CachedEndpoints } from '../../services/endpoints/known-endpoints.ts'
import type { EndpointSelection } from '../../services/jobs/account-jobs.ts'
import { mapConcurrently } from '../../services/map-concurrently.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText } from '../surface.ts'
import { addRoute, type OpsApp } from './route-access.ts'

/** Maximum number of endpoints that are looked up at the same time. */
const CONCURRENCY = 16

/** `/ops/jobs` and `/ops/batches`: those of all endpoints whose jobs the caller may read. */
export function addAccountJobRoutes(app: OpsApp, parts: ApiParts): void {
  const { clock } = parts.ports
  const { access, accountJobs } = parts
  addRoute(app, access, 'GET /ops/jobs', async ({ req }, caller) => {
    const listing = readJobListing(req.query())
    if ('failures' in listing) throw invalidRequest(listing.failures)
    const { items, nextCursor } = await accountJobs.jobs(caller.owner, await readable(parts, caller), listing)
    const nowMs = clock.now()
    const requests = items.map(job => ({ endpointId: job.endpointId, ...jobSummaryView(job, nowMs) }))
    return jsonText(JSON.stringify({ requests, pagination: { nextCursor, hasNextPage: nextCursor !== null } }))
  })
  addRoute(app, access, 'GET /ops/batches', async ({ req }, caller) => {
    const { limit, cursor } = req.query()
    const listing = readJobListing({ limit, cursor })
    if ('failures' in listing) throw invalidRequest(listing.failures)
    const { items, nextCursor } = await accountJobs.batches(caller.owner, await readable(parts, caller), listing.page)
    const pagination = JSON.stringify({ nextCursor, hasNextPage: nextCursor !== null })
    return jsonText(`{"batches":[${items.map(batchView).join(',')}],"pagination":${pagination}}`)
  })
}

/**
 * The endpoints whose jobs the caller may read; null for all of its account. An endpoint that its key names may have
 * been deleted.
 */
async function readable({ access, cachedEndpoints }: ApiParts, caller: Caller): Promise<EndpointSelection> {
  const named = access.requireSomeJobs(caller)
  if (named === null) return null
  const readableIds = await mapConcurrently(named, CONCURRENCY, id => ownOrNull(cachedEndpoints, caller, id))
  return readableIds.filter(id => id !== null)
}

async function ownOrNull(endpoints: CachedEndpoints, { owner }: Caller, id: EndpointId): Promise<EndpointId | null> {
  try {
    return (await endpoints.find(owner, id)).id
  } catch (error) {
    if (toAppError(error).code === 'not_found') return null
    throw error
  }
}
