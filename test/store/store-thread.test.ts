/** The store's thread: what is on its way to the main thread is bounded, and one that ends is followed by another. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import type { Store } from '../../src/ports/store/store.ts'
import { StoreFull } from '../../src/ports/store/store-trouble.ts'
import { sqliteStoreOn } from '../../src/store/engines/sqlite.ts'
import { ThreadHost } from '../../src/store/engines/thread-host.ts'
import {
  type NumberedCall,
  packError,
  type Request,
  type Response,
  unpackError,
} from '../../src/store/engines/thread-messages.ts'
import { serveStore } from '../../src/store/engines/thread-server.ts'
import { DONE, E1, jobId, makeJob, OWNER, T0, W1, W2, World } from '../contract/store-world.ts'

const unavailable = { name: 'AppError', code: 'unavailable' }
const MB = 1024 * 1024

function newFile(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-thread-'))
  context.after(() => rmSync(folder, { recursive: true }))
  return join(folder, 'db')
}

/** A job `large` with an output of this size. */
async function largeJob(store: Store): Promise<void> {
  const world = new World(store)
  await world.begin()
  await world.holder(W1, 'large')
  await world.finish('large', W1, { ...DONE, output: JSON.stringify('x'.repeat(4 * MB)) })
}

const programFromText = (text: string) => new URL(`data:text/javascript,${encodeURIComponent(text)}`)

/** The thread's side in this thread, and what it has sent. */
function serving(context: TestContext, file: string) {
  const { port1, port2 } = new MessageChannel()
  const responses: Response[] = []
  const told = new Map<number, PromiseWithResolvers<unknown>>()
  const answerTo = (id: number) => told.getOrInsertComputed(id, () => Promise.withResolvers())
  port1.on('message', (response: Response) => {
    responses.push(response)
    if (response.kind !== 'outcomes') return
    for (const outcome of response.outcomes) {
      if (outcome.ok) answerTo(outcome.id).resolve(outcome.value)
      else answerTo(outcome.id).reject(outcome.error)
    }
  })
  serveStore(port2, { file })
  context.after(() => port1.close())
  const send = (request: Request) => port1.postMessage(request)
  let ids = 0
  const call = (name: string, ...args: unknown[]): NumberedCall => {
    ids += 1
    return { id: ids, name, args }
  }
  const ask = (calls: readonly NumberedCall[]) => {
    send({ kind: 'calls', calls })
    return Promise.all(calls.map(({ id }) => answerTo(id).promise))
  }
  return { responses, send, call, ask }
}

test('large answers wait until the main thread has taken those before them, and writes do not', async context => {
  const { responses, send, call, ask } = serving(context, newFile(context))
  const store = sqliteStoreOn({
    call: async (name, args) => (await ask([call(name, ...args)]))[0],
    stats: () => Promise.reject(new Error('not asked for')),
    close: async () => {},
  })
  await largeJob(store)
  responses.length = 0
  const large = () => responses.flatMap(response => (response.kind === 'outcomes' ? (response.large ?? []) : []))
  const reads = ask(Array.from({ length: 60 }, () => call('jobs.find', E1, jobId('large'), T0)))
  for (let n = 0; n < 3; n += 1) assert.equal(await store.jobs.insert(makeJob(`small-${n}`)), true)
  assert.equal(large().length, 2, 'as many as make 8 MB')
  const other = ask([call('endpoints.list', OWNER)])
  for (let taken = 0; taken < 60; taken += 1) {
    send({ kind: 'taken', large: large()[taken]! })
    await store.jobs.insert(makeJob(`next-${taken}`))
    assert.equal(large().length, Math.min(60, 2 + taken + 1))
    if (taken === 1) assert.equal((await other).length, 1, 'others come in turn')
  }
  assert.equal((await reads).length, 60)
})

test('jobs that are large are handed out as fast as the main thread takes them, and reads do not wait for it', async context => {
  const { responses, send, call, ask } = serving(context, newFile(context))
  const store = sqliteStoreOn({
    call: async (name, args) => (await ask([call(name, ...args)]))[0],
    stats: () => Promise.reject(new Error('not asked for')),
    close: async () => {},
  })
  const world = new World(store)
  await world.begin()
  const input = JSON.stringify('x'.repeat(9 * MB))
  for (const [n, id] of [W1, W2].entries()) {
    await world.worker(id)
    await world.job(`job-${n}`, { position: T0 + n, input })
  }
  responses.length = 0
  const large = () => responses.flatMap(response => (response.kind === 'outcomes' ? (response.large ?? []) : []))
  const claims = ask([W1, W2].map(workerId => call('jobs.claim', { endpointId: E1, workerId, limit: 1, nowMs: T0 })))
  for (let taken = 0; taken < 2; taken += 1) {
    // Reads come first: by the answer to the second one the claims before it had their turn.
    for (let read = 0; read < 2; read += 1) assert.equal((await ask([call('endpoints.list', OWNER)])).length, 1)
    assert.equal(large().length, taken + 1)
    send({ kind: 'taken', large: large()[taken]! })
  }
  assert.equal((await claims).length, 2)
})

test('all large answers come through, in a store with a thread', async context => {
  const host = await ThreadHost.open({ file: newFile(context) })
  const store = sqliteStoreOn(host)
  await largeJob(store)
  const found = await Promise.all(Array.from({ length: 40 }, () => store.jobs.find(E1, jobId('large'), T0)))
  assert.ok(found.every(job => job?.output?.length === 4 * MB + 2))
  const [last] = await Promise.all([store.jobs.find(E1, jobId('large'), T0), store.close()])
  assert.equal(last?.output?.length, 4 * MB + 2, 'also of one that is on its way when the store is closed')
})

test('a thread that ends in a write takes its open calls with it, and the next one goes on without a trace of them', async context => {
  const file = newFile(context)
  const ending = `${file}.ending`
  const server = new URL('../../src/store/engines/thread-server.ts', import.meta.url)
  const program = programFromText(`
    import { existsSync } from 'node:fs'
    import { parentPort, workerData } from 'node:worker_threads'
    import { serveStore } from ${JSON.stringify(server)}
    serveStore(parentPort, { ...workerData, aroundCommit: commit => {
      if (existsSync(${JSON.stringify(ending)})) process.exit(1)
      commit()
    } })`)
  const store = sqliteStoreOn(await ThreadHost.open({ file }, program))
  const world = new World(store)
  await world.begin()
  await world.holder(W1, 'kept')
  const kept = await world.read('kept')
  writeFileSync(ending, '')
  const lost = [store.jobs.insert(makeJob('lost')), world.finish('kept'), store.endpoints.list(OWNER)]
  for (const call of lost.slice(0, 2)) await assert.rejects(call, unavailable)
  await Promise.allSettled(lost)
  rmSync(ending)
  assert.ok(!existsSync(ending))
  assert.deepEqual(await world.read('kept'), kept)
  assert.equal(await store.jobs.find(E1, jobId('lost'), T0), null)
  assert.equal((await world.finish('kept'))?.job.status, 'COMPLETED')
  await store.close()
})

test('calls are answered while each thread ends as soon as it has begun, and a closed store opens no thread', async () => {
  const program = programFromText(`
    import { parentPort } from 'node:worker_threads'
    parentPort.once('message', () => process.exit(1))
    parentPort.postMessage({ kind: 'ready' })`)
  const store = sqliteStoreOn(await ThreadHost.open({ file: 'none' }, program))
  for (let n = 0; n < 3; n += 1) await assert.rejects(store.endpoints.list(OWNER), unavailable)
  await store.close()
  await assert.rejects(store.endpoints.list(OWNER), { ...unavailable, message: /closed/ })
})

test('an error of a full disk is one behind a thread, too', () => {
  const error = unpackError(structuredClone(packError(new StoreFull('its disk is full'))))
  assert.ok(error instanceof StoreFull)
  assert.deepEqual([error.code, error.reason, error.retryAfterSeconds], ['unavailable', 'its disk is full', 5])
})
