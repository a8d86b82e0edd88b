import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Scaler } from '../../../src/core/endpoints/endpoint.ts'
import { currentBackoff, desiredWorkers, type EndpointSnapshot, idleWorkers } from '../../../src/core/scaling/scale.ts'
import { crashBackoff, crashed, takesJobs, WORKER_STATES, type Worker } from '../../../src/core/workers/worker.ts'
import { anExit, aSnapshot, aWorker, NOW } from '../../support/snapshots.ts'

const delay = (queueDelayS: number): Scaler => ({ type: 'QUEUE_DELAY', queueDelayS })
const count = (requestCount: number): Scaler => ({ type: 'REQUEST_COUNT', requestCount })

type Fields = Parameters<typeof aSnapshot>[0]

const TWENTY: Fields = { endpoint: { workersMax: 50 }, queue: { queued: 20 } }
const MANY: Fields = { endpoint: { workersMax: 50 }, averageExecutionMs: 60_000 }

/** Desired number of workers for a snapshot, and the time until its next check, from now. */
const decisions: [what: string, fields: Fields, desired: number, wakeInMs: number | null][] = [
  ['nothing to do', {}, 0, null],
  ['nothing to do but a minimum', { endpoint: { workersMin: 2 } }, 2, null],
  ['a first job', { queue: { queued: 1 } }, 1, null],
  ['a first job that waits for long', { queue: { queued: 1, headQueuedAtMs: NOW - 60_000 } }, 1, null],
  ['two jobs that wait for long', { queue: { queued: 2, headQueuedAtMs: NOW - 60_000 } }, 2, null],
  [
    'two jobs that wait for long, and one that runs on a worker for two',
    {
      queue: { queued: 2, inProgress: 1, headQueuedAtMs: NOW - 60_000 },
      workers: [{ capacity: 2, state: 'STARTING' }],
    },
    2,
    null,
  ],
  ['a job of low priority', { queue: { queuedLowPriority: 5 } }, 0, null],
  ['jobs that all run', { queue: { inProgress: 9 }, averageExecutionMs: 60_000 }, 1, null],
  [
    'a job whose worker makes room for another endpoint after it',
    { queue: { inProgress: 1 }, workers: [{ state: 'DRAINING', stopReason: 'evicted', held: 1 }] },
    0,
    null,
  ],
  [
    'a job whose worker has grown beyond its share and ends after it',
    { queue: { inProgress: 1 }, workers: [{ state: 'DRAINING', stopReason: 'over_share', held: 1 }] },
    0,
    null,
  ],
  [
    'such a job, and one of a worker of an older release',
    {
      queue: { inProgress: 2 },
      workers: [
        { state: 'DRAINING', stopReason: 'evicted', held: 1 },
        { state: 'DRAINING', stopReason: 'outdated', held: 1 },
      ],
    },
    1,
    null,
  ],
  ['a pause', { endpoint: { workersMax: 0 }, queue: { queued: 5 } }, 0, null],
  ['a head that waited one delay', { queue: { queued: 9, headQueuedAtMs: NOW - 4_000 } }, 2, 4_000],
  ['a head just before its next delay', { queue: { queued: 9, headQueuedAtMs: NOW - 7_999 } }, 2, 1],
  ['a head that waited for long', { queue: { queued: 9, headQueuedAtMs: NOW - 400_000 } }, 3, null],
  ['a head of the future', { queue: { queued: 2, headQueuedAtMs: NOW + 50 } }, 1, 4_050],
  [
    'a half-second delay',
    { endpoint: { scaler: delay(0.5) }, queue: { queued: 3, headQueuedAtMs: NOW - 600 } },
    2,
    400,
  ],
  ['quick jobs', { queue: { queued: 40 }, averageExecutionMs: 100 }, 1, null],
  ['one job too many for one worker', { queue: { queued: 42 }, averageExecutionMs: 100 }, 2, null],
  ['slow jobs', { queue: { queued: 2 }, averageExecutionMs: 60_000 }, 2, null],
  ['slow jobs on top of running ones', { queue: { queued: 1, inProgress: 2 }, averageExecutionMs: 60_000 }, 3, null],
  ['more slow jobs than the maximum', { queue: { queued: 20 }, averageExecutionMs: 60_000 }, 3, null],
  [
    'slow jobs and a worker for four at once',
    {
      queue: { queued: 4, inProgress: 4 },
      averageExecutionMs: 60_000,
      workers: [{ capacity: 4 }],
    },
    2,
    null,
  ],
  ['jobs of just under the delay', { ...TWENTY, averageExecutionMs: 3_900 }, 10, null],
  ['jobs of the delay', { ...TWENTY, averageExecutionMs: 4_000 }, 10, null],
  ['jobs of just over the delay', { ...TWENTY, averageExecutionMs: 4_100 }, 11, null],
  [
    'slow jobs, and one worker that asked for fifty beside two that take one',
    { ...MANY, queue: { queued: 100 }, workers: [{ capacity: 50 }, { capacity: 1 }, { capacity: 1 }] },
    45,
    184_000,
  ],
  [
    'slow jobs, and a worker that takes four beside one that starts',
    { ...MANY, queue: { queued: 16 }, workers: [{ capacity: 4 }, { capacity: 1, state: 'STARTING' }] },
    4,
    null,
  ],
  [
    'slow jobs, where the workers that have ended took four at once',
    { ...MANY, queue: { queued: 16 }, exits: [anExit({ capacity: 4, stopReason: 'idle' })] },
    4,
    null,
  ],
  ['jobs that take no time', { queue: { queued: 4_000 }, averageExecutionMs: 0 }, 1, null],
  ['one request each', { endpoint: { scaler: count(1) }, queue: { queued: 2, inProgress: 1 } }, 3, null],
  ['four requests each, four there', { endpoint: { scaler: count(4) }, queue: { queued: 4 } }, 1, null],
  ['four requests each, five there', { endpoint: { scaler: count(4) }, queue: { queued: 4, inProgress: 1 } }, 2, null],
  ['too many requests', { endpoint: { scaler: count(1) }, queue: { queued: 50 } }, 3, null],
  ['suspects, which need a worker each', { queue: { queued: 3, suspectsQueued: 2 }, averageExecutionMs: 100 }, 3, null],
  ['suspects beyond the maximum', { queue: { queued: 9, suspectsQueued: 9 } }, 3, null],
  [
    'a suspect that runs and jobs beside it',
    { endpoint: { scaler: count(4) }, queue: { queued: 4, inProgress: 1, suspectsInProgress: 1 } },
    2,
    null,
  ],
  ['requests of low priority', { endpoint: { scaler: count(1) }, queue: { queuedLowPriority: 5 } }, 0, null],
]

for (const [what, fields, desired, wakeInMs] of decisions) {
  test(`${what}: ${desired} worker(s)`, () => {
    const wakeAtMs = wakeInMs === null ? null : NOW + wakeInMs
    assert.deepEqual(desiredWorkers(aSnapshot(fields), NOW), { desired, wakeAtMs })
  })
}

const SNAPSHOTS: fc.Arbitrary<EndpointSnapshot> = fc
  .record({
    scaler: fc.oneof(
      fc.integer({ min: 1, max: 20 }).map(count),
      fc.integer({ min: 1, max: 40 }).map(n => delay(n / 2)),
    ),
    range: fc.tuple(fc.nat(6), fc.nat(6)),
    queue: fc.record({
      queued: fc.nat(60),
      queuedLowPriority: fc.nat(9),
      inProgress: fc.nat(20),
      waited: fc.nat(90_000),
    }),
    averageExecutionMs: fc.option(fc.nat(120_000)),
    workers: fc.array(
      fc.record({
        capacity: fc.integer({ min: 1, max: 8 }),
        held: fc.nat(3),
        state: fc.constantFrom('STARTING', 'READY', 'READY', 'DRAINING', 'STOPPING'),
        upMs: fc.nat(90_000),
      }),
      { maxLength: 4 },
    ),
  })
  .map(({ scaler, range, queue: { waited, ...queue }, averageExecutionMs, workers }) =>
    aSnapshot({
      endpoint: { scaler, workersMin: Math.min(...range), workersMax: Math.max(...range) },
      queue: { ...queue, headQueuedAtMs: queue.queued > 0 ? NOW - waited : null },
      averageExecutionMs,
      workers: workers.map(({ upMs, ...worker }) =>
        worker.state === 'STARTING' ? { ...worker, held: 0, readyAtMs: null } : { ...worker, readyAtMs: NOW - upMs },
      ),
    }),
  )

/** Jobs that take 100 ms on average, of which `running` take much longer: a forecast that calls one worker enough. */
const overrun = (
  queued: number,
  waitedMs: number,
  workers: NonNullable<Fields['workers']>,
  fields: Fields = {},
): Fields => ({
  averageExecutionMs: 100,
  endpoint: { workersMax: 9 },
  workers,
  queue: {
    queued,
    inProgress: workers.filter(({ held = 0 }) => held > 0).length ?? 0,
    headQueuedAtMs: NOW - waitedMs,
  },
  ...fields,
})
const busySince = (agoMs: number) => ({ held: 1, readyAtMs: NOW - agoMs, idleSinceMs: null })
const BUSY = busySince(58_000)
const IDLE = { readyAtMs: NOW - 58_000 }
const STARTING = { state: 'STARTING', readyAtMs: null, idleSinceMs: null } as const

/** The same where the head of the line waits longer than the forecast said. */
const overdue: typeof decisions = [
  ['a head that has not waited for a delay', overrun(5, 3_000, [BUSY]), 1, 1_000],
  ['a head that has waited for a delay', overrun(5, 4_000, [BUSY]), 2, 4_000],
  ['a head that has waited for a delay with one more on its way', overrun(5, 4_000, [BUSY, STARTING]), 2, 4_000],
  ['a head that has waited for two delays', overrun(5, 9_000, [BUSY, STARTING]), 3, 3_000],
  ['a head that has waited with the one that came for it', overrun(5, 9_000, [BUSY, busySince(2_000)]), 3, 3_000],
  ['a head that has waited while more were busy than were needed', overrun(5, 4_000, [BUSY, BUSY, BUSY]), 4, 4_000],
  ['a head that has waited for ever', overrun(2, 900_000, [BUSY]), 3, null],
  ['a last job that has waited for a delay', overrun(1, 4_000, [BUSY]), 2, null],
  ['a head that has waited for all of a start', overrun(5, 60_000, [STARTING]), 1, null],
  ['a head that has waited since the end of a start', overrun(5, 60_000, [busySince(5_000)]), 2, 3_000],
  ['a head that an idle worker is about to take', overrun(1, 9_000, [IDLE]), 1, null],
  [
    'a head that has waited while workers came and went',
    overrun(5, 9_000, [STARTING, { ...IDLE, readyAtMs: NOW - 100 }], {
      exits: [anExit({ stopReason: 'refresh', stopRequestedAtMs: NOW - 2_000, readyAtMs: NOW - 5_000 })],
    }),
    1,
    3_000,
  ],
  [
    'a head that has waited for longer while workers came and went',
    overrun(5, 9_000, [{ ...IDLE, readyAtMs: NOW - 100 }], {
      exits: [anExit({ stopReason: 'refresh', stopRequestedAtMs: NOW - 2_000, readyAtMs: NOW - 8_500 })],
    }),
    2,
    3_500,
  ],
  [
    'a head that has waited while workers crashed',
    overrun(5, 60_000, [busySince(100)], { exits: [anExit({ readyAtMs: NOW - 50_000 })] }),
    1,
    3_900,
  ],
  ['a batch that has waited for its turn', overrun(1_000, 4_000, [{ ...BUSY, capacity: 100 }]), 2, 4_000],
  [
    'a head that has waited while a worker is not free of a stopped job',
    { ...overrun(1, 4_000, [BUSY]), queue: { queued: 1, inProgress: 0, headQueuedAtMs: NOW - 4_000 } },
    2,
    null,
  ],
]

for (const [what, fields, desired, wakeInMs] of overdue) {
  test(`${what}, although one worker should be enough: ${desired} worker(s)`, () => {
    const wakeAtMs = wakeInMs === null ? null : NOW + wakeInMs
    assert.deepEqual(desiredWorkers(aSnapshot(fields), NOW), { desired, wakeAtMs })
  })
}

test('the wanted number of workers stays within the range of the endpoint, and a wake-up lies ahead', () => {
  fc.assert(
    fc.property(SNAPSHOTS, snapshot => {
      const { desired, wakeAtMs } = desiredWorkers(snapshot, NOW)
      assert.ok(Number.isInteger(desired))
      assert.ok(desired >= snapshot.endpoint.workersMin && desired <= snapshot.endpoint.workersMax)
      assert.ok(wakeAtMs === null || wakeAtMs > NOW)
    }),
  )
})

test('one more waiting job never makes fewer workers wanted', () => {
  fc.assert(
    fc.property(SNAPSHOTS, snapshot => {
      const { queue } = snapshot
      const longer = { ...queue, queued: queue.queued + 1, headQueuedAtMs: queue.headQueuedAtMs ?? NOW }
      const before = desiredWorkers(snapshot, NOW).desired
      assert.ok(desiredWorkers({ ...snapshot, queue: longer }, NOW).desired >= before)
    }),
  )
})

test('there are never more workers wanted than there are jobs for them, besides those that are kept', () => {
  fc.assert(
    fc.property(SNAPSHOTS, snapshot => {
      const { endpoint, queue, workers } = snapshot
      const holding = workers.filter(({ state, held }) => state === 'READY' && held > 0).length
      const jobs = queue.queued + Math.max(queue.inProgress, holding)
      assert.ok(desiredWorkers(snapshot, NOW).desired <= Math.max(endpoint.workersMin, jobs))
    }),
  )
})

test('nothing that only time brings makes fewer workers wanted, and a wake-up comes when it makes more wanted', () => {
  fc.assert(
    fc.property(SNAPSHOTS, fc.integer({ min: 1, max: 90_000 }), (snapshot, ms) => {
      const now = desiredWorkers(snapshot, NOW)
      const later = desiredWorkers(snapshot, NOW + ms)
      assert.ok(later.desired >= now.desired)
      if (later.desired > now.desired) assert.ok(now.wakeAtMs !== null && now.wakeAtMs <= NOW + ms)
      if (now.wakeAtMs === null) return
      assert.equal(desiredWorkers(snapshot, now.wakeAtMs - 1).desired, now.desired)
      if (now.desired === snapshot.endpoint.workersMin) return
      assert.equal(desiredWorkers(snapshot, now.wakeAtMs).desired, now.desired + 1)
    }),
  )
})

test('one more worker that comes up for the line never makes more wanted than there are', () => {
  fc.assert(
    fc.property(SNAPSHOTS, snapshot => {
      const capacity = snapshot.workers[0]?.capacity ?? 1
      const alike = snapshot.workers.map(worker => ({ ...worker, capacity }))
      const up = alike.map(worker =>
        worker.state === 'STARTING' ? { ...worker, state: 'READY' as const, readyAtMs: NOW } : worker,
      )
      const before = desiredWorkers({ ...snapshot, workers: alike }, NOW).desired
      assert.ok(desiredWorkers({ ...snapshot, workers: up }, NOW).desired <= before)
    }),
  )
})

const JOBS = fc.record({ queued: fc.integer({ min: 1, max: 500 }), inProgress: fc.nat(200) })
const wide = (fields: Fields) => aSnapshot({ ...fields, endpoint: { workersMax: 1_000, ...fields.endpoint } })

test('with jobs of exactly a part of the delay, no job waits longer than it in rounds', () => {
  fc.assert(
    fc.property(JOBS, fc.integer({ min: 1, max: 20 }), (queue, parts) => {
      const endpoint = { scaler: delay(parts) }
      const { desired } = desiredWorkers(wide({ endpoint, queue, averageExecutionMs: 1_000 }), NOW)
      assert.equal(desired, Math.ceil((queue.queued + queue.inProgress) / (parts + 1)))
    }),
  )
})

test('a small change of the average execution time changes the wanted number by one at most', () => {
  fc.assert(
    fc.property(
      JOBS,
      fc.integer({ min: 1, max: 600_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (queue, ms, part) => {
        const wanted = (averageExecutionMs: number) => desiredWorkers(wide({ queue, averageExecutionMs }), NOW).desired
        // Half a percent for 200 jobs.
        const change = part / (queue.queued + queue.inProgress)
        const [before, after] = [wanted(ms), wanted(ms * (1 + change))]
        assert.ok(after >= before && after <= before + 1, `${before} became ${after}`)
      },
    ),
  )
})

test('a worker that takes more at once than the others never makes more workers wanted, and counts for itself alone', () => {
  fc.assert(
    fc.property(JOBS, fc.integer({ min: 2, max: 9 }), fc.integer({ min: 1, max: 100 }), (queue, others, capacity) => {
      const ones = Array.from({ length: others }, () => ({ capacity: 1 }))
      const fields = { queue, averageExecutionMs: 60_000 }
      const [before, after] = [ones, [{ capacity }, ...ones.slice(1)]].map(
        workers => desiredWorkers(wide({ ...fields, workers }), NOW).desired,
      )
      assert.ok(after! <= before! && after! > before! - capacity)
    }),
  )
})

const SLOW_START = { placedAtMs: NOW - 90_000, readyAtMs: NOW - 60_000 }
/** Twenty jobs of 10 s with a delay of 4 s and workers that start in 30 s. */
const STARTS = (workers: NonNullable<Fields['workers']>): Fields => ({
  ...TWENTY,
  averageExecutionMs: 10_000,
  workers,
})
const began = (agoMs: number) => ({ state: 'STARTING', placedAtMs: NOW - agoMs, readyAtMs: null }) as const

/** Desired number by default, and with a delay that counts from the time at which another worker could be ready. */
const startAware: [what: string, fields: Fields, desired: number, aware: number][] = [
  ['no worker', STARTS([]), 15, 15],
  ['ready workers, which work while others start', STARTS([SLOW_START, SLOW_START]), 15, 10],
  ['enough ready workers for the time of a start', STARTS(Array.from({ length: 5 }, () => SLOW_START)), 15, 5],
  ['a worker that has just begun to start', STARTS([SLOW_START, SLOW_START, began(0)]), 15, 10],
  ['a worker that is about to be ready', STARTS([SLOW_START, SLOW_START, began(30_000)]), 15, 8],
]

for (const [what, fields, desired, aware] of startAware) {
  test(`${what}: ${desired} worker(s), or ${aware} where starts are counted`, () => {
    const snapshot = aSnapshot(fields)
    assert.equal(desiredWorkers(snapshot, NOW).desired, desired)
    assert.equal(desiredWorkers({ ...snapshot, startAware: true }, NOW).desired, aware)
  })
}

test('where starts are counted, no more workers are wanted than without, and one more job never makes fewer wanted', () => {
  fc.assert(
    fc.property(SNAPSHOTS, fc.nat(60_000), (snapshot, startMs) => {
      const workers = snapshot.workers.map(worker =>
        worker.readyAtMs === null
          ? { ...worker, placedAtMs: NOW - startMs / 2 }
          : { ...worker, placedAtMs: worker.readyAtMs - startMs },
      )
      const { queue, endpoint } = snapshot
      const aware = { ...snapshot, workers, startAware: true }
      const { desired, wakeAtMs } = desiredWorkers(aware, NOW)
      assert.ok(desired <= desiredWorkers({ ...aware, startAware: false }, NOW).desired)
      assert.ok(desired >= endpoint.workersMin && desired <= endpoint.workersMax)
      assert.ok(wakeAtMs === null || wakeAtMs > NOW)
      const longer = { ...queue, queued: queue.queued + 1, headQueuedAtMs: queue.headQueuedAtMs ?? NOW }
      assert.ok(desiredWorkers({ ...aware, queue: longer }, NOW).desired >= desired)
    }),
  )
})

test('jobs of low priority change nothing', () => {
  fc.assert(
    fc.property(SNAPSHOTS, fc.nat(50), (snapshot, queuedLowPriority) => {
      const other = { ...snapshot, queue: { ...snapshot.queue, queuedLowPriority } }
      assert.deepEqual(desiredWorkers(other, NOW), desiredWorkers(snapshot, NOW))
    }),
  )
})

test('the longest idle worker comes first, with the instant at which its time is over', () => {
  const workers = [
    { idleSinceMs: NOW - 1_000 },
    { idleSinceMs: NOW - 9_000 },
    { idleSinceMs: null, createdAtMs: NOW - 5_000 },
    { held: 1 },
    { state: 'STARTING' },
    { state: 'DRAINING' },
  ] as const
  const due = idleWorkers(aSnapshot({ workers })).map(({ worker, dueAtMs }) => [worker.id, dueAtMs - NOW])
  assert.deepEqual(due, [
    ['w2', 1_000],
    ['w3', 5_000],
    ['w1', 9_000],
  ])
})

test('only workers that start or are ready take jobs, and only an unexpected end is a crash', () => {
  const takers = WORKER_STATES.filter(state => takesJobs(aWorker({ state })))
  assert.deepEqual(takers, ['STARTING', 'READY'])
  assert.ok(crashed(anExit()))
  assert.ok(!crashed(anExit({ stopReason: 'idle' })))
  assert.ok(!crashed(aWorker()))
})

const crash = () => anExit()
const crashes = (length: number) => Array.from({ length }, crash)
const asked = () => anExit({ stopReason: 'idle' })
const worked = () => anExit({ jobsFinished: 4 })

/** Ends of workers, newest first, and the back-off after them in milliseconds. */
const backoffs: [what: string, exits: Worker[], crashes: number, delayMs: number | null][] = [
  ['no end', [], 0, null],
  ['an end that was asked for', [asked()], 0, null],
  ['one crash', [crash()], 1, 1_000],
  ['two crashes', [crash(), crash()], 2, 2_000],
  ['three crashes', [crash(), crash(), crash()], 3, 4_000],
  ['nine crashes', crashes(9), 9, 256_000],
  ['ten crashes', crashes(10), 10, 300_000],
  ['a thousand crashes', crashes(1_000), 1_000, 300_000],
  ['a crash after an end that was asked for', [crash(), asked(), crash()], 1, 1_000],
  ['an end that was asked for after a crash', [asked(), crash(), crash()], 0, null],
  ['the crash of a worker that had finished jobs', [worked()], 1, null],
  ['a crash after that of a worker that had finished jobs', [crash(), worked(), crash()], 2, 1_000],
  ['nine crashes after that of a worker that had finished jobs', [...crashes(9), worked()], 10, 8_000],
  [
    'nine crashes where one that was asked to end had finished jobs',
    [...crashes(9), anExit({ stopReason: 'idle', jobsFinished: 1 })],
    9,
    8_000,
  ],
  [
    'nine crashes where a worker of the version before had finished jobs',
    [...crashes(9), anExit({ version: 0, jobsFinished: 1 })],
    9,
    256_000,
  ],
  ['crashes of the version before', [anExit({ version: 0 }), anExit({ version: 0 })], 0, null],
  ['a crash of this version after one of the version before', [crash(), anExit({ version: 0 })], 1, 1_000],
]

for (const [what, exits, crashes, delayMs] of backoffs) {
  test(`after ${what} the next worker ${delayMs === null ? 'starts at once' : `waits ${delayMs} ms`}`, () => {
    const backoff = crashBackoff(exits, 1)
    assert.equal(backoff.crashes, crashes)
    assert.equal(backoff.untilMs, delayMs === null ? 0 : NOW + delayMs)
    assert.equal(backoff.last, crashes === 0 ? null : exits[0])
    assert.deepEqual(currentBackoff(aSnapshot({ exits })), backoff)
  })
}

test('if another worker of the version finished jobs, crashes before the first job do not delay new ones for long', () => {
  const exits = crashes(9)
  assert.equal(currentBackoff(aSnapshot({ exits, workers: [{ jobsFinished: 3 }] })).untilMs, NOW + 8_000)
  assert.equal(currentBackoff(aSnapshot({ exits, workers: [{ jobsFinished: 0 }] })).untilMs, NOW + 256_000)
})
