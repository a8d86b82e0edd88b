/** Faults of the soak (scripts/torture.ts --soak), and values that it allows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attempt, Seen } from '../../scripts/torture/clients.ts'
import { judgeSoak, type SoakEvidence, soakRows } from '../../scripts/torture/soak/judge.ts'
import { type ExpectedEnd, Ledger, type LoadKind } from '../../scripts/torture/soak/ledger.ts'

const attempt = (n: number, nonce = 'first'): Attempt => ({ job: `job${n}`, n, nonce, worker: 'w1', release: '1' })
const completed = (n: number): Seen => ({ status: 'COMPLETED', output: attempt(n) })
const lostThrice: Seen = { status: 'FAILED', error: 'the worker of this job was lost 3 times' }

/** Everything as it should be with three jobs, one of them with a webhook. */
function faultless() {
  const ledger = new Ledger()
  for (const n of [0, 1, 2]) accept(ledger, n)
  return {
    ledger,
    attempts: [attempt(0), attempt(1), attempt(2)],
    records: new Map([0, 1, 2].map(n => [`job${n}`, 'COMPLETED'])),
    ends: new Map([['job0', new Map([['d1', completed(0)]])]]),
    webhookRequests: new Map([['d1', 2]]),
    downMs: [900, 1_100],
    memory: [{ server: 150, relay: 60 }],
    silence: { running: { ms: 300, atS: 5 }, killed: { ms: 1_200, atS: 60 } },
    exitCode: 0,
    leftOver: 0,
    disk: 'none',
    clock: 'none',
    diskMb: { start: 1, end: 2 },
  } satisfies SoakEvidence
}

function accept(ledger: Ledger, n: number, expected: ExpectedEnd = 'COMPLETED', kind: LoadKind = 'run', seen?: Seen) {
  const job = { id: `job${n}`, n, kind, endpoint: 'e', hasWebhook: n === 0, expected, answeredAtMs: 0 }
  ledger.acknowledge(job)
  ledger.ended(job, seen ?? completed(n))
}

function judgeFaults(evidence: SoakEvidence): string[] {
  judgeSoak(evidence)
  return evidence.ledger.faults.map(({ kind, id, what }) => `${kind} ${id} ${what}`)
}

test('kept promises are no faults, and the report counts them', () => {
  const evidence = faultless()
  assert.deepEqual(judgeFaults(evidence), [])
  const rows = new Map(soakRows(evidence))
  const shown = ['jobs acknowledged', 'lost', 'twice', 'wrong', 'webhooks delivered', '  of which called again']
  assert.deepEqual(
    shown.map(name => rows.get(name)),
    ['3', '0', '0', '0', '1', '1'],
  )
})

test('three lost attempts and a failure that the handler wanted are allowed, another end is not', () => {
  const evidence = faultless()
  const more = [3, 4, 5, 6].map(n => attempt(n))
  const records = new Map([...evidence.records, ['job3', 'FAILED'], ['job4', 'FAILED'], ['job5', 'FAILED']])
  accept(evidence.ledger, 3, 'COMPLETED', 'run', lostThrice)
  accept(evidence.ledger, 4, 'FAILED', 'failure', { status: 'FAILED', error: 'ValueError: job 4 fails as it should' })
  accept(evidence.ledger, 5, 'COMPLETED', 'run', { status: 'FAILED', error: 'out of memory' })
  accept(evidence.ledger, 6, 'TIMED_OUT', 'timeout')
  const faults = judgeFaults({
    ...evidence,
    attempts: [...evidence.attempts, ...more],
    records: records.set('job6', 'COMPLETED'),
  })
  assert.deepEqual(faults, [
    'wrong job5 (run) is FAILED and not COMPLETED: out of memory',
    'wrong job6 (timeout) is COMPLETED and not TIMED_OUT: no reason',
  ])
})

test('what is lost, twice or wrong is named', () => {
  const evidence = faultless()
  const { ledger } = evidence
  ledger.ended(ledger.jobs.get('job1')!, { status: 'CANCELLED' })
  ledger.batches.set('batch1', { id: 'batch1', requests: 2 })
  const faults = judgeFaults({
    ...evidence,
    attempts: [attempt(0, 'another'), attempt(1), attempt(2), attempt(9)],
    records: new Map([
      ['job0', 'COMPLETED'],
      ['job1', 'FAILED'],
    ]),
    ends: new Map([
      [
        'job0',
        new Map([
          ['d1', completed(0)],
          ['d2', completed(0)],
        ]),
      ],
    ]),
    exitCode: null,
    leftOver: 1,
  })
  assert.deepEqual(faults, [
    'wrong job1 was COMPLETED and is CANCELLED with another outcome',
    'wrong job0 (run) has an output that no attempt made',
    'twice job0 had 2 ends by its webhook',
    'wrong job1 was COMPLETED and its record is FAILED',
    'lost job2 (run) has no record at the end',
    'lost batch1 is a batch with 0 ends',
    'twice job9 ran although no response named it: it was submitted twice',
    'server - the server ended with null',
    'server - 1 processes of workers are left over',
  ])
})
