import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Endpoint } from '../../../src/core/endpoints/endpoint.ts'
import { servingProblem } from '../../../src/core/endpoints/serving.ts'
import type { BatchId, EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { actionCommand } from '../../../src/core/observing/action.ts'
import { type ExplainContext, explainEndpoint } from '../../../src/core/observing/explain.ts'
import { explainJob, MAX_REQUESTS_AHEAD } from '../../../src/core/observing/explain-job.ts'
import { type Explanation, plainNote, WAIT_CAUSES, type WaitCause } from '../../../src/core/observing/explanation.ts'
import { type Placement, UNPLACED } from '../../../src/core/workers/placement.ts'
import type { PlatformReport } from '../../../src/core/workers/platform-report.ts'
import { type StartFailure, startFailureText } from '../../../src/core/workers/start-failure.ts'
import type { Worker, WorkerLoad } from '../../../src/core/workers/worker.ts'
import type { WorkerProblem } from '../../../src/core/workers/worker-problem.ts'
import { aJob, anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

type Fields = Parameters<typeof aSnapshot>[0]

const context = (fields: Partial<ExplainContext> = {}): ExplainContext => ({
  capacity: { freeWorkers: null, bound: 'nothing' },
  startFailure: null,
  nowMs: NOW,
  ...fields,
})
/** The notes of an explanation, each with the commands of its actions behind it. */
function noteTexts({ notes }: Explanation): string[] {
  return notes.flatMap(({ text, actions }) => [
    text,
    ...actions.flatMap(action => actionCommand(action, 'endpoint' as EndpointId) ?? []),
  ])
}

const FULL = { capacity: { freeWorkers: 0, bound: 'the limit of 2 workers' } }
const one = { queued: 1, headQueuedAtMs: NOW - 3_000 }
/** One that has waited longer than the queue delay, which is 4 s. */
const late = { queued: 1, inProgress: 1, headQueuedAtMs: NOW - 5_000 }
const STARTING: Partial<WorkerLoad> = {
  state: 'STARTING',
  placedAtMs: NOW - 60_000,
  startedAtMs: null,
  readyAtMs: null,
  idleSinceMs: null,
}

const CHECK: WorkerProblem = { kind: 'check_failed', check: 'gpu', reason: 'no card' }

function waiting(reason: string) {
  return aQueued({ queuedAtMs: NOW - 4_000, reason })
}

/** A worker whose process or container could not be started. */
function neverStarted(failure: StartFailure) {
  return anExit(
    { startedAtMs: null, readyAtMs: null },
    { code: null, signal: null, cause: { kind: 'not_started', failure } },
  )
}

/** Failures of the driver or the settings before anything is started. */
function startFailures(): [WaitCause, string, Fields, Partial<ExplainContext>][] {
  const failures: [WaitCause, StartFailure][] = [
    ['image_error', { kind: 'folder_missing', folder: '/srv/x' }],
    ['engine_away', { kind: 'engine_away', how: 'lost', address: 'unix:///var/run/docker.sock', said: '' }],
    ['engine_away', { kind: 'engine_refused', said: 'Cannot connect to the Docker daemon at unix:///x' }],
    ['secret_missing', { kind: 'secrets_missing', names: ['HF'] }],
    ['model_error', { kind: 'model_failed', model: 'a/b', problem: { kind: 'access_refused' } }],
    ['volume_missing', { kind: 'volume_missing', volume: 'v1' }],
    ['settings_invalid', { kind: 'settings_invalid', problem: servingProblem({ PORT: '0' })! }],
  ]
  return failures.map(([cause, startFailure]) => [
    cause,
    `no worker can be started: ${startFailureText(startFailure)}`,
    { queue: one },
    { startFailure },
  ])
}

/** A situation for each cause, with what is said about it. */
/** A worker that starts, of which its platform reports this. */
function onPlatform(report: Partial<PlatformReport>): Partial<WorkerLoad> {
  const platform = { place: null, waits: null, leaves: null, ...report }
  return { state: 'STARTING', readyAtMs: null, startedAtMs: null, platform }
}

const situations: [cause: WaitCause, summary: string, fields: Fields, around?: Partial<ExplainContext>][] = [
  ['nothing_waits', 'no job is waiting', {}],
  ['running', '2 jobs running, none waiting', { queue: { inProgress: 2 } }],
  [
    'paused',
    'endpoint mine is paused: workersMax is 0, so jobs are accepted and wait',
    { queue: one, endpoint: { workersMax: 0 } },
  ],
  ...startFailures(),
  ['crash_loop', 'the last worker exited with code 1; the next one starts in 1 s', { queue: one, exits: [anExit()] }],
  [
    'crash_loop',
    'the last 2 workers crashed; the last one exited with code 1; the next one starts in 2 s',
    { queue: one, exits: [anExit(), anExit()] },
  ],
  [
    'crash_loop',
    'the last worker exited with code 1; worker w1 is being started, for 5 s',
    {
      queue: one,
      exits: [anExit({ exitedAtMs: NOW - 9_000 })],
      workers: [{ state: 'STARTING', startedAtMs: null, readyAtMs: null, placedAtMs: NOW - 5_000 }],
    },
  ],
  [
    'image_error',
    'the last worker could not be started: the container engine refuses it: manifest for a/b:1 not found; the next one starts in 1 s',
    { queue: one, exits: [neverStarted({ kind: 'engine_refused', said: 'manifest for a/b:1 not found' })] },
  ],
  [
    'out_of_memory',
    'the last worker exited with code 1 after it had used more than its 400 MB of memory; the next one starts in 1 s',
    { queue: one, exits: [anExit({}, { cause: { kind: 'out_of_memory', limitMb: 400 } })] },
  ],
  [
    'fitness_failed',
    'the last worker was ended because its check gpu failed: no card; the next one starts in 1 s',
    {
      queue: one,
      exits: [anExit({ stopReason: 'unhealthy', problem: CHECK })],
    },
  ],
  [
    'fitness_failed',
    'worker w1 is unhealthy, gets no job and is replaced: its check gpu failed: no card',
    { queue: one, workers: [{ state: 'STARTING', problem: CHECK }] },
  ],
  [
    'unhealthy',
    'worker w1 is unhealthy, gets no job and is replaced: it sent nothing for 35 s',
    { queue: one, workers: [{ problem: { kind: 'silent', forS: 35 } }] },
  ],
  [
    'hung_start',
    'the last worker was ended because it did not ask for a job within 420 s of its start; the next one starts in 1 s',
    {
      queue: one,
      exits: [anExit({ stopReason: 'hung_start', problem: { kind: 'hung_start', limitS: 420 } })],
    },
  ],
  [
    'never_healthy',
    'the last worker was ended because it was not healthy within 480 s of its start: nothing listens on port 80 (its variable PORT); the next one starts in 1 s',
    {
      queue: one,
      exits: [
        anExit({
          stopReason: 'never_healthy',
          problem: {
            kind: 'never_healthy',
            limitS: 480,
            health: { kind: 'not_listening', port: 80, variable: 'PORT' },
          },
        }),
      ],
    },
  ],
  ['worker_starting', 'worker w1 is being started, for 60 s', { queue: one, workers: [STARTING] }],
  [
    'worker_starting',
    'worker w1 downloads its image (43 %), for 12 s',
    { queue: one, workers: [{ ...STARTING, pullStartedAtMs: NOW - 12_000 }] },
    { pullPercent: () => 42.7 },
  ],
  [
    'worker_starting',
    'worker w1 downloads its image, for 12 s',
    { queue: one, workers: [{ ...STARTING, pullStartedAtMs: NOW - 12_000 }] },
  ],
  [
    'worker_starting',
    'worker w1 runs and has not asked for a job yet, for 59 s',
    { queue: one, workers: [{ ...STARTING, startedAtMs: NOW - 59_000 }] },
  ],
  ['worker_starting', 'worker w2 is being started, for 60 s', { queue: one, workers: [{ held: 1 }, STARTING] }],
  [
    'worker_restarting',
    '2 workers, 1 of an older version, finish 1 job and end before new ones start',
    {
      queue: one,
      endpoint: { workersMax: 2 },
      workers: [{ state: 'DRAINING', stopReason: 'outdated', held: 1, version: 0 }, { state: 'STOPPING' }],
    },
  ],
  [
    'max_reached',
    'workersMax is 1, and there is 1 worker with 1 running job',
    { queue: { ...one, inProgress: 1 }, endpoint: { workersMax: 1 }, workers: [{ held: 1 }] },
  ],
  [
    'max_reached',
    'workersMax is 2, and there are 2 workers with 3 running jobs; a job takes 12 s on average',
    {
      queue: { ...one, inProgress: 3 },
      endpoint: { workersMax: 2 },
      averageExecutionMs: 12_345,
      workers: [{ held: 1 }, { held: 2 }],
    },
  ],
  [
    'models_downloading',
    'model org/tiny is downloaded before a worker is started: 1.5 GB of 6.0 GB (25 %)',
    { queue: one, queuedWorkers: [{ ...waiting('model org/tiny is downloaded'), resource: 'models' }] },
    { download: { receivedBytes: 1.5e9, totalBytes: 6e9 } },
  ],
  [
    'models_downloading',
    'model org/tiny is downloaded before another worker is started: the list of its files is requested',
    {
      queue: { ...one, inProgress: 1 },
      workers: [{ held: 1 }],
      averageExecutionMs: 60_000,
      queuedWorkers: [{ ...waiting('model org/tiny is downloaded'), resource: 'models' }],
    },
    { download: { receivedBytes: 0, totalBytes: null } },
  ],
  ['no_capacity', 'there is no room for a worker: the limit of 2 workers', { queue: one }, FULL],
  [
    'no_capacity',
    'there is no room for a worker: all 2 GPUs of ADA_24 are taken',
    { queue: one, queuedWorkers: [waiting('all 2 GPUs of ADA_24 are taken')] },
  ],
  [
    'throttled',
    'more than 1 worker is wanted, and there is no room for another one: all 2 GPUs of ADA_24 are taken',
    {
      queue: { ...one, inProgress: 1 },
      workers: [{ held: 1 }],
      averageExecutionMs: 60_000,
      queuedWorkers: [waiting('all 2 GPUs of ADA_24 are taken')],
    },
  ],
  [
    'throttled',
    '1 worker is busy, and there is no room for the next one: all 2 GPUs of ADA_24 are taken',
    {
      queue: { ...one, headQueuedAtMs: NOW - 1_000, inProgress: 1 },
      workers: [{ held: 1 }],
      endpoint: { scaler: { type: 'QUEUE_DELAY', queueDelayS: 4 } },
      queuedWorkers: [waiting('all 2 GPUs of ADA_24 are taken')],
    },
  ],
  [
    'no_capacity',
    'worker w1 waits for a place on the cluster: no node of the cluster has room: 0/3 nodes are available',
    { queue: one, workers: [onPlatform({ waits: { kind: 'no_room', said: '0/3 nodes are available' } })] },
  ],
  [
    'throttled',
    '1 worker works, and another one has no place: worker w2 waits for a place on the cluster, and so does 1 other: no node of the cluster has room',
    {
      queue: { ...one, inProgress: 1 },
      averageExecutionMs: 600_000,
      workers: [{ held: 1 }, ...[1, 2].map(() => onPlatform({ waits: { kind: 'no_room', said: '' } }))],
      endpoint: { workersMax: 3, scaler: { type: 'REQUEST_COUNT', requestCount: 1 } },
    },
  ],
  [
    'worker_starting',
    'worker w2 is being started, for 60 s',
    {
      queue: one,
      workers: [onPlatform({ waits: { kind: 'no_room', said: '' } }), { ...onPlatform({}), placedAtMs: NOW - 60_000 }],
    },
  ],
  [
    'unschedulable',
    'worker w1 waits for a place on the cluster: no node of the cluster is of the kind that it asks for',
    { queue: one, workers: [onPlatform({ waits: { kind: 'no_such_node', said: '' } })] },
  ],
  [
    'cluster_quota',
    'worker w1 waits for a place on the cluster: a quota of the cluster refuses it: exceeded quota: gpus',
    { queue: one, workers: [onPlatform({ waits: { kind: 'platform_quota', said: 'exceeded quota: gpus' } })] },
  ],
  [
    'cluster_away',
    'worker w1 waits for a place on the cluster: the cluster does not respond',
    { queue: one, workers: [onPlatform({ waits: { kind: 'platform_away', said: '' } })] },
  ],
  [
    'volume_pending',
    'worker w1 waits for a place on the cluster: its network volume is not ready yet: claim models is not bound',
    { queue: one, workers: [onPlatform({ waits: { kind: 'volume_pending', said: 'claim models is not bound' } })] },
  ],
  [
    'volume_pending',
    'worker w1 waits for a place on the cluster: its network volume is not ready yet: not mounted',
    {
      queue: one,
      workers: [
        { ...onPlatform({ waits: { kind: 'volume_pending', said: 'not mounted' } }), placedAtMs: NOW - 60_000 },
      ],
    },
  ],
  [
    'node_lost',
    'worker w1 ran on node gpu-1, which is lost; 2 jobs of it go back once the cluster has given it up',
    {
      queue: one,
      endpoint: { workersMax: 1 },
      workers: [
        {
          state: 'DRAINING',
          stopReason: 'reclaimed',
          held: 2,
          platform: { place: null, waits: null, leaves: { kind: 'node_lost', node: 'gpu-1', said: '' } },
        },
      ],
    },
  ],
  ['low_priority', '3 queued jobs of low priority; they never start a worker', { queue: { queuedLowPriority: 3 } }],
  ['about_to_start', '1 job waiting; a worker is about to be started for mine', { queue: one }],
  [
    'about_to_start',
    '3 jobs waiting; frozen worker w1 is about to be thawed',
    { queue: { ...one, queuedLowPriority: 2 }, workers: [{ id: 'w1' as WorkerId, state: 'FROZEN' }] },
  ],
  [
    'running',
    '1 worker is ready; it is enough for the wait that the scaler allows',
    { queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] },
  ],
  [
    'running',
    '1 worker is ready; more are wanted',
    { queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }], averageExecutionMs: 60_000 },
  ],
  [
    'running',
    '1 worker is ready; more are wanted since the first job has waited longer than the queue delay of 4 s',
    { queue: late, workers: [{ held: 1 }], averageExecutionMs: 100 },
  ],
  [
    'running',
    '2 workers are ready; the first job has waited longer than the queue delay of 4 s; another one is started in 3 s if it still waits',
    {
      queue: { ...late, queued: 2, inProgress: 2 },
      averageExecutionMs: 100,
      workers: [{ held: 1 }, { held: 1, readyAtMs: NOW - 1_000 }],
    },
  ],
  [
    'running',
    '1 worker is ready; the first job has waited longer than the queue delay of 4 s, and there is a worker for each job',
    { queue: { ...late, inProgress: 0 }, workers: [{ held: 0 }], averageExecutionMs: 100 },
  ],
]

for (const [cause, summary, fields, around] of situations) {
  test(`a waiting job is explained: ${summary}`, () => {
    const explanation = explainEndpoint(aSnapshot(fields), context(around))
    assert.deepEqual([explanation.cause, explanation.summary], [cause, summary])
  })
}

test('a sleeping worker that waits behind a paused one of its endpoint is not said to be thawed in a moment', () => {
  const pause = { sinceMs: NOW, for: 'urgent' as EndpointId }
  const paused = { id: 'p' as WorkerId, held: 1, state: 'FROZEN', pause, wakeWaitsFor: 'its GPU 0 is in use' } as const
  const sleeper = { id: 's' as WorkerId, state: 'FROZEN', asleepAtMs: NOW - 9_000 } as const
  const { cause, summary } = explainEndpoint(aSnapshot({ queue: late, workers: [paused, sleeper] }), context())
  assert.deepEqual(
    [cause, summary],
    [
      'no_capacity',
      'worker s sleeps and wakes once it has its GPU memory again: paused worker p goes on before it: its GPU 0 is in use',
    ],
  )
})

test('a worker that is being resumed is what a job waits for, and not the limit of workers', () => {
  const suspension = { card: 'GPU-0', bytes: 1, processes: [] }
  const resuming = { id: 'r' as WorkerId, suspension, thawedAtMs: NOW - 2_000 }
  const given = (workers: readonly Partial<WorkerLoad>[]) =>
    explainEndpoint(aSnapshot({ queue: late, endpoint: { workersMax: workers.length }, workers }), context())
  const { cause, summary, advice } = given([resuming])
  assert.equal(cause, 'about_to_start')
  assert.match(summary, /^\d+ jobs? waiting; worker r gets its memory on its GPU again$/)
  assert.equal(advice, 'wait a moment')
  assert.equal(given([resuming, { id: 'b' as WorkerId, held: 1 }]).cause, 'max_reached', 'another one may take it')
  const pause = { sinceMs: NOW - 9_000, for: 'urgent' as EndpointId }
  assert.equal(given([{ ...resuming, pause, held: 1 }]).cause, 'max_reached', 'it goes on with its own job')
})

test('every cause that there is can be the explanation of something', () => {
  const reached = new Set<WaitCause>(situations.map(([cause]) => cause))
  reached.add(explainJob(aJob({ status: 'COMPLETED' }), aSnapshot({}), context()).cause)
  const busy = aSnapshot({ queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] })
  reached.add(explainJob(aJob(), busy, context(), { batchId: 'b' as BatchId, requestsAhead: 3 }).cause)
  reached.add(explainJob(aJob({ lostAttempts: 2 }), busy, context()).cause)
  const paused = { held: 1, state: 'FROZEN', pause: { sinceMs: NOW, for: 'urgent' as EndpointId } } as const
  const preempted = aSnapshot({ queue: { ...one, queued: 0, inProgress: 1 }, workers: [paused] })
  reached.add(explainEndpoint(preempted, context()).cause)
  reached.add('rollout_stopped') // See explain-rollout.test.ts.
  // See test/app/observing/explainer.test.ts.
  for (const ofStore of ['store_damaged', 'store_full'] as const) reached.add(ofStore)
  assert.deepEqual([...reached].sort(), [...WAIT_CAUSES].sort())
})

test('each cause has a section in the guide, and there are no others', () => {
  const guide = (name: string) => readFileSync(new URL(`../../../docs/guides/${name}.md`, import.meta.url), 'utf8')
  const sections = [...guide('troubleshooting').matchAll(/^### `(\w+)`$/gm)].map(([, cause]) => cause)
  assert.deepEqual(sections.sort(), [...WAIT_CAUSES].sort())
  for (const cause of WAIT_CAUSES)
    assert.ok(guide('why').includes(`[\`${cause}\`](troubleshooting.md#${cause})`), cause)
})

test('whatever a job waits for, there is something to do about it and something that shows it', () => {
  for (const [cause, summary, fields, around] of situations) {
    const { advice, facts } = explainEndpoint(aSnapshot(fields), context(around))
    if (fields.queue === undefined || summary.endsWith('none waiting')) continue
    assert.ok(advice !== null && advice.length > 5, `${cause} has no advice`)
    assert.ok(facts.length > 0 && facts.every(line => line !== ''), `${cause} has no facts`)
  }
})

test('of many workers the facts name a few and counts the rest', () => {
  const workers = Array.from({ length: 12 }, () => STARTING)
  const { facts } = explainEndpoint(aSnapshot({ queue: one, workers, endpoint: { workersMax: 20 } }), context())
  assert.deepEqual([facts.length, facts[5]], [6, 'and 7 more'])
})

test('work that was to be done on GPUs and is done on the CPU is noted', () => {
  const compute = { kind: 'gpu', pools: ['ADA_24'], excludedTypes: [], count: 1 } as unknown as Endpoint['compute']
  const notes = (placement: Placement | null) =>
    explainEndpoint(aSnapshot({ endpoint: { compute }, workers: [{ placement }] }), context()).notes.map(
      ({ text }) => text,
    )
  assert.deepEqual(notes(UNPLACED), [
    'endpoint mine asks for GPUs (ADA_24), and 1 worker of it has none and runs on the CPU',
  ])
  const card = { index: 0, uuid: null, type: 'card', memoryGb: 24 }
  assert.deepEqual(notes({ ...UNPLACED, gpus: [card], pool: 'ADA_24' }), [])
  assert.deepEqual(notes(null), [])
  const none = explainEndpoint(aSnapshot({ endpoint: { compute }, queue: one }), context({ noGpus: true }))
  assert.deepEqual(none.notes, [plainNote('this machine has no GPU, so workers of mine run on the CPU')])
})

test('one setting is advised at most, the one for which attempts waited longest, with the commands that change it and say what it costs', () => {
  const times = (queuedAtMs: number, waitMs: number, runMs: number, cold = false) => {
    const startedAtMs = queuedAtMs + waitMs
    return { queuedAtMs, startedAtMs, finishedAtMs: startedAtMs + runMs, cold }
  }
  const exits = [1, 2].map(() => anExit({ stopReason: 'idle', placedAtMs: NOW - 90_000, readyAtMs: NOW - 60_000 }))
  const notes = (endpoint: Partial<Endpoint>, attempts: NonNullable<ExplainContext['attempts']>) =>
    noteTexts(explainEndpoint(aSnapshot({ exits, endpoint }), context({ attempts })))
  const inARow = Array.from({ length: 10 }, (_, n) => times(0, n * 60_000, 60_000))
  assert.deepEqual(notes({ workersMax: 1 }, inARow), [
    'of the last 10 attempts of mine 9 waited, 45 min in all, while its only worker was busy',
    'runyard endpoints update endpoint --max 2',
    'runyard whatif endpoint --workers-max 2',
  ])
  const apart = Array.from({ length: 10 }, (_, n) => times(n * 60_000, 30_000, 10_000, true))
  assert.deepEqual(notes({ workersMax: 1 }, apart), [
    'of the last 10 attempts of mine 9 waited, 5 min in all, for the start of a worker soon after one had ended, idle for 10 s',
    'runyard endpoints update endpoint --idle-timeout 30',
    'runyard whatif endpoint --idle-timeout 30',
  ])
  assert.match(
    notes({}, []).join(),
    /^workers of mine take 30 s to start/,
    'without attempts the ends of workers say it',
  )
})

test('an idle timeout that is shorter than a start is noted once idle workers have ended, with the command that changes it', () => {
  const idle = (startS: number) =>
    anExit({ stopReason: 'idle', placedAtMs: NOW - 100_000, readyAtMs: NOW - 100_000 + startS * 1_000 })
  const notes = (exits: Worker[], endpoint: Partial<Endpoint> = {}) =>
    noteTexts(explainEndpoint(aSnapshot({ exits, endpoint: { idleTimeoutS: 10, ...endpoint } }), context()))
  assert.deepEqual(notes([idle(25), idle(25)]), [
    'workers of mine take 25 s to start and end after 10 s without work, so what comes soon after waits for a start; ' +
      'a longer idle timeout may cost less than it saves',
    'runyard endpoints update endpoint --idle-timeout 25',
  ])
  assert.deepEqual(notes([idle(25)]), [], 'one may be the end of all work')
  assert.deepEqual(notes([idle(10), idle(10)]), [])
  assert.deepEqual(notes([idle(25), idle(25)], { flashboot: 'FLASHBOOT' }), [], 'a frozen worker needs no start')
  assert.deepEqual(notes([idle(25), idle(25)], { version: 2 }), [], 'another release may start faster')
  assert.deepEqual(notes([idle(25), idle(25)], { scaler: { type: 'REQUEST_COUNT', requestCount: 1 } }), [])
})

test('a worker that has the port of the next ones is named: as the cause, and as a note while it works', () => {
  const cause = 'exited with code 1; port 8001, which its variable VLLM_PORT names, is in use by another worker'
  const exits = [anExit({}, { suspicion: { port: 8001, variable: 'VLLM_PORT', with: 'worker' } })]
  const alone = explainEndpoint(aSnapshot({ queue: one, exits }), context())
  assert.ok(alone.summary.includes(cause), alone.summary)
  assert.match(alone.advice ?? '', /workersMax to 1/)
  const beside = explainEndpoint(aSnapshot({ queue: one, exits, workers: [{}] }), context())
  assert.match(beside.notes[0]?.text ?? '', /^another worker exited with code 1; port 8001, .* workersMax to 1/)
})

test('a worker that goes on without its port is named with the one that has it, and with the setting', () => {
  const conflict = { port: 8000, variable: null, with: 'worker', worker: 'w1' as WorkerId } as const
  const { cause, notes } = explainEndpoint(
    aSnapshot({ workers: [{}, {}] }),
    context({ portConflicts: new Map([['w2' as WorkerId, conflict]]) }),
  )
  assert.equal(cause, 'nothing_waits')
  assert.match(
    notes[0]?.text ?? '',
    /^worker w2: port 8000, on which it tried to listen, is in use by worker w1 of the same endpoint; .*--worker-network open/,
  )
})

test('an endpoint that is to keep workers ready and cannot says so although no job waits', () => {
  const exits = [anExit()]
  const explain = (fields: Fields, around?: Partial<ExplainContext>) => {
    const { cause, summary } = explainEndpoint(aSnapshot(fields), context(around))
    return [cause, summary]
  }
  const kept = { endpoint: { workersMin: 1 } }
  const but = '1 worker is to be kept ready, but'
  assert.deepEqual(explain({ ...kept, exits }), [
    'crash_loop',
    `${but} the last worker exited with code 1; the next one starts in 1 s`,
  ])
  const failure: Partial<ExplainContext> = { startFailure: { kind: 'other', problem: 'x' } }
  assert.deepEqual(explain(kept, failure), ['image_error', `${but} no worker can be started: x`])
  assert.match(explain(kept, FULL).join(), /^no_capacity,1 worker is to be kept ready, but there is no room/)
  const nothing = ['nothing_waits', 'no job is waiting']
  assert.deepEqual(explain({ exits }), nothing, 'none is to be kept ready')
  assert.deepEqual(explain({ ...kept, workers: [{}] }, failure), nothing, 'one is ready')
  assert.deepEqual(explain({ endpoint: { workersMin: 1, workersMax: 0 } }, failure), nothing, 'it is paused')
  const busy = aSnapshot({ ...kept, queue: { inProgress: 1 }, workers: [{ held: 1, version: 0 }] })
  const { cause, notes } = explainEndpoint(busy, context(failure))
  assert.deepEqual([cause, notes.length], ['running', 1], 'what works needs nobody')
})

test('a request of a batch waits for the turn of its batch where workers work, and for what they lack where they do not', () => {
  const batch = { batchId: 'b' as BatchId, requestsAhead: 3 }
  const explain = (fields: Fields) => explainJob(aJob(), aSnapshot({ queue: one, ...fields }), context(), batch)
  const turn = '; batch b takes turns with the other jobs, and 3 of its requests come before this one'
  const full = explain({ queue: { ...one, inProgress: 1 }, endpoint: { workersMax: 1 }, workers: [{ held: 1 }] })
  const max = 'workersMax is 1, and there is 1 worker with 1 running job'
  assert.deepEqual([full.cause, full.summary], ['batch_turn', `${max}${turn}`])
  assert.equal(full.advice, 'wait, or raise workersMax')
  assert.equal(explain({ workers: [{ held: 1 }] }).cause, 'batch_turn')
  assert.equal(explain({ endpoint: { workersMax: 0 } }).cause, 'paused')
  assert.equal(explain({ workers: [{ state: 'STARTING' }] }).cause, 'worker_starting')
  const many = { ...batch, requestsAhead: MAX_REQUESTS_AHEAD }
  const working = aSnapshot({ queue: one, workers: [{ held: 1 }] })
  assert.match(
    explainJob(aJob(), working, context(), many).summary,
    /and at least 1000 of its requests come before this one$/,
  )
})

test('of several causes the one is named whose fix would change something', () => {
  const exits = [anExit()]
  const cause = (fields: Fields, around?: Partial<ExplainContext>) =>
    explainEndpoint(aSnapshot({ queue: one, ...fields }), context(around)).cause
  const problem: Partial<ExplainContext> = { startFailure: { kind: 'other', problem: 'x' }, ...FULL }
  assert.equal(cause({ endpoint: { workersMax: 0 }, exits }, problem), 'paused')
  assert.equal(cause({ exits }, problem), 'image_error')
  assert.equal(cause({ exits }, FULL), 'crash_loop')
  assert.equal(cause({ workers: [{ state: 'STARTING' }] }, FULL), 'worker_starting')
  assert.equal(cause({ endpoint: { workersMax: 1 }, workers: [{ held: 1 }] }, FULL), 'max_reached')
})

test('workers of another version or that still work are no crash loop', () => {
  const cause = (fields: Fields) => explainEndpoint(aSnapshot({ queue: one, ...fields }), context()).cause
  assert.equal(cause({ exits: [anExit({ version: 0 })] }), 'about_to_start')
  assert.equal(cause({ exits: [anExit({ stopReason: 'idle' })] }), 'about_to_start')
  assert.equal(cause({ exits: [anExit()], workers: [{ held: 1 }] }), 'running')
  assert.equal(cause({ exits: [anExit()], workers: [{ held: 1, version: 0 }] }), 'crash_loop')
})

test('a crash loop shows the last output, since when, and what to do', () => {
  const exits = [anExit({ exitedAtMs: NOW - 5_000 }, { lastLines: ['a', "No module named 'x'"] })]
  const { summary, advice, sinceMs, facts } = explainEndpoint(aSnapshot({ queue: one, exits }), context())
  assert.equal(summary, 'the last worker exited with code 1')
  assert.match(advice!, /install the Python module 'x'/)
  assert.deepEqual([sinceMs, facts], [NOW - 5_000, ['a', "No module named 'x'"]])
})

test('a job says what its endpoint waits for, how often it was lost, where it runs, and how it ended', () => {
  const paused = aSnapshot({ queue: one, endpoint: { workersMax: 0 } })
  const waiting = explainJob(aJob({ lostAttempts: 1 }), paused, context())
  assert.equal(waiting.cause, 'paused')
  assert.match(waiting.summary, /; it was queued again after 1 lost attempt\(s\)$/)
  const alone = explainJob(aJob({ lostAttempts: 2 }), paused, context())
  assert.equal(alone.cause, 'paused')
  assert.match(alone.summary, /; it runs alone, because its worker was lost twice while it ran$/)
  assert.equal(explainJob(aJob({ queuedAtMs: NOW - 7 }), aSnapshot({}), context()).sinceMs, NOW - 7)
  const fields = { status: 'IN_PROGRESS', attempt: 3, workerId: 'w7' as WorkerId, startedAtMs: NOW - 9 } as const
  const running = explainJob(aJob(fields), paused, context())
  assert.deepEqual(
    [running.cause, running.summary, running.sinceMs],
    ['running', 'attempt 3 runs on worker w7', NOW - 9],
  )
  const failed = explainJob(aJob({ status: 'FAILED', error: 'boom', finishedAtMs: NOW }), paused, context())
  assert.deepEqual([failed.cause, failed.summary, failed.sinceMs], ['finished', 'the job is FAILED: boom', NOW])
  const thrown = JSON.stringify({ error_type: 'Error', error_message: 'no such model', error_traceback: 'Error: ...' })
  const ofSdk = explainJob(aJob({ status: 'FAILED', error: thrown }), paused, context())
  assert.equal(ofSdk.summary, 'the job is FAILED: Error: no such model')
  assert.equal(explainJob(aJob({ status: 'CANCELLED' }), paused, context()).summary, 'the job is CANCELLED')
})

test('a limit of the account is what a job waits for, with what helps', () => {
  const reason = 'the limit of 2 workers that its account may have at once is reached'
  const queued = aQueued({ queuedAtMs: NOW - 4_000, reason, resource: 'account_workers' })
  const explanation = explainEndpoint(aSnapshot({ queue: late, queuedWorkers: [queued] }), context())
  assert.match(explanation.summary, /limit of 2 workers that its account may have/)
  assert.match(explanation.advice ?? '', /ask the operator for a higher limit/)
})
