import type { Row, Situation } from './row.ts'

/** Status of a job in each situation. */
const VIEWS: readonly (readonly [Situation, string])[] = [
  ['queued', '{"delayTime": <int>, "id": "{job}", "status": "IN_QUEUE"}'],
  [
    'running',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "status": "IN_PROGRESS", "workerId": <worker>}',
  ],
  [
    'progress',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "output": {"percent": 50}, "status": "IN_PROGRESS", "workerId": <worker>}',
  ],
  [
    'completed',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "output": {"a": 1}, "status": "COMPLETED", "workerId": <worker>}',
  ],
  [
    'no output',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "status": "COMPLETED", "workerId": <worker>}',
  ],
  [
    'nan',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "output": [null, 1], "status": "COMPLETED", "warning": <sentence>, "workerId": <worker>}',
  ],
  [
    'failed',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "error": "boom", "status": "FAILED", "workerId": <worker>}',
  ],
  ['cancelled', '{"delayTime": <int>, "executionTime": 0, "id": "{job}", "status": "CANCELLED", "workerId": ""}'],
  [
    'cancelled running',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "status": "CANCELLED", "workerId": <worker>}',
  ],
  [
    'timed out',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "error": "the job ran longer than its execution timeout of 5000 ms", "status": "TIMED_OUT", "workerId": <worker>}',
  ],
  [
    'lost once',
    '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "output": 2, "retries": 1, "status": "COMPLETED", "workerId": <worker>}',
  ],
]
const FINAL: readonly Situation[] = ['completed', 'failed', 'cancelled', 'timed out']
const EMPTY_JSON = { 'Content-Type': 'application/json', 'Content-Length': '0' }
const GONE = { answers: '404 Not Found', body: '{"error": "job {job} not found"}' } as const

export const STATUS: readonly Row[] = [
  ...VIEWS.flatMap(([job, body]): Row[] => [
    { says: `a job that is ${job}`, ask: 'GET /status/{job}', job, answers: '200 OK', body },
    {
      says: `the same by POST without a body: ${job}`,
      ask: 'POST /status/{job}',
      headers: EMPTY_JSON,
      job,
      answers: '200 OK',
      body,
    },
  ]),
  {
    says: 'ttl sets its expiry',
    ask: 'GET /status/{job}?ttl=1000',
    job: 'queued',
    answers: '200 OK',
    body: '{"delayTime": <int>, "id": "{job}", "status": "IN_QUEUE"}',
  },
  {
    says: 'a ttl below 1000',
    ask: 'GET /status/{job}?ttl=999',
    job: 'queued',
    answers: '400 Bad Request',
    body: '{"error": "\\"ttl\\" must be an integer from 1000 to 604800000 milliseconds"}',
  },
  {
    says: 'a ttl above 7 days',
    ask: 'GET /status/{job}?ttl=604800001',
    job: 'queued',
    answers: '400 Bad Request',
    body: '{"error": "\\"ttl\\" must be an integer from 1000 to 604800000 milliseconds"}',
  },
  { says: 'a job past its ttl', ask: 'GET /status/{job}', job: 'expired', ...GONE },
  { says: 'a job of another endpoint', ask: 'GET /status/{job}', job: 'foreign', ...GONE },
  {
    says: 'a job that never was',
    ask: 'GET /status/never',
    answers: '404 Not Found',
    body: '{"error": "job never not found"}',
  },
  { says: 'no job', ask: 'GET /status', answers: '404 Not Found', body: '{"error": <no-operation>}' },
  {
    says: 'only GET and POST',
    ask: 'DELETE /status/{job}',
    job: 'queued',
    answers: '405 Method Not Allowed',
    with: { allow: 'GET, POST' },
    body: '{"error": "/status/:job takes GET or POST, not DELETE"}',
  },
  {
    says: 'no key',
    ask: 'GET /status/{job}',
    job: 'queued',
    anonymous: true,
    answers: '401 Unauthorized',
    body: '{"error": <sentence>}',
  },
  {
    says: 'a load-balancing endpoint',
    ask: 'GET /status/x',
    at: 'balancer',
    answers: '400 Bad Request',
    body: '{"error": <not-for-lb>}',
  },
]

export const STATUS_SYNC: readonly Row[] = [
  ...VIEWS.filter(([job]) => FINAL.includes(job)).flatMap(([job, body]): Row[] => [
    {
      says: `a job that is ${job} is answered at once`,
      ask: 'GET /status-sync/{job}?wait=90000',
      job,
      answers: '200 OK',
      body,
      held: [0, 5_000],
    },
    {
      says: `the same by POST without a body: ${job}`,
      ask: 'POST /status-sync/{job}?wait=90000',
      headers: EMPTY_JSON,
      job,
      answers: '200 OK',
      body,
      held: [0, 5_000],
    },
  ]),
  {
    says: 'held until the job is final',
    ask: 'GET /status-sync/{job}',
    job: 'running',
    meanwhile: 'finishes it',
    answers: '200 OK',
    body: '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "output": {"a": 1}, "status": "COMPLETED", "workerId": <worker>}',
    held: [150, 6_000],
  },
  {
    says: 'as it is after wait',
    ask: 'GET /status-sync/{job}?wait=300',
    job: 'running',
    answers: '200 OK',
    body: '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "status": "IN_PROGRESS", "workerId": <worker>}',
    held: [290, 5_000],
  },
  {
    says: 'at once with wait=0',
    ask: 'GET /status-sync/{job}?wait=0',
    job: 'queued',
    answers: '200 OK',
    body: '{"delayTime": <int>, "id": "{job}", "status": "IN_QUEUE"}',
    held: [0, 5_000],
  },
  {
    says: 'after 8 s without a wait',
    ask: 'GET /status-sync/{job}',
    job: 'queued',
    answers: '200 OK',
    body: '{"delayTime": <int>, "id": "{job}", "status": "IN_QUEUE"}',
    held: [7_900, 14_000],
  },
  {
    says: 'a wait above the most is as long as the most',
    ask: 'GET /status-sync/{job}?wait=999999999',
    job: 'running',
    meanwhile: 'finishes it',
    answers: '200 OK',
    body: '{"delayTime": <int>, "executionTime": <int>, "id": "{job}", "output": {"a": 1}, "status": "COMPLETED", "workerId": <worker>}',
  },
  {
    says: 'a wait that is no number',
    ask: 'GET /status-sync/{job}?wait=soon',
    job: 'queued',
    answers: '400 Bad Request',
    body: '{"error": "\\"wait\\" must be a whole number of milliseconds"}',
  },
  { says: 'a job past its ttl', ask: 'GET /status-sync/{job}', job: 'expired', ...GONE },
  {
    says: 'only GET and POST',
    ask: 'PUT /status-sync/{job}',
    job: 'queued',
    answers: '405 Method Not Allowed',
    with: { allow: 'GET, POST' },
    body: '{"error": "/status-sync/:job takes GET or POST, not PUT"}',
  },
  {
    says: 'a load-balancing endpoint',
    ask: 'GET /status-sync/x',
    at: 'balancer',
    answers: '400 Bad Request',
    body: '{"error": <not-for-lb>}',
  },
]
