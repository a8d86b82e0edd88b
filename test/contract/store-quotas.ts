import assert from 'node:assert/strict'
import { type Cases, E1, makeEndpoint, makeJob, makeSecret, makeVolume, OWNER, STRANGER } from './store-world.ts'

/** Counts of an account, for its limits. */
export const quotaCases: Cases = {
  'objects are counted by kind and account, with the sum of workersMin': async ({ store }) => {
    const before = await store.quotas.objects(OWNER)
    await store.endpoints.insert(makeEndpoint('q1', { workersMin: 3 }))
    await store.secrets.insert(makeSecret('s1'), 'sealed')
    await store.volumes.insert(makeVolume('v1', { owner: STRANGER }))
    const after = await store.quotas.objects(OWNER)
    const { endpoints, secrets, volumes, workersMin } = after
    assert.deepEqual([endpoints - before.endpoints, secrets, volumes, workersMin - before.workersMin], [1, 1, 0, 3])
    assert.equal((await store.quotas.objects(STRANGER)).volumes, 1)
  },

  'the bytes of secrets are those that are stored, with their descriptions': async ({ store }) => {
    const none = { all: 0, sealed: 0, description: 0 }
    assert.deepEqual(await store.quotas.secretBytes(STRANGER, null), none)
    await store.secrets.insert(makeSecret('q1', { owner: STRANGER }), 'x'.repeat(100))
    const second = makeSecret('q2', { owner: STRANGER, description: 'é' })
    await store.secrets.insert(second, 'y'.repeat(50))
    assert.deepEqual(await store.quotas.secretBytes(STRANGER, second.id), { all: 152, sealed: 50, description: 2 })
    assert.deepEqual(await store.quotas.secretBytes(STRANGER, null), { all: 152, sealed: 0, description: 0 })
  },

  'what jobs hold is summed in parts, and outputs are kept without waiting': async ({ store }) => {
    const inputs = ['"a"', '"bb"', '"cc€"']
    for (const [index, input] of inputs.entries()) {
      await store.jobs.insert(makeJob(`q-${index}`, { input, queuedAtMs: 1_700_000_000_000 + index }))
    }
    const first = await store.quotas.jobs(E1, null, 2)
    assert.deepEqual(first.held, { queuedJobs: 2, queuedBytes: 7, storedBytes: 7 })
    const rest = await store.quotas.jobs(E1, first.next, 2)
    assert.deepEqual(rest, { held: { queuedJobs: 1, queuedBytes: 7, storedBytes: 7 }, next: null })
    assert.deepEqual(await store.quotas.beside(E1), { queuedJobs: 0, queuedBytes: 0, storedBytes: 0 })
  },

  'an account keeps the limits that it was given': async ({ store: { accounts } }) => {
    const account = { id: OWNER, name: 'one', createdAtMs: 1, deleteRunningEndpoints: false, limits: { gpus: 1 } }
    await accounts.insert(account)
    assert.deepEqual(await accounts.find(OWNER), account)
    const limits = { queuedJobs: 5, workers: null }
    assert.deepEqual(await accounts.update(OWNER, { limits }), { ...account, limits })
    assert.deepEqual((await accounts.update(OWNER, { name: 'two' }))?.limits, limits)
  },
}
