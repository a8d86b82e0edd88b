/** Stores with a mistake in them: a simulator that does not find it would not find it in ours either. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settle } from '../../sim/run.ts'
import { runSeed } from '../../sim/simulation.ts'
import type { Database } from '../../sim/store.ts'
import type { WorkerId } from '../../src/core/ids.ts'
import type { FinishRequest, Store } from '../../src/ports/store.ts'

/** Among these the mistake must be found. */
const MUTANT_SEEDS = 40

test('a store that takes results from anyone is found out', async () => {
  const found = await firstProblem(withoutFence)
  assert.match(found, /who sent no result|has the output of worker/)
})

test('a store that forgets jobs is found out', async () => {
  assert.match(await firstProblem(forgetful), /vanished|acknowledged/)
})

test('a store that never notes the end of a worker is found out', async () => {
  assert.match(await firstProblem(deathless), /although its process has ended/)
})

/** The first problem that some seed finds in a broken store. */
async function firstProblem(breakStore: (database: Database) => Store): Promise<string> {
  for (let seed = 1; seed <= MUTANT_SEEDS; seed += 1) {
    const { problems } = await runSeed(seed, { settle, breakStore })
    if (problems[0] !== undefined) return problems[0]
  }
  return `nothing was found in ${MUTANT_SEEDS} seeds`
}

/** Takes each result as if it were the holder's. */
function withoutFence({ store, query }: Database): Store {
  const finish = (request: FinishRequest) => {
    const [row] = query<{ worker_id: WorkerId | null }>(`SELECT worker_id FROM jobs WHERE id = '${request.jobId}'`)
    return store.jobOutcomes.finish({ ...request, workerId: row?.worker_id ?? request.workerId })
  }
  return { ...store, jobOutcomes: { ...store.jobOutcomes, finish } }
}

/** Says that it has kept every job, and does not keep each tenth. */
function forgetful({ store }: Database): Store {
  let count = 0
  const insert: Store['jobs']['insert'] = async job => {
    count += 1
    return count % 10 === 0 ? true : store.jobs.insert(job)
  }
  return { ...store, jobs: { ...store.jobs, insert } }
}

/** Never says that a worker has ended. */
function deathless({ store }: Database): Store {
  return { ...store, workers: { ...store.workers, exited: async () => null } }
}
