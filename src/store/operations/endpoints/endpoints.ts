import { domainTaken, type EndpointDomain } from '../../../core/endpoints/domain.ts'
import type { Endpoint } from '../../../core/endpoints/endpoint.ts'
import type { StartedTasks } from '../../../core/endpoints/nested-task.ts'
import type { EndpointWithTemplate } from '../../../core/endpoints/saved-env.ts'
import type { Template } from '../../../core/endpoints/template.ts'
import { AppError } from '../../../core/errors.ts'
import type { EndpointId, OwnerId, WorkerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { EndpointLoad, EndpointSnapshot } from '../../../core/scaling/scale.ts'
import type { ReleaseOptions } from '../../../ports/store/management-store.ts'
import {
  type DeletedEndpoint,
  type EndpointName,
  type EndpointStore,
  type ListedKind,
  MAX_OF_NAME,
  type QueueDemand,
} from '../../../ports/store/store.ts'
import * as sql from '../../tables/endpoints.ts'
import {
  type CountersRow,
  changedEndpointParams,
  countersFromRow,
  type DemandRow,
  type EndpointRow,
  endpointFromRow,
  endpointParams,
  type QueueRow,
  queueLoadFromRow,
  type WorkerCountRow,
  workerCondition,
} from '../../tables/endpoints.ts'
import { type QueuedWorkerRow, queuedWorkerFromRow, queuedWorkersOfEndpoint } from '../../tables/queued-workers.ts'
import { presentRollout } from '../../tables/releases.ts'
import { sliceParams } from '../../tables/statement.ts'
import {
  deleteUnlistedTemplate,
  findTemplate,
  insertTemplate,
  lockTemplate,
  type TemplateRow,
  templateFromRow,
  templateParams,
  templatesOfThese,
} from '../../tables/templates.ts'
import { addFormerEndpoint } from '../../tables/usage.ts'
import {
  aliveWorkersOfEndpoint,
  exitsOfEndpoint,
  type WorkerRow,
  workerFromRow,
  workerLoads,
} from '../../tables/workers.ts'
import { placeInEnvironment } from '../apps/apps.ts'
import { lock, type PortOperations, perform, query, queryAll, queryOne, read, type Steps, write } from '../operation.ts'
import { addRelease, type RolloutRow, rolloutFactsFromRow } from './releases.ts'
import { listedEndpoints } from './snapshots.ts'
import { replaceTemplate } from './templates.ts'
import { linkVolumes } from './volumes.ts'

/** $1 endpoint, $2 the domain that it keeps. Its other domains become free. */
export const dropOtherDomains = 'DELETE FROM endpoint_domains WHERE endpoint_id = $1 AND domain <> $2'

/** $1 domain, $2 endpoint, $3 owner. Nothing when another endpoint has it. */
export const addDomain = `
  INSERT INTO endpoint_domains (domain, endpoint_id, owner) VALUES ($1, $2, $3) ON CONFLICT (domain) DO NOTHING`

/** $1 domain. */
export const findDomain = 'SELECT domain, endpoint_id, owner FROM endpoint_domains WHERE domain = $1'

/** The domains of all accounts. */
export const listDomains = 'SELECT domain, endpoint_id, owner FROM endpoint_domains ORDER BY domain'

const EXITS_IN_SNAPSHOT = 20

/** It is behind each character of a name. */
const LAST_CHARACTER = '\u{10FFFF}'

/** Endpoints and their facts. */
export const endpoints = {
  insert: write(function* (endpoint: Endpoint, ownTemplate?: Template): Steps<void> {
    if (ownTemplate !== undefined) yield* insertOwn(ownTemplate)
    const isFree = (yield* query(sql.insertEndpointId, [endpoint.id, endpoint.owner])).length > 0
    if (!isFree) throw new AppError('conflict', `the id ${endpoint.id} is taken`)
    yield* perform(sql.insertEndpoint, endpointParams(endpoint))
    yield* perform(sql.insertCounters, [endpoint.id, endpoint.owner])
    yield* linkVolumes(endpoint)
    yield* placeInEnvironment(endpoint, null)
    yield* linkDomain(endpoint)
    const template = yield* findEndpointTemplate(endpoint)
    if (template !== null) yield* addRelease(null, { endpoint, template }, endpoint.createdAtMs)
  }),

  replace: write(function* (
    endpoint: Endpoint,
    previous: Endpoint,
    nowMs: number,
    ownTemplate?: Template,
    release?: ReleaseOptions,
  ): Steps<boolean> {
    // Templates before their endpoints, as everywhere.
    for (const id of new Set([previous.templateId, endpoint.templateId])) yield* lock(lockTemplate, [id])
    yield* lock(sql.lockEndpoint, [endpoint.id])
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [endpoint.id])
    if (row === null || !isSameEndpoint(endpointFromRow(row), previous)) return false
    const template = yield* findEndpointTemplate(previous)
    if (ownTemplate !== undefined) yield* saveOwn(ownTemplate, previous, nowMs)
    yield* perform(sql.replaceEndpoint, changedEndpointParams(endpoint))
    yield* linkVolumes(endpoint)
    yield* placeInEnvironment(endpoint, previous)
    if (endpoint.domain !== previous.domain) yield* linkDomain(endpoint)
    const templateNow = yield* findEndpointTemplate(endpoint)
    if (endpoint.version > previous.version && template !== null && templateNow !== null) {
      yield* addRelease({ endpoint: previous, template }, { endpoint, template: templateNow }, nowMs, release)
    }
    if (previous.templateId !== endpoint.templateId) yield* perform(deleteUnlistedTemplate, [previous.templateId])
    return true
  }),

  find: read(function* (id: EndpointId): Steps<Endpoint | null> {
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    return row === null ? null : endpointFromRow(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice, kind: ListedKind = 'endpoints'): Steps<Endpoint[]> {
    return (yield* query<EndpointRow>(sql.listEndpoints[kind], [owner, ...sliceParams(slice)])).map(endpointFromRow)
  }),

  names: read(function* (owner: OwnerId, slice?: Slice): Steps<EndpointName[]> {
    return [...(yield* query<EndpointName>(sql.endpointNames, [owner, ...sliceParams(slice)]))]
  }),

  endedTasks: read(function* (beforeMs: number, limit: number): Steps<EndpointId[]> {
    return (yield* query<{ id: EndpointId }>(sql.endedTasks, [beforeMs, limit])).map(row => row.id)
  }),

  startedTasks: read(function* (root: EndpointId): Steps<StartedTasks> {
    const row = yield* queryOne<StartedTasks>(sql.countStartedTasks, [root])
    return { running: row?.running ?? 0, ended: row?.ended ?? 0 }
  }),

  orphanedTasks: read(function* (limit: number): Steps<EndpointId[]> {
    return (yield* query<{ id: EndpointId }>(sql.orphanedTasks, [limit])).map(row => row.id)
  }),

  named: read(function* (owner: OwnerId, name: string): Steps<Endpoint[]> {
    return (yield* query<EndpointRow>(sql.endpointsByName, [owner, name, MAX_OF_NAME])).map(endpointFromRow)
  }),

  beginning: read(function* (owner: OwnerId, name: string, limit: number): Steps<EndpointWithTemplate[]> {
    const bounds = [owner, name, `${name}${LAST_CHARACTER}`, limit]
    const found = (yield* query<EndpointRow>(sql.endpointsBetweenNames, bounds)).map(endpointFromRow)
    const ids = JSON.stringify([...new Set(found.map(({ templateId }) => templateId))])
    const templates = (yield* query<TemplateRow>(templatesOfThese, [ids])).map(templateFromRow)
    const byId = new Map(templates.map(template => [template.id, template]))
    return found.map(endpoint => ({ endpoint, template: byId.get(endpoint.templateId) ?? null }))
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
      for (const row of counts) if (row.endpoint_id === load.id) workers[workerCondition(row)] += row.workers
      return { endpointId: load.id, queue: queueLoadFromRow(load), workers }
    })
  }),

  snapshot: read(function* (id: EndpointId): Steps<EndpointSnapshot | null> {
    const [rows, counters, loads, workers, queued, exits, rollouts] = yield* queryAll<
      [EndpointRow, CountersRow, QueueRow, WorkerRow & { held: number }, QueuedWorkerRow, WorkerRow, RolloutRow]
    >(
      { sql: sql.findEndpoint, params: [id] },
      { sql: sql.findCounters, params: [id] },
      { sql: sql.queueLoad, params: [id] },
      { sql: workerLoads, params: [id] },
      { sql: queuedWorkersOfEndpoint, params: [id] },
      { sql: exitsOfEndpoint, params: [id, EXITS_IN_SNAPSHOT] },
      { sql: presentRollout, params: [id] },
    )
    const [row] = rows
    if (row === undefined) return null
    return {
      endpoint: endpointFromRow(row),
      counters: countersFromRow(counters[0] ?? null),
      queue: queueLoadFromRow(loads[0]!),
      workers: workers.map(worker => ({ ...workerFromRow(worker), held: worker.held })),
      queuedWorkers: queued.map(queuedWorkerFromRow),
      exits: exits.map(workerFromRow),
      rollout: yield* rolloutFactsFromRow(id, row.version, rollouts[0] ?? null),
    }
  }),

  ofDomain: read(findHolder),

  domains: read(function* (): Steps<EndpointDomain[]> {
    return (yield* query<DomainRow>(listDomains)).map(domainFromRow)
  }),

  demand: read(function* (id: EndpointId, workerId: WorkerId, coming = 0): Steps<QueueDemand> {
    const row = yield* queryOne<DemandRow>(sql.queueDemand, [id, workerId, coming])
    return { queued: row?.queued ?? 0, takers: row?.takers ?? 0, takerState: row?.taker_state ?? null }
  }),

  isFree: read(function* (id: EndpointId): Steps<boolean> {
    return (yield* queryOne(sql.findEndpointId, [id])) === null
  }),

  remove: write(function* (id: EndpointId, nowMs: number): Steps<DeletedEndpoint | null> {
    const unlocked = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    if (unlocked === null) return null
    yield* lock(lockTemplate, [unlocked.template_id])
    yield* lock(sql.lockEndpoint, [id])
    // Waits for operations that add a job or a batch.
    yield* lock(sql.lockEndpointId, [id])
    const row = yield* queryOne<EndpointRow>(sql.findEndpoint, [id])
    if (row === null) return null
    for (const statement of sql.deleteEndpoint) yield* perform(statement, [id])
    yield* perform(sql.noteDeletion, [id, nowMs])
    yield* perform(addFormerEndpoint, [id, row.owner, row.name, nowMs])
    yield* perform(deleteUnlistedTemplate, [row.template_id])
    const workers = (yield* query<WorkerRow>(aliveWorkersOfEndpoint, [id])).map(workerFromRow)
    return { workers }
  }),
} satisfies PortOperations<EndpointStore>

/** True where it is unchanged, in the order of members that the store writes. */
function isSameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return JSON.stringify(endpointParams(a)) === JSON.stringify(endpointParams(b))
}

function* insertOwn(template: Template): Steps<void> {
  const rows = yield* query(insertTemplate, templateParams(template))
  if (rows.length === 0) throw new AppError('conflict', `a template named '${template.name}' already exists`)
}

/** The template that an endpoint has for itself: changed where the endpoint has it already, else new. */
function* saveOwn(template: Template, endpoint: Endpoint, nowMs: number): Steps<void> {
  if (template.id !== endpoint.templateId) yield* insertOwn(template)
  else if ((yield* replaceTemplate(template, nowMs, endpoint.id)) === null) {
    throw new AppError('conflict', `a template named '${template.name}' already exists`)
  }
}

function* findEndpointTemplate({ owner, templateId }: Endpoint): Steps<Template | null> {
  const row = yield* queryOne<TemplateRow>(findTemplate, [owner, templateId])
  return row === null ? null : templateFromRow(row)
}

/**
 * Stores the domain of an endpoint, and frees its previous one.
 * @throws AppError `conflict` when another endpoint has the domain
 */
function* linkDomain({ id, owner, domain }: Pick<Endpoint, 'id' | 'owner' | 'domain'>): Steps<void> {
  yield* perform(dropOtherDomains, [id, domain ?? ''])
  if (domain === null) return
  yield* perform(addDomain, [domain, id, owner])
  const holder = yield* findHolder(domain)
  if (holder?.endpointId !== id) throw domainTaken(domain, owner, holder)
}

/** The endpoint and account of a domain; null without one. */
function* findHolder(domain: string): Steps<EndpointDomain | null> {
  const row = yield* queryOne<DomainRow>(findDomain, [domain])
  return row === null ? null : domainFromRow(row)
}

interface DomainRow {
  readonly domain: string
  readonly endpoint_id: EndpointId
  readonly owner: OwnerId
}

function domainFromRow({ domain, endpoint_id: endpointId, owner }: DomainRow): EndpointDomain {
  return { domain, endpointId, owner }
}
