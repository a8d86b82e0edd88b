/** Workers are found by their tokens in memory, and a change is seen by the first call after it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId } from '../../../src/core/ids.ts'
import { layered, OPERATIONS, type StoreCall, type StoreOperation } from '../../../src/ports/store/operations.ts'
import type { Store } from '../../../src/ports/store/store.ts'
import { CachedRows, remembering } from '../../../src/services/cached-rows.ts'
import { storeFromCalls } from '../../../src/store/engines/operations.ts'
import { openRig } from '../../support/rig.ts'

test('a hundred calls of a worker read its row once', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  await worker.ping()
  const before = rig.calls('workers.findByToken')
  for (let call = 0; call < 100; call += 1) assert.equal((await worker.ping()).status, 200)
  assert.equal(rig.calls('workers.findByToken') - before, 0)
})

test('the first call after the end of a worker is refused', async t => {
  const rig = await openRig(t)
  const { worker } = await rig.endpointWithWorker()
  assert.equal((await worker.ping()).status, 200)
  rig.fleet.exit(worker.id, { code: 1 })
  assert.ok(await rig.clock.until(() => rig.happened('worker.exited').length > 0, 400_000))
  assert.equal((await worker.ping()).status, 401)
})

test('a worker is read again after each operation that changes its row, and after no other one', async () => {
  const called: string[] = []
  const plain = storeFromCalls(
    async name => {
      called.push(name)
      return {}
    },
    async () => {},
  )
  const clock = { now: () => 0, monotonic: () => 0, after: () => () => {} }
  const endpoint = new CachedRows((id: EndpointId) => plain.endpoints.find(id), clock)
  const worker = new CachedRows((hash: string) => plain.workers.findByToken(hash), clock)
  const store: Store = layered(plain, remembering({ endpoint, worker }))
  for (const [part, methods] of Object.entries(OPERATIONS)) {
    for (const [method, { changes = [] }] of Object.entries<StoreOperation>(methods)) {
      await store.workers.findByToken('hash')
      called.length = 0
      await (store as unknown as Record<string, Record<string, StoreCall>>)[part]![method]!('hash')
      await store.workers.findByToken('hash')
      const isAgain = called.includes('workers.findByToken')
      assert.equal(isAgain, changes.includes('worker'), `${part}.${method}`)
    }
  }
})
