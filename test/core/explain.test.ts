import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adviceFor, type ExplainContext, explainEndpoint, explainJob, type WaitCause } from '../../src/core/explain.ts'
import type { BatchId, WorkerId } from '../../src/core/ids.ts'
import type { WorkerExit } from '../../src/core/worker.ts'
import { aJob, anExit, aSnapshot, NOW } from '../support/snapshots.ts'

type Fields = Parameters<typeof aSnapshot>[0]

const context = (fields: Partial<ExplainContext> = {}): ExplainContext => ({
  ...{ capacity: { freeWorkers: null, bound: 'nothing' }, startProblem: null, nowMs: NOW },
  ...fields,
})
const FULL = { capacity: { freeWorkers: 0, bound: 'the limit of 2 workers' } }
const one = { queued: 1, headQueuedAtMs: NOW - 3_000 }

/** A situation for each cause, with what is said about it. */
const situations: [cause: WaitCause, summary: string, fields: Fields, around?: Partial<ExplainContext>][] = [
  ['nothing_waits', 'no job is waiting', {}],
  ['running', '2 jobs running, none waiting', { queue: { inProgress: 2 } }],
  [
    'paused',
    'mine is paused: workersMax is 0, so jobs are accepted and wait',
    {
      ...{ queue: one, endpoint: { workersMax: 0 } },
    },
  ],
  [
    'image_error',
    'no worker can be started: there is no folder',
    { queue: one },
    { startProblem: 'there is no folder' },
  ],
  [
    'crash_loop',
    'the last 2 worker(s) ended by themselves: exited with code 1; the next one starts in 2 s',
    { queue: one, exits: [anExit(), anExit()] },
  ],
  [
    'worker_starting',
    'worker w1 is being started, for 60 s',
    {
      ...{ queue: one, workers: [{ state: 'STARTING', startedAtMs: null }] },
    },
  ],
  [
    'worker_starting',
    'worker w1 runs and has not asked for a job yet, for 59 s',
    {
      ...{ queue: one, workers: [{ state: 'STARTING' }] },
    },
  ],
  [
    'worker_starting',
    'worker w2 is being started, for 60 s',
    {
      ...{ queue: one, workers: [{ held: 1 }, { state: 'STARTING', startedAtMs: null }] },
    },
  ],
  [
    'worker_restarting',
    '2 worker(s) finish and end before new ones start (outdated)',
    {
      ...{ queue: one, workers: [{ state: 'DRAINING', stopReason: 'outdated' }, { state: 'STOPPING' }] },
    },
  ],
  [
    'max_reached',
    'all 1 workers are busy with 1 job',
    {
      ...{ queue: { ...one, inProgress: 1 }, endpoint: { workersMax: 1 }, workers: [{ held: 1 }] },
    },
  ],
  ['no_capacity', 'there is no room for another worker: the limit of 2 workers', { queue: one }, FULL],
  ['low_priority', '3 jobs of low priority wait; they never start a worker', { queue: { queuedLowPriority: 3 } }],
  ['about_to_start', '1 job waiting; a worker is about to be started for mine', { queue: one }],
  [
    'running',
    '1 worker(s) work on the queue; their number is enough for the wait that the scaler allows',
    {
      ...{ queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] },
    },
  ],
]

for (const [cause, summary, fields, around] of situations) {
  test(`a waiting job is explained: ${summary}`, () => {
    const explanation = explainEndpoint(aSnapshot(fields), context(around))
    assert.deepEqual([explanation.cause, explanation.summary], [cause, summary])
  })
}

test('every cause that there is can be the explanation of something', () => {
  const reached = new Set<WaitCause>(situations.map(([cause]) => cause))
  reached.add(explainJob(aJob({ status: 'COMPLETED' }), aSnapshot({}), context()).cause)
  const busy = aSnapshot({ queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] })
  reached.add(explainJob(aJob(), busy, context(), { batchId: 'b' as BatchId, before: 3 }).cause)
  const all: Record<WaitCause, true> = {
    ...{ nothing_waits: true, paused: true, image_error: true, crash_loop: true, worker_starting: true },
    ...{ worker_restarting: true, max_reached: true, no_capacity: true, low_priority: true, about_to_start: true },
    ...{ batch_turn: true, running: true, finished: true },
  }
  assert.deepEqual([...reached].sort(), Object.keys(all).sort())
})

test('a request of a batch waits for the turn of its batch where workers work, and for what they lack where they do not', () => {
  const batch = { batchId: 'b' as BatchId, before: 3 }
  const explain = (fields: Fields) => explainJob(aJob(), aSnapshot({ queue: one, ...fields }), context(), batch)
  const turn = '; batch b takes turns with the other jobs, and 3 of its requests come before this one'
  const full = explain({ queue: { ...one, inProgress: 1 }, endpoint: { workersMax: 1 }, workers: [{ held: 1 }] })
  assert.deepEqual([full.cause, full.summary], ['batch_turn', `all 1 workers are busy with 1 job${turn}`])
  assert.equal(full.action, 'wait, or raise workersMax')
  assert.equal(explain({ workers: [{ held: 1 }] }).cause, 'batch_turn')
  assert.equal(explain({ endpoint: { workersMax: 0 } }).cause, 'paused')
  assert.equal(explain({ workers: [{ state: 'STARTING' }] }).cause, 'worker_starting')
})

test('of several causes the one is named whose mending would change something', () => {
  const exits = [anExit()]
  const cause = (fields: Fields, around?: Partial<ExplainContext>) =>
    explainEndpoint(aSnapshot({ queue: one, ...fields }), context(around)).cause
  const problem = { startProblem: 'x', ...FULL }
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
  const { summary, action, sinceMs, evidence } = explainEndpoint(aSnapshot({ queue: one, exits }), context())
  assert.equal(summary, 'the last 1 worker(s) ended by themselves: exited with code 1')
  assert.match(action!, /install the Python module 'x'/)
  assert.deepEqual([sinceMs, evidence], [NOW - 5_000, ['a', "No module named 'x'"]])
})

test('each cause that a person can mend says how, and the others ask for nothing', () => {
  const asks = new Map(
    situations.map(([cause, , fields, around]) => [cause, explainEndpoint(aSnapshot(fields), context(around)).action]),
  )
  for (const cause of ['paused', 'image_error', 'crash_loop', 'max_reached', 'no_capacity', 'low_priority'] as const) {
    assert.ok(asks.get(cause), cause)
  }
  for (const cause of ['nothing_waits', 'worker_starting', 'worker_restarting', 'about_to_start'] as const) {
    assert.equal(asks.get(cause), null, cause)
  }
})

test('a job says what its endpoint waits for, how often it was lost, where it runs, and how it ended', () => {
  const paused = aSnapshot({ queue: one, endpoint: { workersMax: 0 } })
  const waiting = explainJob(aJob({ lostAttempts: 2 }), paused, context())
  assert.equal(waiting.cause, 'paused')
  assert.match(waiting.summary, /; it was queued again after 2 lost attempt\(s\)$/)
  assert.equal(explainJob(aJob({ queuedAtMs: NOW - 7 }), aSnapshot({}), context()).sinceMs, NOW - 7)
  const fields = { status: 'IN_PROGRESS', attempt: 3, workerId: 'w7' as WorkerId, startedAtMs: NOW - 9 } as const
  const running = explainJob(aJob(fields), paused, context())
  assert.deepEqual(
    [running.cause, running.summary, running.sinceMs],
    ['running', 'attempt 3 runs on worker w7', NOW - 9],
  )
  const failed = explainJob(aJob({ status: 'FAILED', error: 'boom', finishedAtMs: NOW }), paused, context())
  assert.deepEqual([failed.cause, failed.summary, failed.sinceMs], ['finished', 'the job is FAILED: boom', NOW])
  assert.equal(explainJob(aJob({ status: 'CANCELLED' }), paused, context()).summary, 'the job is CANCELLED')
})

const ends: [what: string, exit: Partial<WorkerExit>, advice: RegExp][] = [
  ['a missing Python module', { lastLines: ["ModuleNotFoundError: No module named 'runpod'"] }, /pip install runpod\)/],
  ['a missing package', { lastLines: ["Error: Cannot find package 'left-pad' imported from"] }, /npm install left-pad/],
  ['a missing module of Node', { lastLines: ["Error: Cannot find module 'zod'"] }, /npm install zod/],
  [
    'a file that Python cannot open',
    { lastLines: ["python3: can't open file '/x/handler.py'"] },
    /name files that exist/,
  ],
  ['a folder that is gone', { lastLines: ['sh: No such file or directory'] }, /name files that exist/],
  ['a kill from outside', { code: null, signal: 'SIGKILL' }, /often because memory ran out/],
  ['an end without an error', { code: 0 }, /must call start\(\) and keep running/],
  ['anything else', { code: 3, lastLines: ['ValueError: x'] }, /read its output/],
]

for (const [what, exit, advice] of ends) {
  test(`after ${what} there is advice`, () => {
    assert.match(adviceFor({ code: 1, signal: null, cause: 'ended', lastLines: [], ...exit })!, advice)
  })
}

test('a file that a command names and that is not there is no package to install', () => {
  const lastLines = ["Error: Cannot find module '/srv/worker/handler.mjs'"]
  assert.match(adviceFor({ code: 1, signal: null, cause: 'ended', lastLines })!, /name files that exist/)
})
