import { domainTaken, type EndpointDomain } from '../../../core/endpoints/domain.ts'
import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import type { Template } from '../../../core/endpoints/template.ts'
import { AppError } from '../../../core/errors.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { EndpointLoad, EndpointSnapshot } from '../../../core/scaling/scale.ts'
import type { ReleaseOptions } from '../../../ports/store/management-store.ts'
import type { DeletedEndpoint, EndpointStore, QueueDemand } from '../../../ports/store/store.ts'
import * as sql from '../../tables/endpoints.ts'
import {
  type CountersRow,
  conditionOf,
  type DemandRow,
  type EndpointRow,
  ofChangedEndpoint,
  ofEndpoint,
  type QueueRow,
  toCounters,
  toEndpoint,
  toQueueLoad,
  type WorkerCountRow,
} from '../../tables/endpoints.ts'
import { type QueuedWorkerRow, queuedWorkersOf, toQueuedWorker } from '../../tables/queued-workers.ts'
import { ofSlice } from '../../tables/slices.ts'
import {
  deleteUnlistedTemplate,
  findTemplate,
  insertTemplate,
  lockTemplate,
  ofTemplate,
  type TemplateRow,
  toTemplate,
} from '../../tables/templates.ts'
import { aliveWorkersOf, exitsOf, toWorker, type WorkerRow, workerLoads } from '../../tables/workers.ts'
import { lock, type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'
import { addRelease, rolloutFacts } from './releases.ts'
import { listedEndpoints } from './snapshots.ts'
import { replaceTemplate } from './templates.ts'
import { linkVolumes } from './volumes.ts'

/** $1 endpoint, $2 the domain that it keeps. Its other domains become free. */
const dropOtherDomains = 'DELETE FROM endpoint_domains WHERE endpoint_id = $1 AND domain <> $2'

/** $1 domain, $2 endpoint, $3 owner. Nothing when another endpoint has it. */
const addDomain = `
  INSERT INTO endpoint_domains (domain, endpoint_id, owner) VALUES ($1, $2, $3) ON CONFLICT (domain) DO NOTHING`

/** $1 domain. */
const findDomain = 'SELECT domain, endpoint_id, owner FROM endpoint_domains WHERE domain = $1'

/** The domains of all accounts. */
const listDomains = 'SELECT domain, endpoint_id, owner FROM endpoint_domains ORDER BY domain'

const EXITS_IN_SNAPSHOT = 20

/** Endpoints and their facts. */
export const endpoints = {
  insert: write(function* (endpoint: Endpoint, own?: Template): Steps<void> {
    if (own !== undefined) yield* insertOwn(own)
    const isFree = (yield* query(sql.insertEndpointId, [endpoint.id, endpoint.owner])).length > 0
    if (!isFree) throw new AppError('conflict', `the id ${endpoint.id} is taken`)
    yield* perform(sql.insertEndpoint, ofEndpoint(endpoint))
    yield* perform(sql.insertCounters, [endpoint.id, endpoint.owner])
    yield* linkVolumes(endpoint)
    yield* linkDomain(endpoint)
    const template = yield* templateOf(endpoint)
    if (template !== null) yield* addRelease(null, { endpoint, template }, endpoint.createdAtMs)
  }),

  replace: write(function* (
    endpoint: Endpoint,
    before: Endpoint,
    nowMs: number,
    own?: Template,
    release?: ReleaseOptions,
  ): Steps<boolean> {
    // Templates before their endpoints, as everywhere.
    for (const id of new Set([before.templateId, endpoint.templateId])) yield* lock(lockTemplate, [id])
    yield* lock(sql.lockEndpoint, [endpoint.id])
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [endpoint.id])
    if (row === null || !sameEndpoint(toEndpoint(row), before)) return false
    const template = yield* templateOf(before)
    if (own !== undefined) yield* saveOwn(own, before, nowMs)
    yield* perform(sql.replaceEndpoint, ofChangedEndpoint(endpoint))
    yield* linkVolumes(endpoint)
    if (endpoint.domain !== before.domain) yield* linkDomain(endpoint)
    const templateNow = yield* templateOf(endpoint)
    if (endpoint.version > before.version && template !== null && templateNow !== null) {
      yield* addRelease({ endpoint: before, template }, { endpoint, template: templateNow }, nowMs, release)
    }
    if (before.templateId !== endpoint.templateId) yield* perform(deleteUnlistedTemplate, [before.templateId])
    return true
  }),

  find: read(function* (id: EndpointId): Steps<Endpoint | null> {
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    return row === null ? null : toEndpoint(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Endpoint[]> {
    return (yield* query<EndpointRow>(sql.listEndpoints, [owner, ...ofSlice(slice)])).map(toEndpoint)
  }),

  listed: read(listedEndpoints),

  ids: read(function* (): Steps<EndpointId[]> {
    return (yield* query<{ id: EndpointId }>(sql.endpointIds)).map(row => row.id)
  }),

  active: read(function* (): Steps<EndpointId[]> {
    return (yield* query<{ id: EndpointId }>(sql.activeEndpoints)).map(row => row.id)
  }),

  loads: read(function* (after: EndpointId | null, limit: number): Steps<EndpointLoad[]> {
    const loads = yield* query<QueueRow & { id: EndpointId }>(sql.queueLoads, [after ?? '', limit])
    if (loads.length === 0) return []
    const counts = yield* query<WorkerCountRow>(sql.workerCounts, [loads[0]!.id, loads.at(-1)!.id])
    return loads.map(load => {
      const workers = { starting: 0, idle: 0, running: 0, frozen: 0, draining: 0, stopping: 0 }
      for (const row of counts) if (row.endpoint_id === load.id) workers[conditionOf(row)] += row.workers
      return { endpointId: load.id, queue: toQueueLoad(load), workers }
    })
  }),

  snapshot: read(function* (id: EndpointId): Steps<EndpointSnapshot | null> {
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    if (row === null) return null
    const counters = yield* queryOne<CountersRow>(sql.findCounters, [id])
    const [load] = yield* query<QueueRow>(sql.queueLoad, [id])
    const workers = yield* query<WorkerRow & { held: number }>(workerLoads, [id])
    const queued = yield* query<QueuedWorkerRow>(queuedWorkersOf, [id])
    const exits = yield* query<WorkerRow>(exitsOf, [id, EXITS_IN_SNAPSHOT])
    return {
      endpoint: toEndpoint(row),
      counters: toCounters(counters),
      queue: toQueueLoad(load!),
      workers: workers.map(worker => ({ ...toWorker(worker), held: worker.held })),
      queuedWorkers: queued.map(toQueuedWorker),
      exits: exits.map(toWorker),
      rollout: yield* rolloutFacts(id, row.version),
    }
  }),

  ofDomain: read(holderOf),

  domains: read(function* (): Steps<EndpointDomain[]> {
    return (yield* query<DomainRow>(listDomains)).map(toDomain)
  }),

  demand: read(function* (id: EndpointId, workerId: WorkerId): Steps<QueueDemand> {
    const row = yield* queryOne<DemandRow>(sql.queueDemand, [id, workerId])
    return { queued: row?.queued ?? 0, takers: row?.takers ?? 0, takerState: row?.taker_state ?? null }
  }),

  isFree: read(function* (id: EndpointId): Steps<boolean> {
    return (yield* queryOne(sql.findEndpointId, [id])) === null
  }),

  remove: write(function* (id: EndpointId, nowMs: number): Steps<DeletedEndpoint | null> {
    const known = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    if (known === null) return null
    yield* lock(lockTemplate, [known.template_id])
    yield* lock(sql.lockEndpoint, [id])
    // Waits for operations that add a job or a batch.
    yield* lock(sql.lockEndpointId, [id])
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    if (row === null) return null
    for (const statement of sql.deleteEndpoint) yield* perform(statement, [id])
    yield* perform(sql.noteDeletion, [id, nowMs])
    yield* perform(deleteUnlistedTemplate, [row.template_id])
    const workers = (yield* query<WorkerRow>(aliveWorkersOf, [id])).map(toWorker)
    return { workers }
  }),
} satisfies OperationsOf<EndpointStore>

/** True where it is unchanged, in the order of members that the store writes. */
function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return JSON.stringify(ofEndpoint(a)) === JSON.stringify(ofEndpoint(b))
}

function* insertOwn(own: Template): Steps<void> {
  const rows = yield* query(insertTemplate, ofTemplate(own))
  if (rows.length === 0) throw new AppError('conflict', `a template named '${own.name}' already exists`)
}

/** The template that an endpoint has for itself: changed where the endpoint has it already, else new. */
function* saveOwn(own: Template, before: Endpoint, nowMs: number): Steps<void> {
  if (own.id !== before.templateId) yield* insertOwn(own)
  else if ((yield* replaceTemplate(own, nowMs, before.id)) === null) {
    throw new AppError('conflict', `a template named '${own.name}' already exists`)
  }
}

function* templateOf({ owner, templateId }: Endpoint): Steps<Template | null> {
  const row = yield* queryOne<TemplateRow>(findTemplate, [owner, templateId])
  return row === null ? null : toTemplate(row)
}

/**
 * Stores the domain of an endpoint, and frees its previous one.
 * @throws AppError `conflict` when another endpoint has the domain
 */
function* linkDomain({ id, owner, domain }: Pick<Endpoint, 'id' | 'owner' | 'domain'>): Steps<void> {
  yield* perform(dropOtherDomains, [id, domain ?? ''])
  if (domain === null) return
  yield* perform(addDomain, [domain, id, owner])
  const holder = yield* holderOf(domain)
  if (holder?.endpointId !== id) throw domainTaken(domain, owner, holder)
}

/** The endpoint and account of a domain; null without one. */
function* holderOf(domain: string): Steps<EndpointDomain | null> {
  const row = yield* queryOne<DomainRow>(findDomain, [domain])
  return row === null ? null : toDomain(row)
}

interface DomainRow {
  readonly domain: string
  readonly endpoint_id: EndpointId
  readonly owner: OwnerId
}

function toDomain({ domain, endpoint_id: endpointId, owner }: DomainRow): EndpointDomain {
  return { domain, endpointId, owner }
}
