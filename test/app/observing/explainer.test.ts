import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import type { DamageReport } from '../../../src/core/observing/store-trouble.ts'
import { StoreFull } from '../../../src/ports/store/store-trouble.ts'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { StoreRoomWatch } from '../../../src/system/observing/store-watches.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { openRig, type Rig } from '../../support/rig.ts'
import { RigProgram } from '../../support/rig-program.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

interface Page {
  readonly explanations: { readonly kind: string; readonly id: string; readonly name: string; readonly cause: string }[]
  readonly pagination: { readonly nextCursor: string | null; readonly hasNextPage: boolean }
}

async function page(rig: Rig, query = ''): Promise<Page> {
  const { status, json } = await rig.ask('GET', `/ops/why${query}`)
  assert.equal(status, 200)
  return json
}

/** So many endpoints besides this one, made in the store. */
async function copies(rig: Rig, id: EndpointId, count: number): Promise<void> {
  const endpoint = (await rig.store.endpoints.find(id))!
  for (let number = 1; number <= count; number += 1) {
    const copy = { id: `copy${String(number).padStart(10, '0')}` as EndpointId, name: `copy ${number}` }
    await rig.store.endpoints.insert({ ...endpoint, ...copy, createdAtMs: endpoint.createdAtMs + number })
  }
}

test('explain covers all endpoints page by page, with a bounded number of reads for each', async t => {
  const rig = await openRig(t)
  const first = await rig.endpoint()
  await rig.clock.advance(100)
  await copies(rig, first, 230)
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const before = rig.calls('endpoints.snapshot')
    const { explanations, pagination }: Page = await page(rig, cursor === null ? '' : `?cursor=${cursor}`)
    assert.ok(explanations.length <= 100)
    assert.ok(rig.calls('endpoints.snapshot') - before <= 100)
    for (const row of explanations) assert.deepEqual([row.kind, row.cause], ['endpoint', 'nothing_waits'])
    seen.push(...explanations.map(({ id }) => id))
    cursor = pagination.nextCursor
    assert.equal(pagination.hasNextPage, cursor !== null)
  } while (cursor !== null)
  assert.equal(seen[0], first)
  assert.equal(new Set(seen).size, 231)
})

test('a worker that goes on although another one has its port is named, also while nothing waits', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  rig.takePort({ port: 8000, variable: null, with: 'worker' })
  const [found] = (await rig.ask('GET', `/ops/why/${endpoint}`)).json.explanations
  assert.equal(found.notes.length, 1)
  assert.ok(
    found.notes[0].startsWith(
      `worker ${worker.id}: port 8000, on which it tried to listen, is in use by another worker; `,
    ),
  )
})

test('a page of explanations has as many as are asked for, within the limit', async t => {
  const rig = await openRig(t)
  const first = await rig.endpoint()
  await copies(rig, first, 3)
  const { explanations, pagination } = await page(rig, '?limit=2')
  assert.deepEqual([explanations.length, pagination.hasNextPage], [2, true])
  const rest = await page(rig, `?limit=2&cursor=${pagination.nextCursor}`)
  assert.deepEqual([rest.explanations.length, rest.pagination.nextCursor], [2, null])
  for (const query of ['limit=0', 'limit=101', 'limit=many', 'limit=', 'cursor=nowhere']) {
    const { status, json } = await rig.ask('GET', `/ops/why?${query}`)
    assert.equal(status, 400, query)
    assert.match(json.error, query.startsWith('limit') ? /from 1 to 100/ : /cursor/)
  }
})

test('an endpoint that is deleted while all are explained is left out', async t => {
  let removed: EndpointId | null = null
  const openStore = async () => {
    const store = await openSqliteStore({ file: ':memory:', host: 'inline' })
    const { endpoints } = store
    const list: typeof endpoints.list = async (...args) => {
      const listed = await endpoints.list(...args)
      if (removed !== null) await endpoints.remove(removed, rig.clock.now())
      return listed
    }
    return { ...store, endpoints: { ...endpoints, list } }
  }
  const rig = await openRig(t, { openStore })
  const [first, second] = [await rig.endpoint(), await rig.endpoint()]
  removed = first
  const { explanations } = await page(rig)
  assert.deepEqual(
    explanations.map(({ id }) => id),
    [second],
  )
})

test('why a worker could not be started is kept as a value, and explained alike after a restart', async t => {
  const rig = await openRig(t)
  const endpoint = await rig.endpoint()
  const failure = { kind: 'image_gone', image: 'docker daemon/manifest unknown:1' } as const
  rig.fleet.failNextStart(failure)
  await rig.submit(endpoint)
  await rig.clock.advance(100)
  const [worker] = await rig.store.workers.list(endpoint)
  assert.deepEqual(worker?.exit?.cause, { kind: 'not_started', failure })
  const before = await rig.why(endpoint)
  assert.deepEqual([before.cause, /check the name and the tag/.test(before.action ?? '')], ['image_error', true])
  await rig.crash()
  await rig.start()
  const { cause, action } = await rig.why(endpoint)
  assert.deepEqual([cause, action], [before.cause, before.action])
})

test('each cause that a setting fixes has the command that fixes it', async t => {
  const rig = await openRig(t)
  const commands = async (id: EndpointId) => (await rig.ask('GET', `/v2/${id}/explain`)).json.commands
  const paused = await rig.endpoint({ workersMax: 0 })
  await rig.submit(paused)
  assert.deepEqual(await commands(paused), [`runyard endpoints update ${paused} --max 1`])
  const secret = '{{ RUNPOD_SECRET_hugging-face }}'
  const closed = await rig.endpoint({ template: { env: [{ key: 'HF_TOKEN', value: secret }] } })
  await rig.submit(closed)
  await rig.clock.advance(1_000)
  assert.deepEqual(await commands(closed), ['runyard secrets create --name hugging-face'])
  const { endpoint: full, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  await rig.submit(full)
  await worker.takeJob()
  await rig.submit(full)
  assert.deepEqual(await commands(full), [`runyard endpoints update ${full} --max 2`])
  const low = await rig.endpoint()
  await rig.submit(low, { input: {}, policy: { lowPriority: true } })
  assert.deepEqual(await commands(low), [`runyard endpoints update ${low} --min 1`])
})

test('an endpoint whose releases never worked is offered no rollback, and one that worked is offered the way back', async t => {
  const rig = await openRig(t)
  const titles = async (id: EndpointId): Promise<string[]> => {
    const { json } = await rig.ask('GET', `/v2/${id}/explain`)
    return json.actions.map(({ title }: { title: string }) => title)
  }
  const broken = (value: string) => ({ env: [{ key: 'RELEASE', value }] })
  const program = new RigProgram(rig)
  const never = await rig.endpoint({ template: broken('broken'), workersMax: 1 })
  await program.load(never, 3_000)
  await rig.change(never, { env: [{ key: 'OTHER', value: '1' }] })
  await program.load(never, 3_000)
  assert.deepEqual(await titles(never), ['Try again now', 'See its output', 'Change the image'])
  const worked = await rig.endpoint({ workersMax: 1 })
  await program.load(worked, 3_000)
  await rig.change(worked, broken('broken'))
  await program.load(worked, 10_000)
  assert.ok((await titles(worked)).includes('Roll back to release 1, the last that worked'))
})

test('releases are read for an explanation where something is wrong, and not otherwise', async t => {
  const rig = await openRig(t)
  const { endpoint } = await rig.endpointWithWorker()
  const before = rig.calls('releases.list')
  await rig.ask('GET', `/v2/${endpoint}/explain`)
  assert.equal(rig.calls('releases.list'), before)
})

test('damage of the database is why an endpoint and its jobs wait, and the server is not ready', async t => {
  let damage: DamageReport | null = null
  const rig = await openRig(t, { storeDamage: { met: () => damage } })
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const job = (await rig.ask('POST', `/v2/${endpoint}/run`, { body: { input: {} } })).json.id
  assert.equal((await rig.ask('GET', '/readyz')).text, '{"status":"ready"}')
  const said = 'database disk image is malformed'
  damage = { where: 'the database file runyard.sqlite', databaseMessage: said, sinceMs: rig.clock.now() }
  const sentence = /^the database file runyard\.sqlite is damaged \(database disk image is malformed\); /
  for (const path of [`/v2/${endpoint}/explain`, `/v2/${endpoint}/explain/${job}`]) {
    const { json } = await rig.ask('GET', path)
    assert.deepEqual([json.cause, json.sinceMs], ['store_damaged', damage.sinceMs])
    assert.match(json.summary, sentence)
    assert.match(json.action, /examine it with runyard check, and restore a backup/)
  }
  assert.deepEqual(
    (await page(rig)).explanations.map(({ cause }) => cause),
    ['store_damaged'],
  )
  const { status, json, headers } = await rig.ask('GET', '/readyz')
  assert.deepEqual([status, headers.get('retry-after'), json.status], [503, '5', 'not ready'])
  assert.match(json.problem, sentence)
})

test('a full disk of the database is why an endpoint and its jobs wait, as long as changes are refused', async t => {
  const clock = new VirtualClock()
  const events: unknown[] = []
  const watch = new StoreRoomWatch((...event) => void events.push(event), clock)
  const rig = await openRig(t, { storeRoom: watch })
  const endpoint = await rig.endpoint({ workersMax: 0 })
  const job = await rig.submit(endpoint)
  const causes = async () =>
    Promise.all(
      [`/v2/${endpoint}/explain`, `/v2/${endpoint}/explain/${job}`].map(
        async path => (await rig.ask('GET', path)).json.cause,
      ),
    )
  watch.look(new AppError('unavailable', 'the store cannot do this now: it is locked'))
  assert.deepEqual(await causes(), ['paused', 'paused'])
  const sinceMs = clock.now()
  for (let second = 0; second < 60; second += 1) {
    watch.look(new StoreFull('its disk is full'))
    await clock.advance(1_000)
  }
  assert.deepEqual(await causes(), ['store_full', 'store_full'])
  const { json } = await rig.ask('GET', `/v2/${endpoint}/explain`)
  assert.match(json.summary, /^the store takes no change now: its disk is full; /)
  assert.match(json.action, /make room/)
  assert.equal(json.sinceMs, sinceMs)
  const ready = await rig.ask('GET', '/readyz')
  assert.deepEqual([ready.status, ready.json.note], [200, 'the store takes no change now: its disk is full'])
  assert.deepEqual(events, [['store.full', { problem: 'its disk is full' }]])
  await clock.advance(20_000)
  assert.deepEqual(await causes(), ['paused', 'paused'])
  assert.equal((await rig.ask('GET', '/readyz')).text, '{"status":"ready"}')
  watch.look(new StoreFull('its disk is full'))
  assert.equal(events.length, 2)
})

test('a job that waits beside busy workers of an older release says that the new one has no place', async t => {
  const rig = await openRig(t)
  rig.machine = aMachine([aGpu(0), aGpu(1)])
  const gpu = { gpuIds: 'ADA_24', instanceIds: undefined, workersMax: 3, workersMin: 2 }
  const endpoint = await rig.endpoint({ ...gpu, scalerType: 'QUEUE_DELAY', scalerValue: 4 })
  await rig.clock.advance(100)
  const workers = [rig.worker(0), rig.worker(1)]
  for (const worker of workers) {
    const job = await rig.submit(endpoint)
    assert.equal(await worker.takeJob(), job)
  }
  const waits = await rig.submit(endpoint)
  assert.equal((await rig.why(endpoint)).cause, 'running', 'two workers are enough for now')
  await rig.change(endpoint, { env: [{ key: 'RELEASE', value: '2' }] })
  await rig.clock.advance(500)
  for (const path of [`/v2/${endpoint}/explain`, `/v2/${endpoint}/explain/${waits}`]) {
    const { json } = await rig.ask('GET', path)
    assert.equal(json.cause, 'throttled', json.summary)
    assert.match(
      json.summary,
      /^2 workers of older releases are busy, and there is no room for one of release 2 beside them: no free GPU/,
    )
  }
})
