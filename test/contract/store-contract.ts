import { test } from 'node:test'
import type { Store } from '../../src/ports/store.ts'
import { batchEndCases } from './store-batch-ends.ts'
import { batchCases } from './store-batches.ts'
import { claimCases } from './store-claims.ts'
import { endpointCases } from './store-endpoints.ts'
import { jobCases } from './store-jobs.ts'
import { managementCases } from './store-management.ts'
import { outcomeCases } from './store-outcomes.ts'
import { queuedWorkerCases } from './store-queued-workers.ts'
import { recordCases } from './store-records.ts'
import { removalCases } from './store-removals.ts'
import { suspectCases } from './store-suspects.ts'
import { transitionCases } from './store-transitions.ts'
import { turnCases } from './store-turns.ts'
import { usageCases } from './store-usage.ts'
import { webhookCases } from './store-webhooks.ts'
import { workerCases } from './store-workers.ts'
import { type Cases, World } from './store-world.ts'

/** An empty store and what ends its use. */
export interface FreshStore {
  readonly store: Store
  /** Removes what is left when the store was closed. */
  readonly cleanUp?: () => void | Promise<void>
}

const parts: readonly Cases[] = [
  jobCases,
  claimCases,
  suspectCases,
  outcomeCases,
  transitionCases,
  endpointCases,
  workerCases,
  queuedWorkerCases,
  recordCases,
  managementCases,
  webhookCases,
  usageCases,
  batchCases,
  batchEndCases,
  turnCases,
  removalCases,
]

/**
 * What every store must do, as tests of the caller's own file. Each case gets a store of its own.
 * @param name what is tested, for the names of the tests
 */
export function storeContract(name: string, factory: () => Promise<FreshStore>): void {
  for (const [sentence, run] of parts.flatMap(part => Object.entries(part))) {
    test(`${name}: ${sentence}`, async () => {
      const { store, cleanUp } = await factory()
      try {
        const world = new World(store)
        await world.begin()
        await run(world)
      } finally {
        await store.close()
        await cleanUp?.()
      }
    })
  }
}
