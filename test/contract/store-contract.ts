import { after, describe, test } from 'node:test'
import type { EmptiedStore } from '../support/emptied-stores.ts'
import { alertCases } from './store-alerts.ts'
import { appCases } from './store-apps.ts'
import { attemptTimesCases } from './store-attempt-times.ts'
import { auditCases } from './store-audit.ts'
import { batchEndCases } from './store-batch-ends.ts'
import { batchCases } from './store-batches.ts'
import { claimCases } from './store-claims.ts'
import { clockCases } from './store-clock.ts'
import { endpointCases } from './store-endpoints.ts'
import { jobRecordCases } from './store-job-records.ts'
import { jobCases } from './store-jobs.ts'
import { largeTextCases } from './store-large-texts.ts'
import { managementCases } from './store-management.ts'
import { metricCases } from './store-metrics.ts'
import { outcomeCases } from './store-outcomes.ts'
import { queueCountCases } from './store-queue-counts.ts'
import { queuedWorkerCases } from './store-queued-workers.ts'
import { quotaCases } from './store-quotas.ts'
import { recordCases } from './store-records.ts'
import { removalCases } from './store-removals.ts'
import { sessionCases } from './store-sessions.ts'
import { suspectCases } from './store-suspects.ts'
import { takeAheadCases } from './store-take-ahead.ts'
import { transitionCases } from './store-transitions.ts'
import { turnCases } from './store-turns.ts'
import { usageCases } from './store-usage.ts'
import { webhookCases } from './store-webhooks.ts'
import { workerCases } from './store-workers.ts'
import { type Cases, World } from './store-world.ts'

const parts: readonly Cases[] = [
  jobCases,
  jobRecordCases,
  claimCases,
  takeAheadCases,
  suspectCases,
  outcomeCases,
  largeTextCases,
  transitionCases,
  queueCountCases,
  endpointCases,
  workerCases,
  queuedWorkerCases,
  recordCases,
  managementCases,
  appCases,
  alertCases,
  quotaCases,
  webhookCases,
  usageCases,
  metricCases,
  attemptTimesCases,
  batchCases,
  batchEndCases,
  turnCases,
  removalCases,
  sessionCases,
  clockCases,
  auditCases,
]

/**
 * Contract of every store, as tests of the caller's own file. Each case begins with an empty store; a new store is
 * opened after a case that failed, which may have left work under way.
 * @param name tested store, for the names of the tests
 */
export function storeContract(name: string, open: () => Promise<EmptiedStore>): void {
  describe(name, () => {
    let current: EmptiedStore | null = null
    const end = async () => {
      await current?.end()
      current = null
    }
    after(end)
    for (const [sentence, run] of parts.flatMap(part => Object.entries(part))) {
      test(`${name}: ${sentence}`, async () => {
        current ??= await open()
        const { store, empty } = current
        try {
          const world = new World(store)
          await world.begin()
          await run(world)
        } catch (error) {
          await end()
          throw error
        }
        if (empty === null) await end()
        else await empty()
      })
    }
  })
}
