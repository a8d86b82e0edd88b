import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchChecker } from '../../sim/checks/batch-checker.ts'
import { OrderChecker } from '../../sim/checks/order-checker.ts'
import type { Change } from '../../sim/ledger.ts'
import type { BatchId, EndpointId, JobId, WorkerId } from '../../src/core/ids.ts'
import type { JobStatus } from '../../src/core/jobs/job.ts'

const SUBMITTED: Change = {
  n: 1,
  kind: 'insert',
  job: 'job-1' as JobId,
  endpoint: 'endpoint' as EndpointId,
  was: null,
  now: 'IN_QUEUE',
  was_worker: null,
  worker: null,
  was_attempt: 0,
  attempt: 0,
  was_lost: 0,
  lost: 0,
  low: 0,
  queued_at_ms: 0,
  expires_at_ms: 1_000,
  webhook: null,
  input: '{}',
  output: null,
  error: null,
  batch: null,
  queue: '',
  endpoint_there: 1,
}

const changed = (was: JobStatus, now: JobStatus | null, rest: Partial<Change> = {}): Change => {
  return { ...SUBMITTED, n: 10, kind: now === null ? 'delete' : 'update', was, now, ...rest }
}
const CLAIM = changed('IN_QUEUE', 'IN_PROGRESS', { worker: 'worker-1' as WorkerId, attempt: 1 })

const batch = 'batch-1' as BatchId
const ofBatch = (n: number) => ({ job: `of-batch-${n}` as JobId, batch, queue: batch })

test('a job may be passed by one request of a batch, and not by a second, as long as it waits', () => {
  const problems: string[] = []
  const order = new OrderChecker(
    problem => problems.push(problem),
    { latest: () => 0, slackMs: 0 },
    () => false,
  )
  const store = (...stored: Change[]) => order.committed({ changes: stored, acknowledged: true })
  store(...[1, 2, 3, 4].map(n => ({ ...SUBMITTED, ...ofBatch(n), n })), { ...SUBMITTED, n: 5 })
  store({ ...CLAIM, ...ofBatch(1) })
  assert.deepEqual(problems, [])
  store({ ...CLAIM, ...ofBatch(2) })
  assert.match(problems.join(), /job job-1 was passed .* by a second request of batch batch-1/)
  store(CLAIM)
  store({ ...CLAIM, ...ofBatch(3) }, { ...CLAIM, ...ofBatch(4) })
  assert.equal(problems.length, 1)
})

test('a batch must count the ends of its jobs, is over a day after the last, and hands out nothing once cancelled', () => {
  const problems: string[] = []
  let nowMs = 0
  const checker = new BatchChecker(problem => problems.push(problem), { now: () => nowMs, latest: () => nowMs })
  const store = (...stored: Change[]) => checker.committed({ changes: stored, acknowledged: true })
  const row = { id: batch, status: 'FINALIZED', total: 3 } as const
  store(...[1, 2, 3].map(n => ({ ...SUBMITTED, ...ofBatch(n) })))
  store(changed('IN_PROGRESS', 'COMPLETED', ofBatch(1)), changed('IN_QUEUE', null, ofBatch(2)))
  checker.compare({ ...row, completed: 1, failed: 1 })
  store(changed('IN_QUEUE', 'TIMED_OUT', ofBatch(3)), changed('TIMED_OUT', 'IN_QUEUE', ofBatch(3)))
  checker.compare({ ...row, completed: 1, failed: 1 })
  nowMs = 25 * 3_600_000
  assert.deepEqual([problems, checker.isOver(batch)], [[], false])
  checker.compare({ ...row, completed: 1, failed: 0 })
  checker.canceled(batch)
  store({ ...CLAIM, ...ofBatch(3) })
  assert.match(problems.join(), /counts 1 completed and 0 failed, .* claimed after its batch batch-1 was cancelled/)
  store(changed('IN_PROGRESS', 'FAILED', ofBatch(3)))
  assert.equal(checker.isOver(batch), false)
  nowMs *= 2
  assert.equal(checker.isOver(batch), true)
})
