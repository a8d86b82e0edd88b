import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Leader } from '../../src/ports/leader.ts'
import type { Store } from '../../src/ports/store/store.ts'
import { nameOf, readName } from '../../src/store/engines/postgres-lock.ts'
import { storeOf } from '../../src/store/operations/table.ts'
import { fencedStore } from '../../src/system/coordination/leader-fence.ts'
import { leadPostgres } from '../../src/system/coordination/postgres-leader.ts'
import { noPostgres, testSchema } from '../support/postgres-database.ts'

const skip = noPostgres

test('one leads a schema, the next one once it has let go, and schemas do not meet', { skip }, async () => {
  const [schema, other] = [await testSchema(), await testSchema()]
  const first = await leadPostgres({ url: schema.url })
  assert.deepEqual([first.isLeader(), await first.confirm()], [true, true])
  await assert.rejects(leadPostgres({ url: schema.url, graceMs: 0 }), {
    code: 'conflict',
    message: new RegExp(`is in use by the server with pid ${process.pid} on .*, which is starting, since`),
  })
  const elsewhere = await leadPostgres({ url: other.url, graceMs: 0 })
  const waiting = leadPostgres({ url: schema.url })
  await first.close()
  const second = await waiting
  assert.ok(second.isLeader())
  await Promise.all([second.close(), elsewhere.close()])
  await Promise.all([schema.drop(), other.drop()])
})

test('the name of a server can be read from that of its session, however long its host is called', () => {
  const server = { pid: 4_194_304, host: 'web-1', address: '127.0.0.1:8080', sinceMs: 1_790_000_000_000 }
  assert.deepEqual(readName(nameOf(server)), server)
  assert.deepEqual(readName(nameOf({ ...server, address: null })), { ...server, address: null })
  const long = nameOf({ ...server, host: 'a'.repeat(200) })
  assert.equal(long.length, 63)
  assert.match(readName(long)!.host, /^a{10,}$/)
  assert.equal(readName('psql'), null)
})

test('a server that is not the leader reads, and changes nothing', async () => {
  const called: string[] = []
  const store = storeOf(
    async name => void called.push(name),
    async () => {},
  )
  let leads = true
  const leader: Leader = { isLeader: () => leads, confirm: async () => leads, watch: () => () => {} }
  const fenced: Store = fencedStore(store, leader)
  await fenced.workers.alive()
  await fenced.keys.used('k' as never, 0)
  leads = false
  await fenced.workers.alive()
  await assert.rejects(fenced.keys.used('k' as never, 0), { code: 'unavailable', retryAfterSeconds: 2 })
  assert.deepEqual(called, ['workers.alive', 'keys.used', 'workers.alive'])
})
