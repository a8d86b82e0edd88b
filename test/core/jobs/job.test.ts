import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobStates } from '../../../scripts/diagram.ts'
import { AppError, ERROR_CODES, invalidRequest, notFound, toAppError } from '../../../src/core/errors.ts'
import { isEndpointId, isJobId, type WorkerId } from '../../../src/core/ids.ts'
import {
  isFinal,
  isLegal,
  JOB_STATUSES,
  lossWords,
  lostReason,
  TRANSITIONS,
  type Transition,
} from '../../../src/core/jobs/job.ts'
import { jobTimes, jobView } from '../../../src/core/jobs/job-view.ts'
import { JOB_TIMES, retentionMs } from '../../../src/core/jobs/retention.ts'
import { aJob, NOW } from '../../support/snapshots.ts'

/** Every move that is allowed, written down a second time. */
const ALLOWED = new Set([
  'claim IN_QUEUE IN_PROGRESS',
  'finish IN_PROGRESS COMPLETED',
  'finish IN_PROGRESS FAILED',
  'finish IN_QUEUE COMPLETED',
  'finish IN_QUEUE FAILED',
  'cancel IN_QUEUE CANCELLED',
  'cancel IN_PROGRESS CANCELLED',
  'timeOut IN_PROGRESS TIMED_OUT',
  'requeue IN_PROGRESS IN_QUEUE',
  'requeue IN_PROGRESS FAILED',
  'release IN_PROGRESS IN_QUEUE',
  'retry FAILED IN_QUEUE',
  'retry TIMED_OUT IN_QUEUE',
  'purge IN_QUEUE CANCELLED',
])
const NAMES = Object.keys(TRANSITIONS) as Transition[]

test('a job moves as the table says and in no other way', () => {
  const found = NAMES.flatMap(name =>
    JOB_STATUSES.flatMap(from => JOB_STATUSES.filter(to => isLegal(name, from, to)).map(to => `${name} ${from} ${to}`)),
  )
  assert.deepEqual(new Set(found), ALLOWED)
})

test('only a retry leads out of a final state, and every other state can still be left', () => {
  const others = NAMES.filter(name => name !== 'retry')
  const left = new Set<string>(others.flatMap(name => TRANSITIONS[name].from))
  for (const status of JOB_STATUSES) assert.equal(left.has(status), !isFinal(status), status)
  assert.deepEqual(JOB_STATUSES.filter(isFinal), ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'])
})

test('the diagram of the states has each move that is allowed, and no other', () => {
  const drawn = [...jobStates().matchAll(/^(\w+) -> (\w+) \[label="(.+)"\]$/gm)].flatMap(([, from, to, names]) =>
    names!.split(', ').map(name => `${name} ${from} ${to}`),
  )
  assert.deepEqual(drawn.filter(move => !move.startsWith('submit ')).sort(), [...ALLOWED].sort())
})

test('a lost job says how often and why', () => {
  const reason = 'the worker was lost 3 times while it ran this job, the last time because it exited with code 1'
  assert.equal(lostReason(3, 'it exited with code 1'), reason)
})

test('the message about a lost worker has its id and its last lines, within bounds and without tokens', () => {
  const worker = 'w1' as WorkerId
  assert.equal(lossWords('it exited with code 9', worker, []), 'it exited with code 9; this was worker w1')
  const lines = [...Array.from({ length: 40 }, (_, n) => `line ${n} ${'x'.repeat(9_000)}`), 'key=rpw_abcdefgh1234 end']
  const words = lossWords('it exited with code 9', worker, lines)
  assert.match(words, /^it exited with code 9; this was worker w1, and its last lines were:\nline 31 x/)
  assert.match(words, /\nkey=<hidden> end$/)
  assert.ok(words.length < 4_000)
})

const retentions: [kind: 'run' | 'runsync', askedWaitMs: number | undefined, keptMs: number][] = [
  ['run', undefined, 1_800_000],
  ['run', 300_000, 1_800_000],
  ['runsync', undefined, 60_000],
  ['runsync', 1_000, 60_000],
  ['runsync', 60_000, 60_000],
  ['runsync', 60_001, 60_001],
  ['runsync', 90_000, 90_000],
  ['runsync', 300_000, 300_000],
  ['runsync', 400_000, 300_000],
]

test('results are kept 30 minutes after run, and after runsync 1 minute or the asked wait up to 5 minutes', () => {
  for (const [kind, wait, kept] of retentions) assert.equal(retentionMs(kind, wait), kept, `${kind} ${wait}`)
})

test('the times of jobs have the bounds that the documentation names', () => {
  const week = 604_800_000
  assert.deepEqual(JOB_TIMES, {
    executionTimeoutMs: { min: 5_000, max: week },
    ttlMs: { min: 10_000, max: week, default: 86_400_000 },
    statusTtlMs: { min: 1_000, max: week },
    waitMs: { min: 1_000, max: 300_000, default: 90_000 },
  })
})

const view = (fields: Parameters<typeof aJob>[0], nowMs = NOW) => JSON.parse(jobView(aJob(fields), nowMs))
const RUNNING = { status: 'IN_PROGRESS', startedAtMs: NOW + 100, workerId: 'w1' as WorkerId, attempt: 1 } as const

test('a waiting job shows how long it has waited and nothing of a worker', () => {
  assert.deepEqual(view({}, NOW + 250), { delayTime: 250, id: 'job-u1', status: 'IN_QUEUE' })
})

test('a running job shows its worker, its times so far and its progress', () => {
  const base = { delayTime: 100, executionTime: 50, id: 'job-u1', status: 'IN_PROGRESS', workerId: 'w1' }
  assert.deepEqual(view(RUNNING, NOW + 150), base)
  assert.deepEqual(view({ ...RUNNING, progress: '"half"' }, NOW + 150), { ...base, output: 'half' })
})

test('a final job always has whole times and a worker, however it ended', () => {
  const ends: [fields: Parameters<typeof aJob>[0], times: [number, number], worker: string][] = [
    [{ ...RUNNING, finishedAtMs: NOW + 400 }, [100, 300], 'w1'],
    [{ finishedAtMs: NOW + 70 }, [70, 0], ''],
    [{ finishedAtMs: NOW + 70, workerId: 'w9' as WorkerId }, [70, 0], 'w9'],
    [{ queuedAtMs: NOW + 500, finishedAtMs: NOW }, [0, 0], ''],
  ]
  for (const status of JOB_STATUSES.filter(isFinal)) {
    for (const [fields, [delay, execution], worker] of ends) {
      const shown = view({ ...fields, status }, NOW + 99_999)
      assert.deepEqual([shown.delayTime, shown.executionTime, shown.workerId], [delay, execution, worker])
      assert.ok(Number.isInteger(shown.delayTime) && Number.isInteger(shown.executionTime))
    }
  }
})

test('a job shows an output only when there is one, and an error as a string', () => {
  const done = { ...RUNNING, status: 'COMPLETED', finishedAtMs: NOW + 200 } as const
  assert.equal('output' in view(done), false)
  assert.equal(view({ ...done, output: 'null' }).output, null)
  const failed = view({ ...done, status: 'FAILED', error: '{"a": 1}', output: '[1]' })
  assert.deepEqual([failed.error, failed.output], ['{"a": 1}', [1]])
  assert.equal('error' in view(done), false)
})

test('the progress of an attempt is no output of the job', () => {
  for (const status of JOB_STATUSES.filter(status => status !== 'IN_PROGRESS')) {
    assert.equal('output' in view({ status, progress: '1' }), false, status)
  }
})

test('what a worker sent is passed on character for character', () => {
  const output = '{"n":12345678901234567890,  "x":1.0, "y":"\\u00e9"}'
  assert.ok(jobView(aJob({ status: 'COMPLETED', output }), NOW).includes(`"output":${output}`))
})

test('warnings and lost attempts show when there are any', () => {
  const shown = view({ warning: 'careful', lostAttempts: 2 })
  assert.deepEqual([shown.warning, shown.retries], ['careful', 2])
  assert.deepEqual(Object.keys(view({})), ['delayTime', 'id', 'status'])
})

test('a clock that was set back makes no negative times', () => {
  assert.deepEqual(jobTimes(aJob({ startedAtMs: NOW - 5 }), NOW - 10), { delayMs: 0, executionMs: 0 })
})

const statuses = {
  invalid: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  unsupported_media: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const

test('each kind of refusal has its status', () => {
  assert.deepEqual(Object.keys(statuses), Object.keys(ERROR_CODES))
  for (const [code, status] of Object.entries(statuses)) {
    assert.equal(new AppError(code as keyof typeof statuses, 'x').status, status)
  }
})

test('several failures are one error that keeps each, and an unknown error gives nothing away', () => {
  assert.deepEqual([invalidRequest(['a', 'b']).message, invalidRequest(['a', 'b']).failures], ['a; b', ['a', 'b']])
  assert.equal(notFound('job', 'x').message, 'job x not found')
  const hidden = toAppError(new Error('SELECT secret'))
  assert.deepEqual([hidden.code, hidden.message.includes('SELECT')], ['internal', false])
  assert.equal(toAppError(hidden), hidden)
})

test('ids that could be mistaken for a route, or that break an address, are invalid', () => {
  for (const id of ['a', 'abc123', 'x'.repeat(63)]) assert.ok(isEndpointId(id), id)
  for (const id of ['', 'A', 'a-b', 'a.b', 'a/b', 'x'.repeat(64), 'serverless', 'templates', 'pods', 'docs']) {
    assert.ok(!isEndpointId(id), id)
  }
  for (const id of ['a', 'sync-0f-u1', 'A_b-9', 'x'.repeat(128)]) assert.ok(isJobId(id), id)
  for (const id of ['', 'a,b', 'a/b', 'a b', '$ID', 'x'.repeat(129)]) assert.ok(!isJobId(id), id)
})
