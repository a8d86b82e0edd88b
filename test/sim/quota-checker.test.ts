import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuotaChecker } from '../../sim/checks/quota-checker.ts'
import type { Change } from '../../sim/ledger.ts'
import type { JobStatus } from '../../src/core/jobs/job.ts'
import type { Placement } from '../../src/core/workers/placement.ts'
import { given } from '../support/placing.ts'

const awake = (placement: Placement) => ({ placement: JSON.stringify(placement), asleep_at_ms: null })

function quotas() {
  const problems: string[] = []
  const workers: { placement: string | null; asleep_at_ms: number | null }[] = []
  const endpoints = [{ id: 'here' }]
  const query = <Row>(sql: string) => (sql.includes('FROM endpoints') ? endpoints : workers) as Row[]
  const checker = new QuotaChecker(problem => problems.push(problem), { query }, { workers: 2, gpus: 1, queuedJobs: 2 })
  const change = (job: string, was: JobStatus | null, now: JobStatus | null, endpoint = 'here') => {
    const kind = was === null ? 'insert' : now === null ? 'delete' : 'update'
    checker.committed({ changes: [{ kind, job, endpoint, was, now } as Change], acknowledged: true })
  }
  return { problems, workers, checker, change }
}

test('more jobs that wait than the limit are reported, once', () => {
  const { problems, change } = quotas()
  for (const job of ['a', 'b']) change(job, null, 'IN_QUEUE')
  assert.deepEqual(problems, [])
  for (const job of ['c', 'd']) change(job, null, 'IN_QUEUE')
  assert.deepEqual(problems, ['the account has 3 queued jobs, and its limit is 2'])
})

test('jobs of an endpoint that is gone do not count, although they are removed later', () => {
  const { problems, change } = quotas()
  for (const job of ['a', 'b', 'c']) change(job, null, 'IN_QUEUE', 'gone')
  for (const job of ['d', 'e']) change(job, null, 'IN_QUEUE')
  assert.deepEqual(problems, [])
  change('f', null, 'IN_QUEUE')
  assert.deepEqual(problems, ['the account has 3 queued jobs, and its limit is 2'])
})

test('jobs that were handed out, or are gone, do not count, also when they come back', () => {
  const { problems, change } = quotas()
  for (const job of ['a', 'b', 'c']) {
    change(job, null, 'IN_QUEUE')
    change(job, 'IN_QUEUE', 'IN_PROGRESS')
    change(job, 'IN_PROGRESS', 'IN_QUEUE')
  }
  change('d', null, 'IN_QUEUE')
  change('d', 'IN_QUEUE', null)
  for (const job of ['e', 'f']) change(job, null, 'IN_QUEUE')
  assert.deepEqual(problems, [])
})

test('more workers or GPUs than the limit are reported', () => {
  const { problems, workers, checker } = quotas()
  workers.push(awake(given(0)), { placement: JSON.stringify(given(1)), asleep_at_ms: 1 })
  checker.inspect()
  assert.deepEqual(problems, [])
  workers.push(awake(given(1)))
  checker.inspect()
  assert.deepEqual(problems, [
    'the account has 3 workers, and its limit is 2',
    'the account has 2 GPUs, and its limit is 1',
  ])
})
