import {
  type Configuration,
  configDiff,
  type KeptConfiguration,
  type KeptRelease,
  keptConfiguration,
  MAX_KEPT_CHARACTERS,
  MAX_RELEASES,
  type PastRelease,
} from '../../../core/endpoints/release.ts'
import { type FailureStop, REPLACED, ROLLED_OUT, type RolloutFacts } from '../../../core/endpoints/rollout-facts.ts'
import type { EndpointId } from '../../../core/ids.ts'
import type { LearnedMemory } from '../../../core/placement/learned-memory.ts'
import { countsAgainstRelease } from '../../../core/scaling/rollout.ts'
import type { SuspendFailures } from '../../../core/workers/worker-suspension.ts'
import type {
  JudgedRelease,
  ReleaseOptions,
  ReleaseStore,
  UsedImages,
  WorkerResults,
} from '../../../ports/store/management-store.ts'
import { lockEndpoint } from '../../tables/endpoints.ts'
import { deleteQueuedWorkers } from '../../tables/queued-workers.ts'
import * as sql from '../../tables/releases.ts'
import {
  type JudgedRow,
  type KeptReleaseRow,
  keptReleaseFromRow,
  type PastReleaseRow,
  pastReleaseFromRow,
  readStop,
  releaseParams,
} from '../../tables/releases.ts'
import { type WorkerRow, workerFromRow, workersOfThese } from '../../tables/workers.ts'
import {
  lock,
  type PortOperations,
  perform,
  query,
  queryOne,
  read,
  type Steps,
  write,
  writeUnflushed,
} from '../operation.ts'

function* findImage(endpointId: EndpointId, version: number): Steps<string | null> {
  return (yield* queryOne<{ image: string | null }>(sql.imageOfRelease, [endpointId, version]))?.image ?? null
}

function* findModels(endpointId: EndpointId, version: number): Steps<Record<string, string> | null> {
  const row = yield* queryOne<{ models: string | null }>(sql.modelsOfRelease, [endpointId, version])
  return row === null ? null : (JSON.parse(row.models ?? '{}') as Record<string, string>)
}

/** A row of `presentRollout`. */
export interface RolloutRow {
  readonly ready_at_ms: number | null
  readonly crashes: number
  readonly canary: number | null
  readonly stopped_for: number | null
  readonly stop: string | null
  readonly replaces_at_once: 0 | 1
}

/** Facts of the rollout of a version. The release to fall back to is read only while there may be a need. */
function* rolloutFacts(endpointId: EndpointId, version: number): Steps<RolloutFacts> {
  const row = yield* queryOne<RolloutRow>(sql.rolloutOfRelease, [endpointId, version])
  return yield* rolloutFactsFromRow(endpointId, version, row)
}

/** Facts about the release of a version from its row; null where it has none. */
export function* rolloutFactsFromRow(
  endpointId: EndpointId,
  version: number,
  row: RolloutRow | null,
): Steps<RolloutFacts> {
  if (row === null) return ROLLED_OUT
  if (row.ready_at_ms !== null && row.canary === null && row.stopped_for === null) {
    return row.replaces_at_once === 1 ? REPLACED : ROLLED_OUT
  }
  const working =
    row.stopped_for === null
      ? yield* queryOne<{ version: number; config: string }>(sql.workingRelease, [endpointId, version])
      : yield* keptRelease(endpointId, row.stopped_for)
  return {
    wasReady: row.ready_at_ms !== null,
    crashes: row.crashes,
    canary: row.canary,
    stop: readStop(row.stop),
    working:
      working === null
        ? null
        : { version: working.version, configuration: JSON.parse(working.config) as KeptConfiguration },
  }
}

function* keptRelease(endpointId: EndpointId, version: number): Steps<{ version: number; config: string } | null> {
  const row = yield* queryOne<KeptReleaseRow>(sql.findRelease, [endpointId, version])
  return row === null || row.config === null ? null : { version, config: row.config }
}

/** Adds results to the releases of their workers. @returns the ids of the endpoints, in order */
function* countResults(results: readonly WorkerResults[]): Steps<EndpointId[]> {
  const rows = yield* query<WorkerRow>(workersOfThese, [JSON.stringify(results.map(({ workerId }) => workerId))])
  const workers = new Map(rows.map(row => [row.id, workerFromRow(row)]))
  const sums = new Map<string, { endpointId: EndpointId; version: number; ended: number; failed: number }>()
  for (const { workerId, ended, failed, lostJobs } of results) {
    const worker = workers.get(workerId)
    if (worker === undefined) continue
    const { endpointId, version } = worker
    const key = `${endpointId} ${version}`
    const sum = sums.get(key) ?? { endpointId, version, ended: 0, failed: 0 }
    const crashes = lostJobs && countsAgainstRelease(worker) ? 1 : 0
    sums.set(key, { ...sum, ended: sum.ended + ended + crashes, failed: sum.failed + failed + crashes })
  }
  // In order, so that no two servers wait for each other.
  const inOrder = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
  for (const { endpointId, version, ended, failed } of inOrder) {
    if (ended > 0) yield* perform(sql.addResults, [endpointId, version, ended, failed])
  }
  return [...new Set(inOrder.map(({ endpointId }) => endpointId))]
}

function judgedReleaseFromRow(row: JudgedRow): JudgedRelease {
  const { endpoint_id: endpointId, version, ready_at_ms: readyAtMs, good_version: good } = row
  return {
    endpointId,
    version,
    readyAtMs,
    results: { ended: row.results, failed: row.failed },
    good: good === null ? null : { version: good, results: { ended: row.good_results!, failed: row.good_failed! } },
  }
}

/** Releases of endpoints. */
export const releases = {
  list: read(function* (endpointId: EndpointId): Steps<PastRelease[]> {
    return (yield* query<PastReleaseRow>(sql.listReleases, [endpointId, MAX_RELEASES])).map(pastReleaseFromRow)
  }),
  find: read(function* (endpointId: EndpointId, version: number): Steps<KeptRelease | null> {
    const row = yield* queryOne<KeptReleaseRow>(sql.findRelease, [endpointId, version])
    return row === null ? null : keptReleaseFromRow(row)
  }),
  rollout: read(rolloutFacts),
  addResults: writeUnflushed(function* (results: readonly WorkerResults[]): Steps<JudgedRelease[]> {
    const endpoints = yield* countResults(results)
    return (yield* query<JudgedRow>(sql.judgedReleases, [JSON.stringify(endpoints)])).map(judgedReleaseFromRow)
  }),
  endTrial: write(function* (endpointId: EndpointId, version: number): Steps<void> {
    yield* perform(sql.endTrial, [endpointId, version])
  }),
  stop: write(function* (endpointId, version, working: number, stop: FailureStop): Steps<boolean> {
    yield* lock(lockEndpoint, [endpointId])
    return (yield* query(sql.stopRelease, [endpointId, version, working, JSON.stringify(stop)])).length > 0
  }),
  promote: write(function* (endpointId: EndpointId, version: number): Steps<boolean> {
    yield* lock(lockEndpoint, [endpointId])
    return (yield* query(sql.promoteRelease, [endpointId, version])).length > 0
  }),
  image: read(findImage),
  pinImage: write(function* (endpointId, version, { image, replaced }): Steps<string | null> {
    yield* perform(sql.pinImage, [endpointId, version, image, replaced])
    return yield* findImage(endpointId, version)
  }),
  models: read(function* (endpointId, version): Steps<Record<string, string>> {
    return (yield* findModels(endpointId, version)) ?? {}
  }),
  pinModel: write(function* (endpointId, version, { reference, commit }): Steps<string | null> {
    yield* lock(lockEndpoint, [endpointId])
    const models = yield* findModels(endpointId, version)
    if (models === null) return null
    if (models[reference] !== undefined) return models[reference]
    yield* perform(sql.setModels, [endpointId, version, JSON.stringify({ ...models, [reference]: commit })])
    return commit
  }),
  suspendFailures: read(function* (endpointId: EndpointId, version: number): Steps<SuspendFailures | null> {
    type Row = { suspend_failures: string | null }
    const text = (yield* queryOne<Row>(sql.suspendFailures, [endpointId, version]))?.suspend_failures ?? null
    return text === null ? null : (JSON.parse(text) as SuspendFailures)
  }),
  setSuspendFailures: write(function* (endpointId, version, failures): Steps<void> {
    const text = failures === null ? null : JSON.stringify(failures)
    yield* perform(sql.setSuspendFailures, [endpointId, version, text])
  }),
  gpuMemory: read(function* (endpointId: EndpointId, version: number): Steps<LearnedMemory | null> {
    const text = (yield* queryOne<{ gpu_memory: string | null }>(sql.gpuMemory, [endpointId, version]))?.gpu_memory
    return text == null ? null : (JSON.parse(text) as LearnedMemory)
  }),
  setGpuMemory: write(function* (endpointId: EndpointId, version: number, learned: LearnedMemory): Steps<void> {
    yield* perform(sql.setGpuMemory, [endpointId, version, JSON.stringify(learned)])
  }),
  images: read(function* (after: EndpointId | null, limit: number): Steps<UsedImages> {
    const ids = (yield* query<{ id: EndpointId }>(sql.endpointsAfter, [after ?? '', limit])).map(({ id }) => id)
    const rows = yield* query<{ image: string }>(sql.imagesInUse, [JSON.stringify(ids)])
    return { images: rows.map(({ image }) => image), next: ids.length < limit ? null : ids.at(-1)! }
  }),
} satisfies PortOperations<ReleaseStore>

/**
 * The release of an endpoint's new version, in the transaction that makes it. Workers of the previous version that
 * wait for a place are removed: they are useless now, and would keep the endpoint from ever being idle.
 * @param before null for the first version
 * @param options rarer properties of it
 */
export function* addRelease(
  before: Configuration | null,
  after: Configuration,
  nowMs: number,
  { restores = null, image = null, replacesAtOnce = false, canary = null }: ReleaseOptions = {},
): Steps<void> {
  const { id: endpointId, owner, version } = after.endpoint
  const release: KeptRelease = {
    id: `${endpointId}-${version}`,
    endpointId,
    owner,
    version,
    source: 'MANUAL',
    createdBy: owner,
    createdAtMs: nowMs,
    diff: before === null ? [] : configDiff(before, after),
    restores,
    image,
    canary,
    configuration: keptConfiguration(after),
  }
  // Whoever goes back to a release knows it, and who replaces workers at once has no others that could go on.
  const isJudged = before !== null && restores === null && !replacesAtOnce
  yield* perform(sql.insertRelease, releaseParams(release, replacesAtOnce ? nowMs : null, isJudged))
  yield* perform(deleteQueuedWorkers, [endpointId])
  if (restores !== null) {
    yield* perform(sql.restoreModels, [endpointId, version, restores])
    yield* perform(sql.restoreResults, [endpointId, version, restores])
  }
  yield* perform(sql.deleteOldReleases, [endpointId, version - MAX_RELEASES])
  yield* perform(sql.dropOldConfigurations, [endpointId, version - 2, MAX_KEPT_CHARACTERS])
}
