/** The job operations as the OpenAPI document shows them. Each route of routes.ts is here. */
import { z } from '@hono/zod-openapi'
import type { DocumentedOperation } from '../operation.ts'
import { BATCH_OPERATIONS } from './batch-operations.ts'
import {
  Deliveries,
  DeliveryPage,
  EndpointExplanation,
  EndpointParam,
  Health,
  Job,
  JobErrors,
  JobExplanation,
  JobListQuery,
  JobParams,
  JobRecord,
  JobRecordPage,
  JobRequest,
  JobState,
  JobStory,
  JobStream,
  ManyJobs,
  ManyJobsRequest,
  OpenAiError,
  PurgedQueue,
  RemovedJob,
  WebhookKey,
  WorkerMetrics,
} from './schemas.ts'

const JOBS = 'Jobs'
const HISTORY = 'Job history'
const STATE = 'State of an endpoint'

const SubmissionHeaders = {
  'Idempotency-Key': z.string().min(1).max(255).optional(),
  traceparent: z.string().optional(),
}
const Wait = { wait: z.int().min(0).max(300_000).optional() }

const SUBMITTING: readonly DocumentedOperation[] = [
  {
    method: 'post',
    path: '/v2/{endpoint}/run',
    operationId: 'runJob',
    tag: JOBS,
    summary: 'Submits a job and returns its id once the job is on stable storage.',
    params: EndpointParam,
    headers: SubmissionHeaders,
    body: { schema: JobRequest, required: true },
    response: JobState,
    errors: [409, 413],
  },
  {
    method: 'post',
    path: '/v2/{endpoint}/runsync',
    operationId: 'runJobSync',
    tag: JOBS,
    summary: 'Submits a job and returns it once it is final, or as it is after `wait` milliseconds (default 90000).',
    params: EndpointParam,
    query: { wait: z.int().min(1_000).max(300_000).optional() },
    headers: SubmissionHeaders,
    body: { schema: JobRequest, required: true },
    response: Job,
    errors: [409, 413],
  },
]

const READING: readonly DocumentedOperation[] = [
  {
    method: 'get',
    path: '/v2/{endpoint}/status/{job}',
    operationId: 'getJobStatus',
    tag: JOBS,
    postToo: true,
    summary: 'Returns a job with its result; `ttl` milliseconds set how long it is kept from now on.',
    params: JobParams,
    query: { ttl: z.int().min(1_000).max(604_800_000).optional() },
    response: Job,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/status-sync/{job}',
    operationId: 'awaitJob',
    tag: JOBS,
    postToo: true,
    summary: 'Returns a job once it is final, or as it is after `wait` milliseconds (default 8000).',
    params: JobParams,
    query: Wait,
    response: Job,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/stream/{job}',
    operationId: 'streamJob',
    tag: JOBS,
    postToo: true,
    summary: 'Returns the next chunks that a generator handler yielded, each chunk once.',
    params: JobParams,
    query: { ...Wait, format: z.enum(['array', 'envelope']).optional() },
    response: JobStream,
  },
]

const CHANGING: readonly DocumentedOperation[] = [
  {
    method: 'post',
    path: '/v2/{endpoint}/cancel/{job}',
    operationId: 'cancelJob',
    tag: JOBS,
    summary: 'Cancels a job that waits or runs.',
    params: JobParams,
    response: JobState,
    errors: [409],
  },
  {
    method: 'post',
    path: '/v2/{endpoint}/retry/{job}',
    operationId: 'retryJob',
    tag: JOBS,
    summary: 'Queues a job again that failed or timed out, with its original input.',
    params: JobParams,
    response: JobState,
    errors: [409],
  },
  {
    method: 'post',
    path: '/v2/{endpoint}/purge-queue',
    operationId: 'purgeQueue',
    tag: JOBS,
    summary: 'Cancels all waiting jobs; running ones go on.',
    params: EndpointParam,
    response: PurgedQueue,
  },
]

const RECORDS: readonly DocumentedOperation[] = [
  {
    method: 'get',
    path: '/v2/{endpoint}/requests',
    operationId: 'listJobs',
    tag: HISTORY,
    summary: 'Lists jobs, the newest first, also those whose results were removed.',
    params: EndpointParam,
    query: JobListQuery,
    response: JobRecordPage,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/errors',
    operationId: 'listJobErrors',
    tag: HISTORY,
    summary: 'Groups the newest 10,000 failed and timed out jobs by what their errors have in common.',
    params: EndpointParam,
    query: { from: JobListQuery.from, to: JobListQuery.to },
    response: JobErrors,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/requests/{job}',
    operationId: 'getJobRecord',
    tag: HISTORY,
    summary: 'Returns one job with its times, attempts and notes, and with input and output where they are kept.',
    params: JobParams,
    response: JobRecord,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/requests/{job}/input',
    operationId: 'getJobInput',
    tag: HISTORY,
    summary: 'Returns the input of a job where it is kept, also one that is too large for its record.',
    params: JobParams,
    response: z.unknown(),
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/requests/{job}/story',
    operationId: 'getJobStory',
    tag: HISTORY,
    summary:
      'Returns what happened to one job, with times: waits, starts of workers, attempts, ends, and calls of its webhook.',
    params: JobParams,
    response: JobStory,
  },
  {
    method: 'delete',
    path: '/v2/{endpoint}/requests/{job}',
    operationId: 'deleteJobRecord',
    tag: HISTORY,
    summary: 'Removes a job that has ended, with its result and its record.',
    params: JobParams,
    response: RemovedJob,
    errors: [409],
  },
  {
    method: 'post',
    path: '/v2/{endpoint}/requests/{job}/replay',
    operationId: 'replayJob',
    tag: HISTORY,
    summary: 'Submits a new job like an old one; a body replaces the old input.',
    params: JobParams,
    headers: SubmissionHeaders,
    body: { schema: JobRequest, required: false },
    response: JobState,
    errors: [409, 413],
  },
  ...(['cancel', 'retry'] as const).map(
    (change): DocumentedOperation => ({
      method: 'post',
      path: `/v2/{endpoint}/requests/${change}`,
      operationId: `${change}Jobs`,
      tag: HISTORY,
      summary: `${change === 'cancel' ? 'Cancels' : 'Retries'} the jobs that a filter means; with \`dryRun\` it only counts them.`,
      params: EndpointParam,
      body: { schema: ManyJobsRequest, required: true },
      response: ManyJobs,
      errors: [413],
    }),
  ),
]

const OBSERVING: readonly DocumentedOperation[] = [
  {
    method: 'get',
    path: '/v2/{endpoint}/health',
    operationId: 'getHealth',
    tag: STATE,
    postToo: true,
    summary: 'Counts jobs and workers by their states.',
    params: EndpointParam,
    response: Health,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/metrics',
    operationId: 'getWorkerMetrics',
    tag: STATE,
    summary: 'Counts jobs and workers by their states, with the ids of the workers that are ready.',
    params: EndpointParam,
    response: WorkerMetrics,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/explain',
    operationId: 'explainEndpoint',
    tag: STATE,
    summary: 'Says why jobs wait, and what to do.',
    params: EndpointParam,
    response: EndpointExplanation,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/explain/{job}',
    operationId: 'explainJob',
    tag: STATE,
    summary: 'Says why a job waits, or how it ended.',
    params: JobParams,
    response: JobExplanation,
  },
]

const WEBHOOKS: readonly DocumentedOperation[] = [
  {
    method: 'get',
    path: '/v2/{endpoint}/webhooks',
    operationId: 'listEndpointWebhooks',
    tag: 'Webhooks',
    summary: 'Lists the deliveries of the webhooks of an endpoint, the newest first, with each try.',
    params: EndpointParam,
    query: {
      state: z.enum(['pending', 'delivered', 'failed']).optional(),
      limit: z.int().min(1).max(100).optional(),
      cursor: JobListQuery.cursor,
    },
    response: DeliveryPage,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/webhooks/{job}',
    operationId: 'listWebhookDeliveries',
    tag: 'Webhooks',
    summary: "Lists the deliveries of a job's or a batch's webhook, with each try.",
    params: JobParams,
    response: Deliveries,
  },
  {
    method: 'get',
    path: '/v2/{endpoint}/webhook-key',
    operationId: 'getWebhookKey',
    tag: 'Webhooks',
    summary: "Returns the key that signs the endpoint's webhooks.",
    params: EndpointParam,
    response: WebhookKey,
  },
  {
    method: 'post',
    path: '/v2/{endpoint}/webhook-key',
    operationId: 'rotateWebhookKey',
    tag: 'Webhooks',
    summary: 'Makes a new key for the webhooks of the endpoint.',
    params: EndpointParam,
    response: WebhookKey,
  },
]

/** Every job operation. */
export const JOB_OPERATIONS: readonly DocumentedOperation[] = [
  ...SUBMITTING,
  ...READING,
  ...CHANGING,
  ...RECORDS,
  ...BATCH_OPERATIONS,
  ...WEBHOOKS,
  ...OBSERVING,
  {
    method: 'post',
    path: '/v2/{endpoint}/openai/v1/{route}',
    operationId: 'callOpenAi',
    tag: 'OpenAI',
    summary:
      'Passes a request of an OpenAI client to a worker as a job; any method and any route below `/openai` works.',
    params: { ...EndpointParam, route: z.string() },
    body: { schema: z.record(z.string(), z.unknown()), required: true },
    response: z.unknown(),
    error: OpenAiError,
    errors: [413],
  },
]
