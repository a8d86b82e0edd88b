import type { Row, Situation } from './row.ts'

const EMPTY_JSON = { 'Content-Type': 'application/json', 'Content-Length': '0' }
const GONE = { answers: '404 Not Found', body: '{"error": "job {job} not found"}' } as const
const CANCELLED = '{"id": "{job}", "status": "CANCELLED"}'
const QUEUED = '{"id": "{job}", "status": "IN_QUEUE"}'

const conflict = (operation: string, job: Situation, words: string): Row => {
  return {
    says: `a job that is ${job}`,
    ask: `POST /${operation}/{job}`,
    job,
    answers: '409 Conflict',
    body: `{"error": "job {job} is ${words}"}`,
  }
}
const cannotCancel = (job: Situation, status: string) => conflict('cancel', job, `${status} and cannot be cancelled`)
const cannotRetry = (job: Situation, status: string) =>
  conflict('retry', job, `${status}; only FAILED and TIMED_OUT jobs can be retried`)

export const CANCEL: readonly Row[] = [
  { says: 'a queued job', ask: 'POST /cancel/{job}', job: 'queued', answers: '200 OK', body: CANCELLED },
  {
    says: 'without a body but with its type',
    ask: 'POST /cancel/{job}',
    headers: EMPTY_JSON,
    job: 'queued',
    answers: '200 OK',
    body: CANCELLED,
  },
  {
    says: 'with an empty object',
    ask: 'POST /cancel/{job}',
    send: '{}',
    job: 'queued',
    answers: '200 OK',
    body: CANCELLED,
  },
  { says: 'a running job', ask: 'POST /cancel/{job}', job: 'running', answers: '200 OK', body: CANCELLED },
  { says: 'a cancelled job again', ask: 'POST /cancel/{job}', job: 'cancelled', answers: '200 OK', body: CANCELLED },
  cannotCancel('completed', 'COMPLETED'),
  cannotCancel('failed', 'FAILED'),
  cannotCancel('timed out', 'TIMED_OUT'),
  { says: 'a job past its ttl', ask: 'POST /cancel/{job}', job: 'expired', ...GONE },
  { says: 'a job of another endpoint', ask: 'POST /cancel/{job}', job: 'foreign', ...GONE },
  {
    says: 'only POST',
    ask: 'GET /cancel/{job}',
    job: 'queued',
    answers: '405 Method Not Allowed',
    with: { allow: 'POST' },
    body: '{"error": "/cancel/:job takes POST, not GET"}',
  },
  {
    says: 'no key',
    ask: 'POST /cancel/{job}',
    job: 'queued',
    anonymous: true,
    answers: '401 Unauthorized',
    body: '{"error": <sentence>}',
  },
  {
    says: 'a load-balancing endpoint',
    ask: 'POST /cancel/x',
    at: 'balancer',
    answers: '400 Bad Request',
    body: '{"error": <not-for-lb>}',
  },
]

export const RETRY: readonly Row[] = [
  { says: 'a failed job', ask: 'POST /retry/{job}', job: 'failed', answers: '200 OK', body: QUEUED },
  {
    says: 'a job that timed out',
    ask: 'POST /retry/{job}',
    headers: EMPTY_JSON,
    job: 'timed out',
    answers: '200 OK',
    body: QUEUED,
  },
  cannotRetry('queued', 'IN_QUEUE'),
  cannotRetry('running', 'IN_PROGRESS'),
  cannotRetry('completed', 'COMPLETED'),
  cannotRetry('cancelled', 'CANCELLED'),
  { says: 'a job past its ttl', ask: 'POST /retry/{job}', job: 'expired', ...GONE },
  {
    says: 'only POST',
    ask: 'GET /retry/{job}',
    job: 'queued',
    answers: '405 Method Not Allowed',
    with: { allow: 'POST' },
    body: '{"error": "/retry/:job takes POST, not GET"}',
  },
  {
    says: 'no key',
    ask: 'POST /retry/{job}',
    job: 'queued',
    anonymous: true,
    answers: '401 Unauthorized',
    body: '{"error": <sentence>}',
  },
  {
    says: 'a load-balancing endpoint',
    ask: 'POST /retry/x',
    at: 'balancer',
    answers: '400 Bad Request',
    body: '{"error": <not-for-lb>}',
  },
]

export const PURGE: readonly Row[] = [
  {
    says: 'says how many jobs it removed',
    ask: 'POST /purge-queue',
    headers: EMPTY_JSON,
    job: 'queued',
    answers: '200 OK',
    body: '{"removed": 1, "status": "completed"}',
  },
  {
    says: 'with an empty object',
    ask: 'POST /purge-queue',
    send: '{}',
    job: 'queued',
    answers: '200 OK',
    body: '{"removed": 1, "status": "completed"}',
  },
  {
    says: 'none, when none waits',
    ask: 'POST /purge-queue',
    job: 'running',
    answers: '200 OK',
    body: '{"removed": 0, "status": "completed"}',
  },
  {
    says: 'only POST',
    ask: 'GET /purge-queue',
    answers: '405 Method Not Allowed',
    with: { allow: 'POST' },
    body: '{"error": "/purge-queue takes POST, not GET"}',
  },
  {
    says: 'no key',
    ask: 'POST /purge-queue',
    anonymous: true,
    answers: '401 Unauthorized',
    body: '{"error": <sentence>}',
  },
  {
    says: 'a load-balancing endpoint',
    ask: 'POST /purge-queue',
    at: 'balancer',
    answers: '400 Bad Request',
    body: '{"error": <not-for-lb>}',
  },
]

const COUNTERS =
  '{"jobs": {"completed": <int>, "failed": <int>, "inProgress": <int>, "inQueue": <int>, "retried": <int>}, ' +
  '"workers": {"idle": <int>, "initializing": <int>, "ready": <int>, "running": <int>, "throttled": <int>, "unhealthy": <int>}}'

export const HEALTH: readonly Row[] = [
  { says: 'all counters', ask: 'GET /health', answers: '200 OK', body: COUNTERS },
  { says: 'all counters while a job runs', ask: 'GET /health', job: 'running', answers: '200 OK', body: COUNTERS },
  { says: 'by POST', ask: 'POST /health', headers: EMPTY_JSON, answers: '200 OK', body: COUNTERS },
  { says: 'a load-balancing endpoint has it', ask: 'GET /health', at: 'balancer', answers: '200 OK', body: COUNTERS },
  {
    says: 'the key without Bearer',
    ask: 'GET /health',
    headers: { Authorization: '{key}' },
    answers: '200 OK',
    body: COUNTERS,
  },
  {
    says: 'only GET and POST',
    ask: 'DELETE /health',
    answers: '405 Method Not Allowed',
    with: { allow: 'GET, POST' },
    body: '{"error": "/health takes GET or POST, not DELETE"}',
  },
  { says: 'no key', ask: 'GET /health', anonymous: true, answers: '401 Unauthorized', body: '{"error": <sentence>}' },
  {
    says: 'an endpoint that there is not',
    ask: 'GET /health',
    at: 'nowhere',
    answers: '404 Not Found',
    body: '{"error": "endpoint {endpoint} not found"}',
  },
  {
    says: 'an operation that there is not',
    ask: 'POST /fly',
    answers: '404 Not Found',
    body: '{"error": <no-operation>}',
  },
]

export const WEBHOOKS: readonly Row[] = [
  {
    says: 'a job without a webhook has no deliveries',
    ask: 'GET /webhooks/{job}',
    job: 'queued',
    answers: '200 OK',
    body: '{"id": "{job}", "deliveries": []}',
  },
  {
    says: 'the key of the endpoint, never to be cached',
    ask: 'GET /webhook-key',
    answers: '200 OK',
    with: { 'cache-control': 'no-store' },
    body: '{"key": <secret>, "createdAt": <instant>}',
  },
  {
    says: 'a new key',
    ask: 'POST /webhook-key',
    headers: EMPTY_JSON,
    answers: '200 OK',
    with: { 'cache-control': 'no-store' },
    body: '{"key": <secret>, "createdAt": <instant>}',
  },
  {
    says: 'only GET',
    ask: 'POST /webhooks/{job}',
    job: 'queued',
    answers: '405 Method Not Allowed',
    with: { allow: 'GET' },
    body: '{"error": "/webhooks/:job takes GET, not POST"}',
  },
]
