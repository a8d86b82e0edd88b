import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Leader } from '../../src/ports/leader.ts'
import { layered } from '../../src/ports/store/operations.ts'
import { storeFromCalls } from '../../src/store/engines/operations.ts'
import { createFence } from '../../src/system/coordination/leader.ts'

test('a server that is not the leader reads, and changes nothing', async () => {
  const called: string[] = []
  const store = storeFromCalls(
    async name => void called.push(name),
    async () => {},
  )
  let leads = true
  const leader: Leader = { isLeader: () => leads, confirm: async () => leads, watch: () => () => {} }
  const fenced = layered(store, createFence(leader))
  await fenced.workers.alive()
  await fenced.keys.used('k' as never, 0)
  leads = false
  await fenced.workers.alive()
  await assert.rejects(fenced.keys.used('k' as never, 0), { code: 'unavailable', retryAfterSeconds: 2 })
  assert.deepEqual(called, ['workers.alive', 'keys.used', 'workers.alive'])
})
