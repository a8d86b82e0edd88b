/** Story of a job, in the order of time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type DeliveryId,
  type EndpointId,
  type JobId,
  type OwnerId,
  timeFromId,
  timeOrderedUuid,
  type WorkerId,
} from '../../../src/core/ids.ts'
import { lossNote, noteKind, retryNote } from '../../../src/core/jobs/job-note.ts'
import type { JobRecord } from '../../../src/core/jobs/job-record.ts'
import type { WebhookDelivery } from '../../../src/core/jobs/webhook.ts'
import { jobStory, type StorySources } from '../../../src/core/observing/job-story.ts'
import { aWorker } from '../../support/snapshots.ts'

const T0 = 1_700_000_000_000
const W1 = 'w1' as WorkerId
const E1 = 'e1' as EndpointId
const RANDOM = '00000000-0000-4000-8000-000000000000'

function aJob(fields: Partial<JobRecord> = {}): JobRecord {
  return {
    id: `${timeOrderedUuid(RANDOM, T0)}-u1` as JobId,
    owner: 'owner' as OwnerId,
    endpointId: E1,
    status: 'IN_QUEUE',
    createdAtMs: T0,
    queuedAtMs: T0,
    startedAtMs: null,
    finishedAtMs: null,
    expiresAtMs: T0 + 86_400_000,
    attempt: 0,
    lostAttempts: 0,
    workerId: null,
    inputBytes: 2,
    outputBytes: null,
    error: null,
    fingerprint: null,
    executionTimeoutMs: 600_000,
    ttlMs: 86_400_000,
    lowPriority: false,
    input: null,
    output: null,
    largeInput: null,
    hasLargeOutput: false,
    chunks: 0,
    notes: [],
    ...fields,
  }
}

const RAN = { status: 'COMPLETED', startedAtMs: T0 + 100, finishedAtMs: T0 + 900, attempt: 1, workerId: W1 } as const

/** A worker that was created 20 ms after T0 and asked for a job at `readyAtMs`. */
function started(readyAtMs: number) {
  const place = { createdAtMs: T0 + 20, placedAtMs: T0 + 30, pullStartedAtMs: T0 + 40, pullEndedAtMs: T0 + 60 }
  return aWorker({ id: W1, endpointId: E1, state: 'READY', ...place, startedAtMs: T0 + 70, readyAtMs })
}

/** Events as kind, begin and end after T0, and text. */
function eventTexts(sources: Partial<StorySources>) {
  const { events } = jobStory({ job: aJob(), worker: null, deliveries: [], wait: null, ...sources })
  return events.map(({ kind, atMs, untilMs, text }) => [kind, atMs - T0, untilMs === null ? null : untilMs - T0, text])
}

test('a job that ran on a free worker was accepted, waited, ran and ended, and its result goes', () => {
  const job = aJob({ ...RAN, outputBytes: 1, chunks: 3, expiresAtMs: T0 + 5_000 })
  assert.deepEqual(eventTexts({ job, worker: started(T0) }), [
    ['accepted', 0, 0, 'accepted with an input of 2 bytes'],
    ['waited', 0, 100, 'waited until a worker was free'],
    ['attempt', 100, 900, 'attempt 1 ran on worker w1, with 3 chunks of output'],
    ['finished', 900, 900, 'COMPLETED with an output of 1 byte'],
    ['expires', 5_000, 5_000, 'its result goes'],
  ])
})

test('a job that waited for the start of its worker shows each step of the start', () => {
  const events = eventTexts({ job: aJob(RAN), worker: started(T0 + 100) })
  assert.deepEqual(events.slice(1, 7), [
    ['waited', 0, 100, 'waited for the start of its worker'],
    ['worker', 20, 30, 'the new worker waited for a place'],
    ['worker', 30, 40, 'the worker was started'],
    ['worker', 40, 60, 'the image of the worker was downloaded'],
    ['worker', 60, 70, 'the worker was started'],
    ['worker', 70, 100, 'the worker loaded until it asked for its first job'],
  ])
  const late = eventTexts({ job: aJob({ ...RAN, queuedAtMs: T0 + 50 }), worker: started(T0 + 100) })
  assert.deepEqual(late.find(([kind]) => kind === 'worker')?.slice(0, 3), ['worker', 50, 60])
})

test('a job that waits says why, and until when it may', () => {
  const wait = { cause: 'max_reached', summary: 'all workers are busy' } as const
  const events = jobStory({ job: aJob(), worker: null, deliveries: [], wait }).events
  assert.deepEqual(events[1], {
    kind: 'waited',
    atMs: T0,
    untilMs: null,
    text: 'waits: all workers are busy',
    workerId: null,
    attempt: null,
    cause: 'max_reached',
  })
  assert.equal(events.at(-1)?.text, 'its ttl ends: it times out unless it is done by then')
})

test('a lost attempt is shown with its cause, and the wait begins again', () => {
  const notes = [
    { atMs: T0 + 50, workerId: 'w0' as WorkerId, text: lossNote(1, 'it was killed') },
    { atMs: T0 + 60, workerId: 'w0' as WorkerId, text: 'a COMPLETED result came when it was late' },
  ]
  const job = aJob({ ...RAN, status: 'IN_PROGRESS', finishedAtMs: null, attempt: 2, lostAttempts: 1, notes })
  const { events } = jobStory({ job, worker: started(T0), deliveries: [], wait: null })
  assert.deepEqual(
    events.map(({ kind, attempt, workerId }) => [kind, attempt, workerId]),
    [
      ['accepted', null, null],
      ['lost', 1, 'w0'],
      ['waited', null, null],
      ['noted', null, 'w0'],
      ['attempt', 2, 'w1'],
      ['expires', null, null],
    ],
  )
  assert.deepEqual(events.find(({ kind }) => kind === 'attempt')?.untilMs, null)
})

test('a retried job shows its first end by its webhook, and each try of that', () => {
  const delivery: WebhookDelivery = {
    id: 'd' as DeliveryId,
    endpointId: E1,
    jobId: aJob().id,
    jobStatus: 'FAILED',
    state: 'PENDING',
    url: 'https://example.com/hook',
    createdAtMs: T0 + 200,
    dueAtMs: T0 + 9_000,
    tries: [
      { number: 1, atMs: T0 + 210, tookMs: 15, status: null, error: 'ECONNREFUSED' },
      { number: 2, atMs: T0 + 300, tookMs: 5, status: 500, error: null },
    ],
  }
  const notes = [{ atMs: T0 + 400, workerId: W1, text: retryNote(1, 'FAILED', 'ValueError: no') }]
  const ends = { startedAtMs: T0 + 450, finishedAtMs: T0 + 500, expiresAtMs: null, chunks: null }
  const job = aJob({ ...RAN, status: 'FAILED', error: 'KeyError\n  at x', queuedAtMs: T0 + 400, ...ends, notes })
  assert.deepEqual(eventTexts({ job, deliveries: [delivery] }), [
    ['accepted', 0, 0, 'accepted with an input of 2 bytes'],
    ['finished', 200, 200, 'FAILED'],
    ['webhook', 210, 225, 'try 1 of the webhook about FAILED got no answer: ECONNREFUSED'],
    ['webhook', 300, 305, 'try 2 of the webhook about FAILED was answered 500'],
    ['retried', 400, 400, 'attempt 1 was FAILED, and a client queued the job again; ValueError: no'],
    ['waited', 400, 450, 'waited for a worker'],
    ['attempt', 450, 500, 'attempt 1 ran on worker w1'],
    ['finished', 500, 500, 'FAILED: KeyError'],
    ['webhook', 9_000, 9_000, 'try 3 of the webhook about FAILED is due'],
  ])
})

test('the exception of a Python handler ends a story with its type and message', () => {
  const error = JSON.stringify({ error_type: "<class 'ValueError'>", error_message: 'bad 7', error_traceback: 'at x' })
  const job = aJob({ ...RAN, status: 'FAILED', error, expiresAtMs: null, chunks: null })
  assert.equal(eventTexts({ job }).at(-1)?.at(-1), 'FAILED: ValueError: bad 7')
})

test('a request of a batch is queued later than it was accepted; a job without a worker ends while it waits', () => {
  const job = aJob({ status: 'CANCELLED', queuedAtMs: T0 + 70, finishedAtMs: T0 + 90, expiresAtMs: null })
  assert.deepEqual(eventTexts({ job: { ...job, lowPriority: true } }), [
    ['accepted', 0, 0, 'accepted with an input of 2 bytes, with low priority: it starts no worker'],
    ['queued', 70, 70, 'queued'],
    ['waited', 70, 90, 'waited for a worker'],
    ['finished', 90, 90, 'CANCELLED'],
  ])
})

test('a late result of the last holder counts, although the job waited again', () => {
  const notes = [{ atMs: T0 + 50, workerId: W1, text: lossNote(1, 'it was silent') }]
  const job = aJob({ ...RAN, startedAtMs: null, lostAttempts: 1, outputBytes: 4, expiresAtMs: null, notes })
  assert.deepEqual(
    eventTexts({ job }).at(-1)?.at(-1),
    'COMPLETED with an output of 4 bytes, by a late result of worker w1',
  )
})

test('notes are read as they were written, and ids of jobs have their time', () => {
  assert.deepEqual(noteKind(lossNote(2, 'x')), { kind: 'lost', attempt: 2 })
  assert.deepEqual(noteKind(retryNote(3, 'TIMED_OUT', null)), { kind: 'retried', attempt: 3 })
  assert.deepEqual(noteKind('a chunk of 9 bytes was not kept'), { kind: 'other', attempt: null })
  assert.equal(timeFromId(`sync-${timeOrderedUuid(RANDOM, T0)}-u1`), T0)
  assert.equal(timeFromId(`${RANDOM}-u1`), null)
})
