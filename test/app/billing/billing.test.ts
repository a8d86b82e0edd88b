/** Costs of endpoints: the same sums through every surface, in any buckets, for their owner alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PriceList, readPrices } from '../../../src/core/billing/prices.ts'
import { NO_JOB_USAGE, NO_WORKER_USAGE } from '../../../src/core/billing/usage.ts'
import { DEFAULT_OWNER, type EndpointId, type OwnerId, type WorkerId } from '../../../src/core/ids.ts'
import type { Clock } from '../../../src/ports/clock.ts'
import type { Store } from '../../../src/ports/store/store.ts'
import type { UsageQuery } from '../../../src/ports/store/usage-store.ts'
import { BillCalculator } from '../../../src/services/billing/bill-calculator.ts'
import { EXIT, makeWorker } from '../../contract/store-world.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { portsWith } from '../../support/ports.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function priced(list: object): PriceList {
  const reading = readPrices(JSON.stringify(list))
  assert.ok('prices' in reading)
  return reading.prices
}

const PRICES = priced({ gpu: { ADA_24: 3.6 }, cpu: { default: 0.5 } })

async function bill(rig: Rig, query = '', key?: string) {
  const { status, json, text } = await rig.ask(
    'GET',
    `/v2/billing/serverless${query}`,
    key === undefined ? {} : { key },
  )
  assert.equal(status, 200, text)
  return json
}

/** A worker that existed from one instant to another, was ready after its start, and has ended. */
async function pastWorker(rig: Rig, endpointId: EndpointId, startMs: number, readyMs: number, endMs: number) {
  const id = `past${startMs}` as WorkerId
  const { workers } = rig.store
  const times = { createdAtMs: startMs, owner: DEFAULT_OWNER, endpointId }
  assert.ok(await workers.insert(makeWorker(id, times), `token of ${id}`))
  await workers.seen(id, 1, null, readyMs)
  await workers.exited(id, EXIT, endMs)
}

test('a worker is paid for from its first request on, up to now, in the hours in which it ran', async t => {
  const rig = await openRig(t, { prices: PRICES })
  rig.machine = aMachine([aGpu(0), aGpu(1)])
  await rig.clock.advance(HOUR - (rig.clock.now() % HOUR) - 4 * MINUTE)
  const fields = { instanceIds: undefined, gpuIds: 'ADA_24', gpuCount: 2 }
  const { endpoint, worker } = await rig.endpointWithWorker(fields)
  await rig.clock.advance(MINUTE - 40)
  const job = await rig.submit(endpoint)
  assert.equal(await worker.takeJob(), job)
  await rig.clock.advance(2 * MINUTE)
  const { records, metadata } = await bill(rig, '?bucketSize=hour&lastN=1')
  assert.equal(records.length, 1)
  const [{ serverlessId, totalAmount, gpuAmount, cpuAmount, usage }] = records
  assert.deepEqual([serverlessId, totalAmount, gpuAmount, cpuAmount], [endpoint, 0.24, 0.24, 0])
  assert.deepEqual([usage.runningMs, usage.idleMs, usage.billedMs], [2 * MINUTE, 0, 2 * MINUTE])
  assert.equal(metadata.totals.totalAmount, 0.24)
  await worker.done(job)
  await rig.clock.advance(2 * MINUTE)
  const hours = (await bill(rig, '?bucketSize=hour&lastN=2')).records
  assert.deepEqual(
    hours.map((record: { totalAmount: number }) => record.totalAmount),
    [0.36, 0.12],
  )
  assert.equal(hours[0].usage.jobs.completed, 1)
  assert.equal(hours[0].endTime, hours[1].startTime)
})

test('buckets of every size have the same total, to which their records add up', async t => {
  const rig = await openRig(t, { prices: priced({ cpu: { default: 0.333333 }, gpu: { default: 1.000007 } }) })
  const first = await rig.endpoint()
  const second = await rig.endpoint({ instanceIds: undefined, gpuIds: 'ADA_24' })
  const [from, to] = [Date.UTC(2022, 11, 30, 5), Date.UTC(2023, 0, 28)]
  await pastWorker(rig, first, from + 1, from + 1_001, from + 60 * HOUR + 17)
  await pastWorker(rig, first, from + 55 * HOUR + 3, from + 55 * HOUR + 3, from + 400 * HOUR + 999)
  await pastWorker(rig, second, from + 20 * HOUR, from + 21 * HOUR + 7, to)
  const time = `startTime=${new Date(from).toISOString()}&endTime=${new Date(to).toISOString()}`
  const sums = []
  for (const size of ['hour', 'day', 'week', 'month', 'year']) {
    const { records, metadata } = await bill(rig, `?bucketSize=${size}&${time}`)
    const micros = records.map(({ totalAmount }: { totalAmount: number }) => Math.round(totalAmount * 1e6))
    const sum = micros.reduce((a: number, b: number) => a + b, 0)
    assert.equal(sum, Math.round(metadata.totals.totalAmount * 1e6), size)
    assert.deepEqual([metadata.recordCount, metadata.uniqueServerlessCount], [records.length, 2])
    sums.push(metadata.totals)
    // The bill over all kinds has one record for each span of time.
    const whole = (await rig.ask('GET', `/v2/billing?bucketSize=${size}&${time}`)).json
    const starts = new Set(records.map((record: { startTime: string }) => record.startTime))
    assert.equal(whole.metadata.recordCount, starts.size)
    assert.equal(whole.metadata.totals.totalAmount, metadata.totals.totalAmount)
    const parts = (name: string) =>
      whole.records.reduce((sum: number, record: Record<string, number>) => sum + Math.round(record[name]! * 1e6), 0)
    assert.deepEqual([parts('totalAmount'), parts('serverlessGpuAmount') + parts('serverlessCpuAmount')], [sum, sum])
  }
  for (const sum of sums) assert.deepEqual(sum, sums[0])
  const one = await bill(rig, `?serverlessId=${second}&bucketSize=year&${time}`)
  const amounts = one.records.map((record: { startTime: string; gpuAmount: number }) => [
    record.startTime,
    record.gpuAmount,
  ])
  const newYear = Date.UTC(2023, 0)
  const cost = (ms: number) => Math.round((1_000_007 * ms) / HOUR) / 1e6
  assert.deepEqual(amounts, [
    ['2022-01-01T00:00:00Z', cost(newYear - from - 21 * HOUR - 7)],
    ['2023-01-01T00:00:00Z', cost(to - newYear)],
  ])
})

/** Usage of one endpoint in each hour, or of many in the first one, read a few hours at a time. */
function playedUsage(partHours: number, endpoints = 1) {
  let reads = 0
  const read = async <Sum>(bounds: readonly number[], sum: (endpointId: EndpointId, hours: number) => Sum) => {
    reads += 1
    const [startMs, endMs] = [bounds[0]!, bounds.at(-1)!]
    const untilMs = Math.min(endMs, startMs + partHours * HOUR)
    const sums = bounds.slice(0, -1).flatMap((spanMs, index) => {
      const hours = (Math.min(bounds[index + 1]!, untilMs) - spanMs) / HOUR
      if (hours <= 0) return []
      return Array.from({ length: endpoints }, (_, n) => ({ startMs: spanMs, ...sum(`e${n}` as EndpointId, hours) }))
    })
    return { sums, nextMs: untilMs < endMs ? untilMs : null }
  }
  const usage = {
    jobs: ({ bounds }: UsageQuery) =>
      read(bounds, (endpointId, hours) => ({ endpointId, usage: { ...NO_JOB_USAGE, completed: hours } })),
    workers: ({ bounds }: UsageQuery) =>
      read(bounds, (endpointId, hours) => ({
        endpointId,
        flavor: 'cpu:cpu3c:2',
        usage: { ...NO_WORKER_USAGE, runningMs: hours * HOUR },
      })),
  }
  const clock = { now: () => Date.UTC(2026, 4, 3, 12) } as Clock
  const ports = portsWith({ store: { usage } as unknown as Store, clock })
  return { billing: new BillCalculator(ports, PRICES), reads: () => reads }
}

test('a bill is the same in however many parts its time is read', async () => {
  for (const size of ['hour', 'day', 'month'] as const) {
    const whole = playedUsage(100_000)
    const bill = await whole.billing.bill(DEFAULT_OWNER, { size }, null)
    assert.equal(whole.reads(), 2)
    for (const partHours of [1, 7, 24, 100]) {
      const { billing, reads } = playedUsage(partHours)
      assert.deepEqual(await billing.bill(DEFAULT_OWNER, { size }, null), bill, `${size} ${partHours}`)
      const hours = (bill.endMs - bill.startMs) / HOUR
      assert.equal(reads(), 2 * Math.ceil(hours / partHours))
    }
  }
})

test('what would make more records than an answer can have is refused, and one bucket has any number', async () => {
  const { billing, reads } = playedUsage(1, 10_001)
  await assert.rejects(billing.bill(DEFAULT_OWNER, { size: 'day' }, null), {
    code: 'invalid',
    message: 'this makes more records than one answer can have; ask for less time, larger buckets or one endpoint',
  })
  assert.equal(reads(), 1, 'without a read of the rest')
  const { records } = await playedUsage(10, 10_001).billing.bill(DEFAULT_OWNER, { size: 'day', lastN: 1 }, null)
  assert.equal(records.length, 10_001)
})

test('without prices everything costs nothing, and usage is shown all the same', async t => {
  const rig = await openRig(t)
  const { endpoint, worker } = await rig.endpointWithWorker()
  void worker.take()
  await rig.clock.advance(20_000)
  const { records } = await bill(rig)
  assert.deepEqual([records[0].serverlessId, records[0].totalAmount], [endpoint, 0])
  assert.equal(records[0].usage.idleMs, 20_000)
  assert.equal((await rig.graphql('{ myself { currentSpendPerHr } }')).myself.currentSpendPerHr, 0)
  const gpus = (await rig.ask('GET', '/v2/catalog/gpus')).json.gpus
  const rtx = gpus.find((gpu: { id: string }) => gpu.id === 'NVIDIA GeForce RTX 4090')
  assert.equal(rtx.price.serverless, 1.116)
})

test('an installation with prices shows them in its catalogue', async t => {
  const rig = await openRig(t, { prices: PRICES })
  const price = async (path: string) => (await rig.ask('GET', `/v2/catalog/${path}`)).json.price
  assert.equal((await price('gpus/NVIDIA%20GeForce%20RTX%204090')).serverless, 3.6)
  assert.equal((await price('gpus/NVIDIA%20B200')).serverless, 0)
  assert.equal((await price('cpus/cpu3c')).serverlessPerVcpu, 0.5)
})

test('the response has the period, widened to whole buckets, and all mistakes of a query are reported at once', async t => {
  const rig = await openRig(t)
  const { query } = (
    await bill(rig, '?startTime=2026-05-03T12:30:00%2B02:00&endTime=2026-05-17T00:00:00Z&bucketSize=week')
  ).metadata
  assert.deepEqual(query, {
    startTime: '2026-04-27T00:00:00Z',
    endTime: '2026-05-18T00:00:00Z',
    bucketSize: 'week',
    serverlessId: null,
  })
  const wrong = async (text: string) => {
    const { status, json } = await rig.ask('GET', `/v2/billing/serverless?${text}`)
    assert.equal(status, 400, text)
    return json.errors.map((sentence: string) => sentence.split(/: /)[0])
  }
  assert.deepEqual(await wrong('startTime=yesterday&endTime=2026-05-17&bucketSize=minute&lastN=0'), [
    ...['query.startTime', 'query.endTime', 'query.bucketSize', 'query.lastN', 'query.lastN'],
  ])
  assert.deepEqual(await wrong('lastN=5&startTime=2026-05-01T00:00:00Z'), ['query.lastN'])
  assert.deepEqual(await wrong('startTime=2026-05-02T00:00:00Z&endTime=2026-05-01T00:00:00Z'), ['query.startTime'])
  assert.deepEqual(await wrong('bucketSize=hour&startTime=1990-05-02T00:00:00Z'), ['query.bucketSize'])
  assert.deepEqual(await wrong('lastN=1001'), ['query.lastN'])
})

test('each account sees its own bills, also of endpoints that are gone, and read-only keys see them too', async t => {
  const rig = await openRig(t, { prices: PRICES })
  const { endpoint, worker } = await rig.endpointWithWorker()
  void worker.take()
  await rig.clock.advance(6 * MINUTE)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const reader = await rig.addKey('rpa_reader', { scope: { type: 'read-only' } })
  const { name } = (await rig.ask('GET', `/v2/serverless/${endpoint}`)).json
  const names = async () => (await bill(rig)).records.map((record: Record<string, unknown>) => record.serverlessName)
  assert.deepEqual(await names(), [null])
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${endpoint}`)).status, 204)
  await rig.clock.advance(MINUTE)
  assert.deepEqual(await names(), [name], 'its name, since no list has it')
  for (const query of ['', `?serverlessId=${endpoint}`]) {
    assert.deepEqual((await bill(rig, query, stranger)).records, [])
    assert.equal((await bill(rig, query, reader)).records.length, 1)
  }
  assert.deepEqual((await bill(rig, '?serverlessId=nothing')).metadata.totals, {
    totalAmount: 0,
    gpuAmount: 0,
    cpuAmount: 0,
    diskAmount: 0,
    feeAmount: 0,
  })
})

test('version 1 shows the same amounts as a bare list, and nothing for pods and volumes', async t => {
  const rig = await openRig(t, { prices: PRICES })
  const { endpoint, worker } = await rig.endpointWithWorker()
  void worker.take()
  await rig.clock.advance(6 * MINUTE)
  const [record] = (await bill(rig)).records
  const v1 = async (path: string) => (await rig.ask('GET', `/v1/billing/${path}`)).json
  assert.deepEqual(await v1(`endpoints?endpointId=${endpoint}&grouping=endpointId`), [
    {
      time: record.startTime,
      endpointId: endpoint,
      amount: record.totalAmount,
      timeBilledMs: record.usage.billedMs,
      diskSpaceBilledGb: 0,
    },
  ])
  assert.equal(record.totalAmount, 0.1)
  assert.deepEqual([await v1('pods'), await v1('networkvolumes')], [[], []])
  assert.equal((await rig.ask('GET', '/v1/billing/endpoints?bucketSize=x')).status, 400)
})

test('spending per hour is the cost of the running workers', async t => {
  const rig = await openRig(t, { prices: PRICES })
  const spend = async () =>
    (await rig.graphql('{ myself { clientBalance currentSpendPerHr } }')).myself.currentSpendPerHr
  assert.equal(await spend(), 0)
  const { worker } = await rig.endpointWithWorker()
  assert.equal(await spend(), 0, 'a worker that starts is free')
  void worker.take()
  await rig.clock.settle()
  assert.equal(await spend(), 1)
})
