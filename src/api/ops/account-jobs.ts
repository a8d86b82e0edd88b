import type { Caller } from '../../core/accounts/permission.ts'
import { invalidRequest, toAppError } from '../../core/errors.ts'
import type { EndpointId } from '../../core/ids.ts'
import { batchView } from '../../core/jobs/batch-view.ts'
import { readJobListing } from '../../core/jobs/job-list.ts'
import { jobSummaryView } from '../../core/jobs/job-view.ts'
import type { Clock } from '../../ports/clock.ts'
import type { Access } from '../../services/accounts/access.ts'
import type { CachedEndpoints } from '../../services/endpoints/known-endpoints.ts'
import type { AccountJobs, EndpointSelection } from '../../services/jobs/account-jobs.ts'
import { mapConcurrently } from '../../services/map-concurrently.ts'
import { jsonText } from '../surface.ts'
import { addRoute, type OpsApp } from './route-access.ts'

/** Dependencies of the routes of all jobs of an account. */
export interface AccountJobParts {
  readonly access: Access
  readonly accountJobs: AccountJobs
  readonly endpoints: CachedEndpoints
  readonly clock: Clock
}

/** Maximum number of endpoints that are looked up at the same time. */
const CONCURRENCY = 16

/** `/ops/jobs` and `/ops/batches`: those of all endpoints whose jobs the caller may read. */
export function addAccountJobRoutes(app: OpsApp, parts: AccountJobParts): void {
  const { access, accountJobs, clock } = parts
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
async function readable({ access, endpoints }: AccountJobParts, caller: Caller): Promise<EndpointSelection> {
  const named = access.requireSomeJobs(caller)
  if (named === null) return null
  const readableIds = await mapConcurrently(named, CONCURRENCY, id => ownOrNull(endpoints, caller, id))
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
