/** The story of a job, from its record, its worker and its webhook. */
import type { JobRecord, WebhookDeliveries, WorkerDetail } from '../../../client/api-types.d.ts'
import { hasMessage } from '../../webhooks/deliveries.ts'
import { readError } from './job-error.ts'

/** Tone of a step; some of the tones of states. */
type Tone = 'good' | 'busy' | 'wait' | 'bad' | 'off'

/** A step of the story. */
export interface StoryStep {
  readonly atMs: number
  readonly title: string
  readonly tone: Tone
  /** Duration in milliseconds; null for a moment, or if it was not recorded. */
  readonly ms: number | null
  readonly detail?: string
}

/** Sources of a story; null for a missing one. */
export interface StorySources {
  readonly job: JobRecord
  readonly worker: Pick<WorkerDetail, 'id' | 'timeLine' | 'readyAt' | 'exitedAt' | 'exit'> | null
  readonly webhooks: WebhookDeliveries['deliveries']
}

const START_PHASES: Readonly<Record<string, string>> = {
  queued: 'waits for a place',
  downloading: 'models are downloaded',
  placing: 'gets a place',
  pulling: 'image is pulled',
  starting: 'process starts',
  initializing: 'loads until its first take',
}

const ENDS: Readonly<Record<string, readonly [string, Tone]>> = {
  COMPLETED: ['Completed', 'good'],
  FAILED: ['Failed', 'bad'],
  TIMED_OUT: ['Timed out', 'bad'],
  CANCELLED: ['Cancelled', 'off'],
}

/** True if a job has ended. */
export function isFinal(status: string): boolean {
  return Object.hasOwn(ENDS, status)
}

/** The steps in the order of time. @param nowMs end of a wait or an attempt that goes on */
export function storySteps({ job, worker, webhooks }: StorySources, nowMs: number): readonly StoryStep[] {
  const steps = [queued(job, nowMs), ...noteSteps(job), ...workerSteps(job, worker), ...attemptSteps(job, nowMs)]
  const end = endStep(job)
  if (end !== null) steps.push(end)
  for (const delivery of webhooks) steps.push(...deliverySteps(delivery))
  // The sort is stable: steps at the same instant stay in the order of a job's life.
  return steps.sort((a, b) => a.atMs - b.atMs)
}

function queued(job: JobRecord, nowMs: number): StoryStep {
  const untilMs = job.startedAt ?? job.completedAt ?? nowMs
  return {
    atMs: job.createdAt,
    title: wasRetried(job) ? 'Queued again by a client' : 'Accepted and queued',
    tone: 'wait',
    // The start of a lost attempt is not recorded.
    ms: job.retries > 0 ? null : Math.max(0, untilMs - job.createdAt),
    ...(job.policy.lowPriority ? { detail: 'low priority: it starts no worker' } : {}),
  }
}

function wasRetried(job: JobRecord): boolean {
  return job.notes.some(({ at, kind }) => at <= job.createdAt && kind === 'retried')
}

function noteSteps(job: JobRecord): StoryStep[] {
  return job.notes.map(({ at, text, kind, workerId }) => {
    // The rest names the worker and its last output.
    const [, head = text, rest = ''] = /^([^;\n]*)[;\n]\s*(.*)/s.exec(text) ?? []
    const detail = rest !== '' || !workerId ? rest : `worker ${workerId}`
    return {
      atMs: at,
      title: head.charAt(0).toUpperCase() + head.slice(1),
      tone: kind === 'other' ? 'off' : 'bad',
      ms: null,
      ...(detail === '' ? {} : { detail }),
    }
  })
}

/** The start of the worker, if the job waited for it. */
function workerSteps(job: JobRecord, worker: StorySources['worker']): StoryStep[] {
  if (worker === null || job.startedAt === null) return []
  const phases = worker.timeLine.filter(({ phase, startedAt, ms }) => {
    const beganMs = Date.parse(startedAt)
    return Object.hasOwn(START_PHASES, phase) && beganMs + ms > job.createdAt && beganMs <= job.startedAt!
  })
  return phases.map(({ phase, startedAt, ms }) => ({
    atMs: Date.parse(startedAt),
    title: `Worker ${START_PHASES[phase]}`,
    tone: 'wait',
    ms,
    detail: `worker ${worker.id}`,
  }))
}

function attemptSteps(job: JobRecord, nowMs: number): StoryStep[] {
  if (job.startedAt === null) return []
  return [
    {
      atMs: job.startedAt,
      title: `Attempt ${job.attempts} ${isFinal(job.status) ? 'ran' : 'runs'}`,
      tone: 'busy',
      ms: Math.max(0, (job.completedAt ?? nowMs) - job.startedAt),
      ...(job.workerId ? { detail: `worker ${job.workerId}` } : {}),
    },
  ]
}

function endStep(job: JobRecord): StoryStep | null {
  if (job.completedAt === null || !isFinal(job.status)) return null
  const [title, tone] = ENDS[job.status]!
  return {
    atMs: job.completedAt,
    title,
    tone,
    ms: null,
    ...(job.error === null ? {} : { detail: readError(job.error).title.slice(0, 300) }),
  }
}

function deliverySteps({ state, tries, nextTryAt }: WebhookDeliveries['deliveries'][number]): StoryStep[] {
  const steps: StoryStep[] = tries.map(({ at, tookMs, status, error }, index) => ({
    atMs: Date.parse(at),
    title: `Webhook try ${index + 1}: ${status === undefined ? 'no response' : `answered ${status}`}`,
    tone: hasMessage(status) ? 'good' : 'bad',
    ms: tookMs,
    ...(error ? { detail: error } : {}),
  }))
  if (state === 'PENDING' && nextTryAt !== undefined)
    steps.push({ atMs: Date.parse(nextTryAt), title: 'Webhook is tried again', tone: 'wait', ms: null })
  return steps
}
