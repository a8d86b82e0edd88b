/** A store that begins in the caller's thread and moves to one of its own while it is used. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Host } from '../../src/store/engines/host.ts'
import { MovingHost, openSqliteStore, sqliteStoreOn } from '../../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../../src/store/engines/sqlite-engine.ts'
import { InlineHost } from '../../src/store/engines/sqlite-inline.ts'
import { E1, jobId, makeJob, T0, World } from '../contract/store-world.ts'

function newFile(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-moving-'))
  context.after(() => rmSync(folder, { recursive: true }))
  return join(folder, 'db')
}

test('what is written before, during and after the move is kept, in its order', async context => {
  const store = await openSqliteStore({ file: newFile(context), host: 'moving' })
  await new World(store).begin()
  assert.equal(store.runsBeside(), false)
  const writes: Promise<unknown>[] = []
  const write = (n: number) => writes.push(store.jobs.insert(makeJob(`job-${n}`, { position: T0 + n })))
  for (let n = 0; n < 50; n += 1) write(n)
  const moved = Promise.all([store.moveToThread(), store.moveToThread()])
  let isOver = false
  void moved.then(() => {
    isOver = true
  })
  let n = 50
  while (!isOver) {
    write(n)
    n += 1
    await new Promise(setImmediate)
  }
  for (const end = n + 50; n < end; n += 1) write(n)
  await Promise.all(writes)
  assert.equal(store.runsBeside(), true)
  for (let each = 0; each < n; each += 1) {
    assert.equal((await store.jobs.find(E1, jobId(`job-${each}`), T0))?.id, `job-${each}`)
  }
  await store.close()
})

test('a move that fails leaves the store where it is, and the next one tries again', async context => {
  const file = newFile(context)
  const threads: Host[] = []
  const host = new MovingHost(new InlineHost(new SqliteEngine({ file })), async () => {
    const thread = threads.pop()
    if (thread === undefined) throw new Error('no thread')
    return thread
  })
  const store = sqliteStoreOn(host)
  await new World(store).begin()
  await assert.rejects(store.moveToThread(), /no thread/)
  await store.jobs.insert(makeJob('job-1'))
  assert.equal(store.runsBeside(), false)
  threads.push(new InlineHost(new SqliteEngine({ file })))
  await store.moveToThread()
  assert.equal(store.runsBeside(), true)
  assert.equal((await store.jobs.find(E1, jobId('job-1'), T0))?.id, 'job-1')
  await store.close()
  await assert.rejects(store.jobs.insert(makeJob('job-2')), { code: 'unavailable' })
})
