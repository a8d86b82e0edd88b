/** Jobs that clients know of are still there after a failure of the machine, whatever was not flushed is gone. */
import assert from 'node:assert/strict'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, type TestContext, test } from 'node:test'
import type { JobId } from '../../../src/core/ids.ts'
import { sqliteStoreOn } from '../../../src/store/engines/sqlite.ts'
import { SqliteEngine } from '../../../src/store/engines/sqlite-engine.ts'
import { InlineHost } from '../../../src/store/engines/sqlite-inline.ts'
import { type Answer, openRig } from '../../support/rig.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'

const FULL = 2
const ENDS = ['', '-wal'] as const

const root = mkdtempSync(join(tmpdir(), 'runyard-power-cuts-'))
after(() => rmSync(root, { recursive: true, force: true }))
let count = 0

/** A database with its files as they were at the last flush: all that a failure of the machine certainly leaves. */
class FlushedDatabase {
  readonly #folder = mkdtempSync(join(root, 'database-'))
  readonly #file = join(this.#folder, 'live.sqlite')
  readonly #engine = new SqliteEngine({ file: this.#file, aroundCommit: commit => this.#commit(commit) })
  flushes = 0

  readonly store = sqliteStoreOn(new InlineHost(this.#engine))

  /** The status of each job after a failure of the machine. */
  afterPowerCut(): Record<JobId, string> {
    count += 1
    const file = join(this.#folder, `after-${count}.sqlite`)
    for (const end of ENDS) copyFileSync(join(this.#folder, `flushed${end}`), `${file}${end}`)
    using database = new DatabaseSync(file)
    const jobs = database.prepare('SELECT id, status FROM jobs').all()
    return Object.fromEntries(jobs.map(({ id, status }) => [id, status]))
  }

  #commit(commit: () => void): void {
    commit()
    if (this.#engine.database.prepare('PRAGMA synchronous').get()?.synchronous !== FULL) return
    this.flushes += 1
    for (const end of ENDS) writeFileSync(join(this.#folder, `flushed${end}`), readFileSync(`${this.#file}${end}`))
  }
}

async function begin(t: TestContext) {
  const database = new FlushedDatabase()
  const rig = await openRig(t, { openStore: async () => database.store })
  return { database, rig, ...(await rig.endpointWithWorker()) }
}

test('a job of run is on stable storage before its client gets its id', async t => {
  const { database, rig, endpoint } = await begin(t)
  const id = await rig.submit(endpoint)
  assert.deepEqual(database.afterPowerCut(), { [id]: 'IN_QUEUE' })
})

test('runsync responds once the end of its job is on stable storage, with one flush for both', async t => {
  const { database, rig, endpoint, worker } = await begin(t)
  const first = await rig.submit(endpoint)
  await worker.done(await worker.takeJob())
  const { flushes } = database
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} } })
  await rig.clock.settle()
  const id = await worker.takeJob()
  assert.equal(database.flushes, flushes, 'its client does not know the job yet')
  await worker.done(id, { output: 1 })
  assert.equal((await answer).json.id, id)
  assert.deepEqual(database.afterPowerCut(), { [first]: 'COMPLETED', [id]: 'COMPLETED' })
})

for (const [when, endsWait] of [
  ['its wait is over', { wait: 1_000 }],
  ['the server stops', { wait: 60_000 }],
] as const) {
  test(`a job of runsync is on stable storage when its client gets its id, as ${when}`, async t => {
    const { database, rig, endpoint } = await begin(t)
    const path = `/v2/${endpoint}/runsync?wait=${endsWait.wait}`
    const answer = rig.ask('POST', path, { body: { input: {} } })
    await rig.clock.settle()
    if (endsWait.wait > 1_000) void rig.stop()
    await rig.clock.advance(1_000)
    const { id, status } = (await answer).json
    assert.deepEqual(database.afterPowerCut(), { [id]: status })
    // Not by another change that came in the meantime.
    assert.equal(rig.calls('jobs.keep'), 1)
  })
}

test('a job of runsync is on stable storage soon after its client has left', async t => {
  const { database, rig, endpoint } = await begin(t)
  const client = new AbortController()
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} }, signal: client.signal })
  await rig.clock.settle()
  client.abort()
  await answer
  assert.deepEqual(Object.values(database.afterPowerCut()), ['IN_QUEUE'])
})

test('a job of runsync with a webhook or an Idempotency-Key is on stable storage at once', async t => {
  const { database, rig, endpoint } = await begin(t)
  const webhook = 'https://receiver.example/hook'
  void rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {}, webhook } })
  const headers = { 'idempotency-key': 'the-key' }
  void rig.ask('POST', `/v2/${endpoint}/runsync`, { body: { input: {} }, headers })
  await rig.clock.settle()
  assert.deepEqual(Object.values(database.afterPowerCut()), ['IN_QUEUE', 'IN_QUEUE'])
})

test('runsync is refused when its job cannot be put on stable storage at the end of its wait', async t => {
  const { rig, endpoint } = await begin(t)
  rig.failNext('jobs.keep', 'before')
  const answer = rig.ask('POST', `/v2/${endpoint}/runsync?wait=1000`, { body: { input: {} } })
  await rig.clock.advance(1_000)
  assert.equal((await answer).status, 503)
})

for (const seed of [1, 2]) {
  test(`whatever clients were told of their jobs survives a power cut at any time, in random order ${seed}`, async t => {
    const { database, rig, endpoint, worker } = await begin(t)
    const random = createSeededRandom(seed)
    const told = new Map<JobId, string>()
    const note = ({ status, json }: Answer) => void (status === 200 && told.set(json.id, json.status))
    const submit = (path: string, headers: Record<string, string> = {}) => {
      waiting += 1
      return rig.ask('POST', `/v2/${endpoint}/${path}`, { body: { input: {} }, headers }).then(note)
    }
    let waiting = 0
    const held: Promise<void>[] = []
    for (let step = 0; step < 50; step += 1) {
      const [choice = 0, part = 0] = random.bytes(2)
      if (choice < 60) await submit('run')
      else if (choice < 120) held.push(submit('runsync?wait=5000'))
      else if (choice < 150) held.push(submit('runsync?wait=1000'))
      else if (choice < 160) held.push(submit('runsync?wait=5000', { 'idempotency-key': `key-${step}` }))
      else if (choice < 220 && waiting > 0) {
        const job = await worker.takeJob()
        waiting -= 1
        await worker.done(job, part < 50 ? { error: 'it failed' } : { output: step })
      } else await rig.clock.advance(part * 4)
      await rig.clock.settle()
      const left = database.afterPowerCut()
      for (const [id, status] of told) {
        assert.ok(id in left, `${id} is gone after step ${step}`)
        if (!status.startsWith('IN_')) assert.equal(left[id], status)
      }
    }
    await rig.clock.advance(5_000)
    await Promise.all(held)
    const left = database.afterPowerCut()
    for (const id of told.keys()) assert.ok(id in left, `${id} is gone at the end`)
    assert.ok(told.size > 20)
  })
}
