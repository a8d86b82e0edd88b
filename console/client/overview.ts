/** All endpoints of the account at a glance. */
import { api } from './api.ts'
import type { EndpointOverview } from './api-types.d.ts'
import { type Resource, useResource } from './resource.ts'
import { anyEndpointTopic } from './topics.ts'

/** Endpoints of one call, and the maximum number of calls. */
const PAGE = { endpoints: 1_000, calls: 10 }
/** Interval of reads: rates change without an event, and events of busy endpoints are merged. */
const EVERY_MS = 15_000

/** The present endpoints; at most 10,000. @param isNeeded false to read nothing */
export function useOverview(isNeeded = true): Resource<readonly EndpointOverview[]> {
  return useResource(
    isNeeded ? 'overview' : null,
    async signal => {
      const rows: EndpointOverview[] = []
      let cursor: string | undefined
      for (let call = 0; call < PAGE.calls; call += 1) {
        const { endpoints, pagination } = await api('GET /v2/overview', {
          query: { limit: PAGE.endpoints, cursor },
          signal,
        })
        rows.push(...endpoints)
        if (pagination.nextCursor === null) break
        cursor = pagination.nextCursor
      }
      return rows
    },
    { on: anyEndpointTopic, everyMs: EVERY_MS },
  )
}
