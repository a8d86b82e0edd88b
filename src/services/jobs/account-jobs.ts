import type { EndpointId, OwnerId } from '../../core/ids.ts'
import type { Batch } from '../../core/jobs/batch.ts'
import { type JobListing, MAX_JOBS_READ } from '../../core/jobs/job-list.ts'
import type { JobRecordRules, JobSummary } from '../../core/jobs/job-record.ts'
import type { DeliveryState, WebhookDelivery } from '../../core/jobs/webhook.ts'
import {
  joinedPage,
  type ListPart,
  type Page,
  type PagePosition,
  type PageRequest,
  readSlice,
  type Slice,
} from '../../core/pages.ts'
import type { Ports } from '../../ports/ports.ts'
import type { DeliveryListRequest } from '../../ports/store/store.ts'
import { mapConcurrently } from '../map-concurrently.ts'
import { MAX_DELIVERIES, MAX_DELIVERIES_READ } from './webhooks.ts'

/** Endpoints of an account: some of them, or null for all. */
export type EndpointSelection = readonly EndpointId[] | null

/** Maximum number of endpoints that are read at the same time. */
const CONCURRENCY = 16
/**
 * Approximate maximum of items that all endpoints together give to one page; a key for many endpoints gets short
 * pages.
 */
const MAX_JOINED = 20_000
/** Minimum of jobs that one request reads of each endpoint, and approximate maximum of all endpoints together. */
const READ = { least: 20, together: 4 * MAX_JOBS_READ }

/** Maximum of deliveries that one of several endpoints gives to a page: the tries of each are read. */
const DELIVERIES_OF_ONE = 20

/** Jobs, batches and deliveries of webhooks of all endpoints of an account, newest first, page by page. */
export class AccountJobs {
  readonly #ports
  readonly #withRecords: boolean

  constructor(ports: Ports, { keptMs }: JobRecordRules) {
    this.#ports = ports
    this.#withRecords = keptMs > 0
  }

  /**
   * Jobs, also those whose result is gone. A page may be shorter than the limit, or empty, without being the last.
   * @param endpoints those of this account that the caller may read
   * @throws AppError `invalid` for a cursor that no page had
   */
  async jobs(owner: OwnerId, endpoints: EndpointSelection, { filter, page }: JobListing): Promise<Page<JobSummary>> {
    const { store, clock } = this.#ports
    const slice = readSlice(page)
    const request = { filter, nowMs: clock.now(), withRecords: this.#withRecords }
    const partOf = async (limit: number, maxRead: number, endpointId: EndpointId | null) => {
      const partRequest = { ...request, maxRead, slice: { ...slice, limit } }
      const { jobs, readUntil } = await (endpointId === null
        ? store.jobRecords.listOfOwner({ ...partRequest, owner })
        : store.jobRecords.list({ ...partRequest, endpointId }))
      return { items: jobs, readUntil: partEnd(jobs, limit, readUntil) }
    }
    if (endpoints === null) return joinedPage([await partOf(slice.limit, MAX_JOBS_READ, null)], slice.limit - 1)
    const share = itemsPerEndpoint(slice, endpoints)
    const maxRead = Math.max(READ.least, Math.floor(READ.together / Math.max(1, endpoints.length)))
    const parts = await mapConcurrently(endpoints, CONCURRENCY, id =>
      partOf(share, Math.min(maxRead, MAX_JOBS_READ), id),
    )
    return joinedPage(parts, slice.limit - 1)
  }

  /**
   * Batches that still exist, drafts among them.
   * @param endpoints as of {@link jobs}
   * @throws AppError `invalid` for a cursor that no page had
   */
  async batches(owner: OwnerId, endpoints: EndpointSelection, page: PageRequest): Promise<Page<Batch>> {
    const { store, clock } = this.#ports
    const slice = readSlice(page)
    const nowMs = clock.now()
    const partOf = async (
      limit: number,
      of: { owner: OwnerId } | { endpointId: EndpointId },
    ): Promise<ListPart<Batch>> => {
      const items = await store.batches.listBefore(of, nowMs, { ...slice, limit })
      return { items, readUntil: partEnd(items, limit, null) }
    }
    if (endpoints === null) return joinedPage([await partOf(slice.limit, { owner })], slice.limit - 1)
    const share = itemsPerEndpoint(slice, endpoints)
    const parts = await mapConcurrently(endpoints, CONCURRENCY, endpointId => partOf(share, { endpointId }))
    return joinedPage(parts, slice.limit - 1)
  }

  /**
   * Deliveries of webhooks, of one state or all. A page may be shorter than the limit without being the last.
   * @param endpoints as of {@link jobs}
   * @throws AppError `invalid` for a cursor that no page had
   */
  async deliveries(
    owner: OwnerId,
    endpoints: EndpointSelection,
    state: DeliveryState | null,
    page: PageRequest,
  ): Promise<Page<WebhookDelivery>> {
    const { webhooks } = this.#ports.store
    const slice = readSlice(page, MAX_DELIVERIES)
    const partOf = async (limit: number, of: DeliveryListRequest['of'], maxRead: number) => {
      const { deliveries, readUntil } = await webhooks.page({ of, state, slice: { ...slice, limit }, maxRead })
      return { items: deliveries, readUntil: partEnd(deliveries, limit, readUntil) }
    }
    if (endpoints === null) {
      return joinedPage([await partOf(slice.limit, { owner }, MAX_DELIVERIES_READ)], slice.limit - 1)
    }
    const share = Math.min(itemsPerEndpoint(slice, endpoints), DELIVERIES_OF_ONE)
    const parts = await mapConcurrently(endpoints, CONCURRENCY, endpointId =>
      partOf(share, { endpointId }, Math.max(share, Math.floor(MAX_DELIVERIES_READ / endpoints.length))),
    )
    return joinedPage(parts, slice.limit - 1)
  }
}

/** Items that one of several endpoints gives to a page. */
function itemsPerEndpoint({ limit }: Slice, endpoints: readonly EndpointId[]): number {
  return Math.min(limit, Math.max(2, Math.floor(MAX_JOINED / Math.max(1, endpoints.length))))
}

/** The end of the read part: that of a full part is its last item. */
function partEnd(items: readonly PagePosition[], limit: number, readUntil: PagePosition | null): PagePosition | null {
  return items.length >= limit ? (items.at(-1) ?? readUntil) : readUntil
}
