/** Shapes of the job operations, for the OpenAPI document. */
import { z } from '@hono/zod-openapi'
import { FINGERPRINT } from '../../core/jobs/error-fingerprint.ts'
import { JOB_STATUSES } from '../../core/jobs/job.ts'
import { JOB_NOTE_KINDS } from '../../core/jobs/job-note.ts'
import { DELIVERY_STATES } from '../../core/jobs/webhook.ts'
import { ACTION_PAGES } from '../../core/observing/action.ts'
import { STORY_KINDS } from '../../core/observing/job-story.ts'
import { CURSOR } from '../../core/pages.ts'

/** Error body of job operations. */
export const JobError = z.object({ error: z.string() }).openapi('JobError')

/** Error body of OpenAI's API. */
export const OpenAiError = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .openapi('OpenAiError')

/** State of a job. */
export const JobStatus = z.enum(JOB_STATUSES).openapi('JobStatus')

/** Path parameters. */
export const EndpointParam = { endpoint: z.string().regex(/^[a-z0-9]{1,63}$/) }
const Key = z.string().regex(/^[A-Za-z0-9_-]{1,128}$/)
export const JobParams = { ...EndpointParam, job: Key }
export const BatchParams = { ...EndpointParam, batch: Key }
export const RequestParams = { ...BatchParams, job: Key }

const JsonObject = z.record(z.string(), z.unknown())
const Milliseconds = z.int().min(0)
/** Milliseconds since 1970; null if it has not happened. */
const Instant = z.int().nullable()

const Policy = z.object({
  executionTimeout: z.int().min(5_000).max(604_800_000).optional(),
  ttl: z.int().min(10_000).max(604_800_000).optional(),
  lowPriority: z.boolean().optional(),
})

/** A job to submit. */
export const JobRequest = z
  .object({
    input: JsonObject,
    webhook: z.string().optional(),
    policy: Policy.optional(),
    s3Config: JsonObject.optional(),
  })
  .openapi('JobRequest')

/** A job that was accepted or changed. */
export const JobState = z.object({ id: z.string(), status: JobStatus }).openapi('JobState')

/** A job with its result. */
export const Job = z
  .object({
    id: z.string(),
    status: JobStatus,
    delayTime: Milliseconds,
    executionTime: Milliseconds.optional(),
    workerId: z.string().optional(),
    output: z.unknown().optional(),
    error: z.string().optional(),
    warning: z.string().optional(),
    batchId: z.string().optional(),
    retries: z.int().optional(),
  })
  .openapi('Job')

/** Chunks of a stream. */
export const JobStream = z
  .object({
    id: z.string().optional(),
    status: JobStatus,
    stream: z.array(z.object({ output: z.unknown(), metrics: JsonObject.optional() })),
  })
  .openapi('JobStream')

/** Members of a job in a list. */
const RECORD = {
  id: z.string(),
  status: JobStatus,
  createdAt: z.int(),
  startedAt: Instant,
  completedAt: Instant,
  resultExpiresAt: Instant,
  delayTime: Milliseconds,
  executionTime: Milliseconds,
  workerId: z.string().nullable(),
  attempts: z.int(),
  retries: z.int(),
  inputBytes: z.int(),
  outputBytes: z.int().nullable(),
  error: z.string().nullable(),
  errorFingerprint: z.string().nullable(),
}

/** A page of jobs. */
export const JobRecordPage = z
  .object({
    requests: z.array(z.object(RECORD).openapi('JobSummary')),
    pagination: z.object({ nextCursor: z.string().nullable(), hasNextPage: z.boolean() }),
  })
  .openapi('JobSummaries')

/** Failed jobs by their errors. */
export const JobErrors = z
  .object({
    groups: z.array(
      z
        .object({
          fingerprint: z.string(),
          error: z.string(),
          count: z.int(),
          firstAt: z.int(),
          lastAt: z.int(),
          sampleJobId: z.string(),
        })
        .openapi('JobErrorGroup'),
    ),
    looked: z.int(),
    complete: z.boolean(),
  })
  .openapi('JobErrors')

/** One job with all of its stored data. */
export const JobRecord = z
  .object({
    ...RECORD,
    policy: z.object({ executionTimeout: z.int(), ttl: z.int(), lowPriority: z.boolean() }),
    notes: z.array(
      z.object({ at: z.int(), workerId: z.string().nullable(), kind: z.enum(JOB_NOTE_KINDS), text: z.string() }),
    ),
    input: z.unknown(),
    output: z.unknown(),
    inputUrl: z.string().optional(),
    outputUrl: z.string().optional(),
  })
  .openapi('JobRecord')

/** The story of a job. */
export const JobStory = z
  .object({
    id: z.string(),
    endpointId: z.string(),
    status: JobStatus,
    events: z.array(
      z
        .object({
          kind: z.enum(STORY_KINDS),
          at: z.int(),
          until: Instant,
          text: z.string(),
          workerId: z.string().nullable(),
          attempt: z.int().nullable(),
          cause: z.string().nullable(),
        })
        .openapi('JobStoryEvent'),
    ),
  })
  .openapi('JobStory')

const states = JOB_STATUSES.join('|')
/** A date and time, or milliseconds since 1970. */
const Moment = z.union([z.iso.datetime({ offset: true }), z.string().regex(/^\d{1,15}$/)])

/** Members of a filter. */
export const JobFilter = {
  status: z
    .string()
    .regex(new RegExp(`^(${states})(,(${states}))*$`))
    .optional(),
  worker: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/)
    .optional(),
  error: z.string().min(1).max(200).optional(),
  fingerprint: z.string().regex(FINGERPRINT).optional(),
  from: Moment.optional(),
  to: Moment.optional(),
}

/** Query of a list of jobs. */
export const JobListQuery = {
  ...JobFilter,
  limit: z.int().min(1).max(1_000).optional(),
  cursor: z.string().regex(CURSOR).optional(),
}

/** A filter for many jobs, and the result of the operation on them. */
export const ManyJobsRequest = z
  .strictObject({ ...JobFilter, dryRun: z.boolean().optional(), cursor: JobListQuery.cursor })
  .openapi('ManyJobsRequest', { anyOf: Object.keys(JobFilter).map(name => ({ required: [name] })) })
export const ManyJobs = z
  .object({
    dryRun: z.boolean(),
    matched: z.int(),
    changed: z.int(),
    ids: z.array(z.string()),
    nextCursor: z.string().nullable(),
  })
  .openapi('ManyJobs')

export const RemovedJob = z.object({ id: z.string(), removed: z.literal(true) })
export const PurgedQueue = z.object({ removed: z.int(), status: z.literal('completed') })

const Count = z.int().min(0)
const JobCounts = z
  .object({ completed: Count, failed: Count, inProgress: Count, inQueue: Count, retried: Count })
  .openapi('JobCounts')
const WorkerCounts = z
  .object({ idle: Count, initializing: Count, ready: Count, running: Count, throttled: Count, unhealthy: Count })
  .openapi('WorkerCounts')

/** Counts of jobs and workers. */
export const Health = z.object({ jobs: JobCounts, workers: WorkerCounts }).openapi('EndpointHealth')
export const WorkerMetrics = z.object({ readyWorkers: z.array(z.string()), jobs: JobCounts, workers: WorkerCounts })

const ActionBase = {
  title: z.string().openapi({ description: 'What the action does, in the words of a button.' }),
  command: z.string().nullable().openapi({
    description:
      'The command line that does it, or shows more; null where none does. `<...>` stands for what a person has to choose.',
  }),
  note: z.int().nullable().openapi({
    description: 'The index of the note that it follows from; null where it follows from the cause.',
  }),
}
const FieldValue = z.union([
  z.string(),
  z.number(),
  z.array(z.string()),
  z.record(z.string(), z.union([z.string(), z.number()])),
])

/** A step that a person can take about a cause. */
const Action = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('set'),
      field: z.string().openapi({
        description: 'The field of the endpoint, as `PATCH /v2/serverless/{id}` names it; a variable is `env.NAME`.',
        example: 'workers.max',
      }),
      from: FieldValue.nullable(),
      value: FieldValue,
      isRelease: z.boolean(),
      ...ActionBase,
    }),
    z.object({ kind: z.enum(['rollback', 'promote']), version: z.int(), ...ActionBase }),
    z.object({ kind: z.literal('restart'), ...ActionBase }),
    z.object({ kind: z.literal('logs'), worker: z.string().nullable(), ...ActionBase }),
    z.object({ kind: z.literal('download'), model: z.string(), ...ActionBase }),
    z.object({ kind: z.literal('open'), page: z.enum(ACTION_PAGES), part: z.string().nullable(), ...ActionBase }),
    z.object({
      kind: z.literal('run'),
      words: z.array(z.string()),
      place: z.enum(['server', 'client']),
      ...ActionBase,
    }),
  ])
  .openapi('Action')

const EXPLANATION = {
  cause: z.string(),
  summary: z.string(),
  action: z.string().nullable(),
  commands: z.array(z.string()),
  sinceMs: z.number().nullable(),
  evidence: z.array(z.string()),
  notes: z.array(z.string()),
  actions: z.array(Action),
}

/** Reasons why the jobs of an endpoint wait. */
export const EndpointExplanation = z
  .object({
    endpointId: z.string(),
    name: z.string(),
    ...EXPLANATION,
    jobs: z.object({ inQueue: Count, ofBatches: Count, inProgress: Count }),
    workers: z.array(z.object({ id: z.string(), state: z.string(), jobs: Count })),
  })
  .openapi('EndpointExplanation')

/** The reason why a job waits, or its end. */
export const JobExplanation = z
  .object({ id: z.string(), endpointId: z.string(), status: JobStatus, final: z.boolean(), ...EXPLANATION })
  .openapi('JobExplanation')

const DateTime = z.string().openapi({ format: 'date-time' })

const DELIVERY = {
  id: z.string(),
  state: z.enum(DELIVERY_STATES),
  jobStatus: z.string(),
  address: z
    .string()
    .nullable()
    .openapi({ description: 'origin of the receiver and the beginning of its path; the rest is hidden' }),
  createdAt: DateTime,
  nextTryAt: DateTime.optional(),
  tries: z.array(
    z.object({
      at: DateTime,
      tookMs: z.number(),
      status: z.int().optional(),
      error: z.string().nullable().optional(),
    }),
  ),
}

/** Deliveries of a webhook. */
export const Deliveries = z
  .object({ id: z.string(), deliveries: z.array(z.object(DELIVERY)) })
  .openapi('WebhookDeliveries')
/** A page of the deliveries of an endpoint. */
export const DeliveryPage = z
  .object({
    deliveries: z.array(z.object({ jobId: z.string(), ...DELIVERY })),
    pagination: z.object({ nextCursor: z.string().nullable(), hasNextPage: z.boolean() }),
  })
  .openapi('WebhookDeliveryPage')
export const WebhookKey = z.object({ key: z.string(), createdAt: DateTime }).openapi('WebhookKey')

/** A batch. */
export const Batch = z
  .object({
    id: z.string(),
    endpointId: z.string(),
    name: z.string().optional(),
    status: z.string(),
    requestTotal: Count,
    requestInProgress: Count,
    requestCompleted: Count,
    requestFailed: Count,
    createdAt: z.int(),
  })
  .openapi('Batch')
const PAGE = { total: Count, offset: Count, limit: Count, hasMore: z.boolean() }
export const BatchPage = z.object({ batches: z.array(Batch), ...PAGE }).openapi('Batches')
export const BatchRequestPage = z
  .object({
    requests: z.array(
      z.object({
        id: z.string(),
        status: z.string(),
        output: z.unknown().optional(),
        outputUrl: z.string().optional(),
        error: z.string().optional(),
        startedAt: Instant,
        completedAt: Instant,
      }),
    ),
    ...PAGE,
  })
  .openapi('BatchRequests')
export const NewBatch = z
  .union([
    z.array(JobRequest),
    z.object({ requests: z.array(JobRequest).optional(), name: z.string().optional(), webhook: z.string().optional() }),
  ])
  .openapi('NewBatch')
export const MoreRequests = z.object({ requests: z.array(JobRequest).min(1) }).openapi('MoreRequests')
export const BatchName = z.object({ name: z.string().max(255).nullable() }).openapi('BatchName')
export const NewBatchState = z.object({ id: z.string(), status: z.string() })
export const BatchState = z.object({ id: z.string(), status: z.string(), requestTotal: Count })
