import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { type ExplainContext, explainEndpoint } from '../../../src/core/observing/explain.ts'
import { type Explanation, WAIT_CAUSES } from '../../../src/core/observing/explanation.ts'
import { desiredWorkers } from '../../../src/core/scaling/scale.ts'
import type { PlatformReport } from '../../../src/core/workers/platform-report.ts'
import { crashBackoff, takesJobs, type Worker, type WorkerLoad } from '../../../src/core/workers/worker.ts'
import type { ExitCause } from '../../../src/core/workers/worker-exit.ts'
import type { WorkerProblem } from '../../../src/core/workers/worker-problem.ts'
import { anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

const CHECK: WorkerProblem = { kind: 'check_failed', check: 'gpu', reason: 'no card' }
const IMAGE_GONE: ExitCause = { kind: 'not_started', failure: { kind: 'image_gone', image: 'a' } }
const ago = fc.integer({ min: 0, max: 100_000 }).map(ms => NOW - ms)
const maybe = fc.option(ago, { nil: null })
const version = fc.constantFrom(1, 1, 1, 0)

const SILENT = { place: null, waits: null, leaves: null }
const REPORTS: readonly (PlatformReport | null)[] = [
  ...[null, null, null, null, null],
  ...(['no_room', 'no_such_node', 'platform_quota', 'platform_away', 'volume_pending'] as const).map(kind => ({
    ...SILENT,
    waits: { kind, said: '' },
  })),
  ...[1, 2].map(() => ({ ...SILENT, leaves: { kind: 'node_lost', node: 'n1', said: '' } as const })),
]
const anyWorker: fc.Arbitrary<Partial<WorkerLoad>> = fc.record({
  state: fc.constantFrom('STARTING', 'READY', 'DRAINING', 'STOPPING'),
  problem: fc.constantFrom(null, null, null, CHECK, { kind: 'silent', forS: 35 } as const),
  version,
  held: fc.nat(3),
  createdAtMs: ago,
  placedAtMs: maybe,
  platform: fc.constantFrom(...REPORTS),
  startedAtMs: maybe,
  pullStartedAtMs: maybe,
  pause: fc.constantFrom(null, null, null, { sinceMs: NOW - 1_000, for: 'urgent' as EndpointId }),
})
const anyExit = fc
  .record({
    stopReason: fc.constantFrom(null, null, 'idle', 'hung_start', 'unhealthy', 'wedged'),
    startedAtMs: maybe,
    version,
    exitedAtMs: ago,
    jobsFinished: fc.nat(1),
    cause: fc.constantFrom<ExitCause>({ kind: 'ended' }, { kind: 'out_of_memory', limitMb: 400 }, IMAGE_GONE),
  })
  .map(({ cause, ...fields }) => anExit(fields as Partial<Worker>, { cause, code: null }))

const anySituation = fc.record({
  endpoint: fc.record({ workersMin: fc.nat(2), workersMax: fc.nat(4) }),
  queue: fc
    .record({
      queued: fc.nat(5),
      queuedLowPriority: fc.nat(2),
      inProgress: fc.nat(5),
      headQueuedAtMs: ago,
      suspectsQueued: fc.constantFrom(0, 0, 1, 5),
    })
    .map(queue => ({ ...queue, suspectsQueued: Math.min(queue.queued, queue.suspectsQueued) })),
  averageExecutionMs: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: null }),
  workers: fc.array(anyWorker, { maxLength: 8 }),
  exits: fc.array(anyExit, { maxLength: 4 }),
  queuedWorkers: fc.array(
    fc.record({
      queuedAtMs: ago,
      version,
      resource: fc.constantFrom('gpu', 'memory', 'account_workers', 'account_gpus', 'models'),
      reason: fc.constantFrom('no GPU is free', 'no memory is free', 'the limit of 2 workers is reached'),
    }),
    { maxLength: 7 },
  ),
  full: fc.boolean(),
  startFailure: fc.constantFrom(null, null, null, { kind: 'folder_missing', folder: '/srv/x' } as const),
})

type Situation = typeof anySituation extends fc.Arbitrary<infer Of> ? Of : never

function snapshotFrom({ endpoint, queue, averageExecutionMs, workers, exits, queuedWorkers }: Situation) {
  const queued = queuedWorkers.map((fields, index) => aQueued({ id: `q${index + 1}` as WorkerId, ...fields }))
  const ended = exits.map((exit, index) => ({ ...exit, id: `x${index + 1}` as WorkerId }))
  return aSnapshot({ endpoint, queue, averageExecutionMs, workers, exits: ended, queuedWorkers: queued })
}

/** Condition of a cause, written here a second time: true if a person would find the cause in the situation. */
function isTrue({ cause }: Explanation, situation: Situation): boolean {
  const { workers, endpoint, queue, exits, queuedWorkers } = snapshotFrom(situation)
  const current = workers.filter(worker => takesJobs(worker) && worker.version === endpoint.version)
  const has = (state: string) => current.some(worker => worker.state === state)
  const backoff = crashBackoff(exits, endpoint.version)
  const waits = queue.queued + queue.queuedLowPriority > 0
  if (cause === 'nothing_waits') return !waits && queue.inProgress === 0
  if (cause === 'running' && !waits) return queue.inProgress > 0
  if (cause === 'preempted') return !waits && workers.some(({ pause, held }) => pause !== null && held > 0)
  const isLacking = endpoint.workersMin > 0 && endpoint.workersMax > 0 && queue.inProgress === 0
  if (!waits && (!isLacking || current.some(({ state, problem }) => state === 'READY' && problem === null)))
    return false
  if ((cause === 'paused') !== (endpoint.workersMax === 0)) return false
  const wants = desiredWorkers(snapshotFrom(situation), NOW).desired > current.length
  const noRoom = queuedWorkers.length > 0 || situation.full
  const starting = current.filter(({ state }) => state === 'STARTING')
  const isWaiting = ({ platform, placedAtMs }: (typeof starting)[number]) =>
    platform?.waits != null && (placedAtMs === null || platform.waits.kind === 'volume_pending')
  const placeless = starting.length > 0 && starting.every(isWaiting)
  const waitsFor = (kind: string) => placeless && starting.some(({ platform }) => platform?.waits?.kind === kind)
  switch (cause) {
    case 'paused':
      return true
    case 'image_error':
      return situation.startFailure !== null || (backoff.last?.startedAtMs === null && !has('READY'))
    case 'crash_loop':
    case 'out_of_memory':
    case 'hung_start':
      return backoff.last !== null && !has('READY')
    case 'fitness_failed':
    case 'unhealthy':
      return (backoff.last !== null && !has('READY')) || current.some(({ problem }) => problem !== null)
    case 'worker_starting':
      return has('STARTING')
    case 'worker_restarting':
      return workers.length >= endpoint.workersMax && current.length === 0
    case 'max_reached':
      return workers.length >= endpoint.workersMax
    case 'models_downloading':
      return queuedWorkers[0]?.resource === 'models' && wants
    case 'no_capacity':
      return (noRoom && current.length === 0 && wants) || (waitsFor('no_room') && !has('READY'))
    case 'throttled':
      return (
        (noRoom && current.length > 0 && (wants || current.every(({ held }) => held > 0))) ||
        (waitsFor('no_room') && has('READY'))
      )
    case 'unschedulable':
      return waitsFor('no_such_node')
    case 'cluster_quota':
      return waitsFor('platform_quota')
    case 'cluster_away':
      return waitsFor('platform_away')
    case 'volume_pending':
      return waitsFor('volume_pending')
    case 'node_lost':
      return current.length === 0 && workers.some(({ platform }) => platform?.leaves?.kind === 'node_lost')
    case 'running':
      return has('READY')
    case 'runs_alone':
      return queue.suspectsQueued === queue.queued && (has('READY') || workers.length >= endpoint.workersMax)
    case 'low_priority':
      return queue.queued === 0 && current.length === 0
    case 'about_to_start':
      return queue.queued > 0 && current.length === 0
    default:
      return false
  }
}

test('of whatever situation exactly one cause is named, and it and all that is said about it is true', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(anySituation, situation => {
      const context: ExplainContext = {
        capacity: { freeWorkers: situation.full ? 0 : null, bound: 'the limit of 2 workers' },
        startFailure: situation.startFailure,
        nowMs: NOW,
        pullPercent: () => 12,
      }
      const snapshot = snapshotFrom(situation)
      const found = explainEndpoint(snapshot, context)
      seen.add(found.cause)
      assert.ok(WAIT_CAUSES.includes(found.cause))
      assert.ok(isTrue(found, situation), `${found.cause}: ${found.summary}`)
      const { summary, facts, notes, sinceMs } = found
      const known = new Set<string>(
        [...snapshot.workers, ...snapshot.exits, ...snapshot.queuedWorkers].map(({ id }) => id),
      )
      for (const text of [summary, ...facts, ...notes.map(note => note.text)]) {
        assert.doesNotMatch(text, /undefined|null|NaN|Infinity|-\d/)
        for (const [, id] of text.matchAll(/\bworker ([wxq]\d+)\b/g)) assert.ok(known.has(id!), text)
        for (const [, id] of text.matchAll(/\bworker (\w+) downloads its image \(12 %\)/g)) {
          assert.notEqual(snapshot.workers.find(worker => worker.id === id)?.pullStartedAtMs, null)
        }
      }
      if (sinceMs !== null) assert.ok(sinceMs <= NOW)
      if (found.cause === 'max_reached') {
        const numbers = /workersMax is (\d+), and there (?:is|are) (\d+) workers? with (\d+) running/.exec(summary)
        const { endpoint, workers, queue } = snapshot
        assert.deepEqual(numbers?.slice(1).map(Number), [endpoint.workersMax, workers.length, queue.inProgress])
      }
      const inSeconds = /starts in (\d+) s/.exec(summary)?.[1]
      if (inSeconds !== undefined) {
        const { untilMs } = crashBackoff(snapshot.exits, snapshot.endpoint.version)
        assert.equal(Number(inSeconds), Math.ceil((untilMs - NOW) / 1000))
      }
    }),
    // A seed with which every cause comes up.
    { numRuns: 3_000, seed: 7 },
  )
  // Those that need more than an endpoint are tried elsewhere.
  const elsewhere = [
    'finished',
    'batch_turn',
    'engine_away',
    'rollout_stopped',
    'model_error',
    'secret_missing',
    'volume_missing',
    'settings_invalid',
    'never_healthy',
    'store_damaged',
    'store_full',
  ]
  const missed = WAIT_CAUSES.filter(cause => !seen.has(cause) && !elsewhere.includes(cause))
  assert.deepEqual(missed, [])
})
