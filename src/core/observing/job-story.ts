/** The story of a job: all known events of a job, as one list. */
import { type EndpointId, type JobId, timeFromId, type WorkerId } from '../ids.ts'
import { errorLine } from '../jobs/error-groups.ts'
import { isFinal, type JobStatus } from '../jobs/job.ts'
import { type JobNoteKind, noteKind } from '../jobs/job-note.ts'
import type { JobRecord } from '../jobs/job-record.ts'
import { hasMessage, WEBHOOK, type WebhookDelivery } from '../jobs/webhook.ts'
import type { Worker } from '../workers/worker.ts'
import { COLD_START_PHASES, type ColdStartPhase, workerTimeLine } from '../workers/worker-phase.ts'
import type { Explanation, WaitCause } from './explanation.ts'
import { pauseText, type UrgentNames } from './pause-words.ts'

/** The kinds of events of a story. */
export const STORY_KINDS = [
  'accepted',
  'queued',
  'waited',
  'worker',
  'attempt',
  'lost',
  'noted',
  'finished',
  'retried',
  'webhook',
  'expires',
] as const
/** One of {@link STORY_KINDS}. */
export type StoryKind = (typeof STORY_KINDS)[number]

/** One event of a story. Times are epoch milliseconds, and may be in the future. */
export interface StoryEvent {
  readonly kind: StoryKind
  readonly atMs: number
  /** The end of an event with a duration; `atMs` for a single moment, null while it continues. */
  readonly untilMs: number | null
  /** A clause for people. */
  readonly text: string
  /** The worker of the event; null without a worker, or if it is unknown. */
  readonly workerId: WorkerId | null
  /** The number of the attempt; null if the event is part of no attempt. */
  readonly attempt: number | null
  /** Cause of a wait that continues; null for every other event. */
  readonly cause: WaitCause | null
}

/** The story of one job, in the order of time. */
export interface JobStory {
  readonly id: JobId
  readonly endpointId: EndpointId
  readonly status: JobStatus
  readonly events: readonly StoryEvent[]
}

/** Sources of a story. */
export interface StorySources {
  readonly job: JobRecord
  /** The worker that has the job, or had it last; null if its record is gone. */
  readonly worker: Worker | null
  /** All that are kept, including those of ends before a retry. */
  readonly deliveries: readonly WebhookDelivery[]
  /** Explanation of the wait; null if the job does not wait. */
  readonly wait: Pick<Explanation, 'cause' | 'summary'> | null
  /** Names of the endpoints for which its worker is paused; none when left out. */
  readonly urgentNames?: UrgentNames
}

/** Activity of the worker of an attempt while the job waited for it. */
const STARTING: Readonly<Record<ColdStartPhase, string>> = {
  queued: 'the new worker waited for a place',
  downloading: 'the models of the endpoint were downloaded',
  pulling: 'the image of the worker was downloaded',
  starting: 'the worker was started',
  initializing: 'the worker loaded until it asked for its first job',
}

/**
 * The events of a job. They are not stored: they come from the job or its record, its notes, the worker of the last
 * attempt, and the deliveries of its webhook. So earlier attempts have an end and no beginning, and a read of the
 * result is not among them.
 */
export function jobStory(sources: StorySources): JobStory {
  const { id, endpointId, status } = sources.job
  const events = [
    ...acceptedEvents(sources),
    ...noteEvents(sources),
    ...waitEvents(sources),
    ...attemptEvents(sources),
    ...endEvents(sources),
    ...deliveryEvents(sources),
    ...expiryEvents(sources),
  ]
  // The sort is stable, so simultaneous events keep the order above.
  return { id, endpointId, status, events: events.sort((a, b) => a.atMs - b.atMs) }
}

type Rest = Partial<Pick<StoryEvent, 'untilMs' | 'workerId' | 'attempt' | 'cause'>>

function event(kind: StoryKind, atMs: number, text: string, rest: Rest = {}): StoryEvent {
  return { kind, atMs, untilMs: atMs, text, workerId: null, attempt: null, cause: null, ...rest }
}

/** The id of a job contains its creation time. */
function acceptedAtMs({ id, queuedAtMs }: JobRecord): number {
  return Math.min(timeFromId(id) ?? queuedAtMs, queuedAtMs)
}

function acceptedEvents({ job }: StorySources): StoryEvent[] {
  const atMs = acceptedAtMs(job)
  const priority = job.lowPriority ? ', with low priority: it starts no worker' : ''
  const accepted = event('accepted', atMs, `accepted with an input of ${bytes(job.inputBytes)}${priority}`)
  const isLater = job.queuedAtMs > atMs && !job.notes.some(note => isRetryAt(note, job.queuedAtMs))
  return isLater ? [accepted, event('queued', job.queuedAtMs, 'queued')] : [accepted]
}

const KIND_OF_NOTE: Readonly<Record<JobNoteKind, StoryKind>> = { lost: 'lost', retried: 'retried', other: 'noted' }

function noteEvents({ job }: StorySources): StoryEvent[] {
  return job.notes.map(({ atMs, workerId, text }) => {
    const { kind, attempt } = noteKind(text)
    return event(KIND_OF_NOTE[kind], atMs, text, { workerId: workerIn(workerId), attempt })
  })
}

/** Start of the job's wait for its last or next attempt. */
function waitingSinceMs({ notes, queuedAtMs, startedAtMs }: JobRecord): number {
  const lost = notes.filter(({ atMs, text }) => noteKind(text).kind === 'lost' && atMs <= (startedAtMs ?? atMs))
  return Math.max(queuedAtMs, ...lost.map(({ atMs }) => atMs))
}

function waitEvents({ job, worker, wait }: StorySources): StoryEvent[] {
  const sinceMs = waitingSinceMs(job)
  const untilMs = job.startedAtMs ?? job.finishedAtMs
  if (job.status === 'IN_QUEUE') {
    const why = wait === null ? 'waits for a worker' : `waits: ${wait.summary}`
    return [event('waited', sinceMs, why, { untilMs: null, cause: wait?.cause ?? null })]
  }
  if (untilMs === null) {
    const behind = `waits in worker ${job.workerId} behind others, which it got at the same time`
    return [event('waited', sinceMs, behind, { untilMs: null, workerId: job.workerId })]
  }
  if (untilMs <= sinceMs) return []
  // The job that ended while it waited had no worker then.
  if (job.startedAtMs === null || worker === null) return [event('waited', sinceMs, 'waited for a worker', { untilMs })]
  const steps = startEvents(worker, sinceMs, untilMs)
  const text = steps.length > 0 ? 'waited for the start of its worker' : 'waited until a worker was free'
  return [event('waited', sinceMs, text, { untilMs }), ...steps]
}

/** Events of the worker until its first take, as far as the job waited for them. */
function startEvents(worker: Worker, sinceMs: number, untilMs: number): StoryEvent[] {
  const { id, readyAtMs, thawedAtMs } = worker
  const steps: StoryEvent[] = []
  if (readyAtMs !== null && readyAtMs > sinceMs) {
    for (const { phase, startedAtMs, ms } of workerTimeLine(worker, untilMs)) {
      const begin = COLD_START_PHASES.find(coldPhase => coldPhase === phase)
      const [fromMs, toMs] = [Math.max(startedAtMs, sinceMs), Math.min(startedAtMs + ms, untilMs)]
      if (begin !== undefined && toMs > fromMs)
        steps.push(event('worker', fromMs, STARTING[begin], { untilMs: toMs, workerId: id }))
    }
  }
  if (thawedAtMs !== null && thawedAtMs > sinceMs && thawedAtMs <= untilMs)
    steps.push(event('worker', thawedAtMs, 'the frozen worker was thawed', { workerId: id }))
  return steps
}

function attemptEvents({ job, worker, urgentNames }: StorySources): StoryEvent[] {
  const { startedAtMs, finishedAtMs, workerId, attempt, status, chunks } = job
  if (startedAtMs === null) return []
  const streamed =
    chunks === null || chunks === 0 ? '' : `, with ${chunks} ${chunks === 1 ? 'chunk' : 'chunks'} of output`
  const runs = status === 'IN_PROGRESS' ? 'runs' : 'ran'
  const text = `attempt ${attempt} ${runs} on worker ${workerId}${streamed}`
  const run = event('attempt', startedAtMs, text, { untilMs: finishedAtMs, workerId, attempt })
  const paused = worker === null || status !== 'IN_PROGRESS' ? null : pauseText(worker, urgentNames)
  if (paused === null || worker?.pause == null) return [run]
  return [run, event('noted', worker.pause.sinceMs, `attempt ${attempt} is ${paused}`, { untilMs: null, workerId })]
}

function endEvents({ job, deliveries }: StorySources): StoryEvent[] {
  const { queuedAtMs, finishedAtMs, status, error, outputBytes, startedAtMs, workerId, attempt } = job
  // A retried job no longer has its earlier ends; the messages about them do.
  const earlier = deliveries.filter(({ createdAtMs }) => createdAtMs < queuedAtMs)
  const ends = earlier.map(({ createdAtMs, jobStatus }) => event('finished', createdAtMs, jobStatus))
  if (finishedAtMs === null || !isFinal(status)) return ends
  const output = outputBytes === null ? '' : ` with an output of ${bytes(outputBytes)}`
  const late = startedAtMs === null && status === 'COMPLETED' ? `, by a late result of worker ${workerId}` : ''
  const why = error === null ? '' : `: ${errorLine(error)}`
  const done = attempt === 0 ? null : attempt
  return [
    ...ends,
    event('finished', finishedAtMs, `${status}${output}${late}${why}`, { workerId: workerIn(workerId), attempt: done }),
  ]
}

function deliveryEvents({ deliveries }: StorySources): StoryEvent[] {
  return deliveries.flatMap(({ state, jobStatus, dueAtMs, tries }) => {
    const events = tries.map(({ number, atMs, tookMs, status, error }) => {
      const answer = status === null ? `got no answer: ${error}` : `was answered ${status}`
      const last = !hasMessage(status) && number >= WEBHOOK.tries ? '; there are no more tries' : ''
      const text = `try ${number} of the webhook about ${jobStatus} ${answer}${last}`
      return event('webhook', atMs, text, { untilMs: atMs + tookMs })
    })
    if (state !== 'PENDING' || dueAtMs === null) return events
    return [...events, event('webhook', dueAtMs, `try ${tries.length + 1} of the webhook about ${jobStatus} is due`)]
  })
}

function expiryEvents({ job }: StorySources): StoryEvent[] {
  const { expiresAtMs, status } = job
  if (expiresAtMs === null) return []
  const text = isFinal(status) ? 'its result goes' : 'its ttl ends: it times out unless it is done by then'
  return [event('expires', expiresAtMs, text)]
}

function isRetryAt({ atMs, text }: JobRecord['notes'][number], queuedAtMs: number): boolean {
  return atMs === queuedAtMs && noteKind(text).kind === 'retried'
}

/** The store has '' for no worker. */
function workerIn(id: WorkerId | null): WorkerId | null {
  return id === '' ? null : id
}

function bytes(count: number): string {
  return count === 1 ? '1 byte' : `${count} bytes`
}
