/** Usage of endpoints, summed up for people. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ServerlessBillingRecord } from '../../console/client/api-types.d.ts'
import {
  bounds,
  byEndpoint,
  byModel,
  costSeries,
  csvRows,
  endpointNames,
  MOST_SERIES,
  sumUses,
} from '../../console/pages/usage/usage-sums.ts'

const HOUR_MS = 3_600_000
const DAY = '2026-11-26T00:00:00Z'
const NEXT = '2026-11-27T00:00:00Z'

function record(serverlessId: string, totalAmount: number, hours: number, startTime = DAY): ServerlessBillingRecord {
  const jobs = { completed: 3, failed: 1, timedOut: 1, cancelled: 0, expired: 0, queuedMs: 5, executionMs: 5 }
  return {
    startTime,
    endTime: NEXT,
    serverlessId,
    serverlessName: null,
    totalAmount,
    gpuAmount: totalAmount,
    cpuAmount: 0,
    diskAmount: 0,
    feeAmount: 0,
    usage: { startingMs: 0, runningMs: hours * HOUR_MS, idleMs: HOUR_MS, frozenMs: 0, billedMs: 0, jobs, tokens: null },
  }
}

test('a deleted endpoint has the name that it had', () => {
  const records = [record('a', 1, 2), { ...record('b', 1, 2), serverlessName: 'my task' }]
  assert.deepEqual(['a', 'b'].map(endpointNames(null, records)), [undefined, 'my task'])
  assert.deepEqual(['a', 'b', 'c'].map(endpointNames(new Map([['a', 'here']]), records)), [
    'here',
    'my task',
    undefined,
  ])
})

test('the records of an endpoint are one row, and what cost most is first', () => {
  const rows = byEndpoint([record('a', 1, 2), record('b', 5, 1), record('a', 2, 3, NEXT)])
  assert.deepEqual(
    rows.map(({ id, cost, hours, completed, others }) => [id, cost, hours, completed, others]),
    [
      ['b', 5, 2, 3, 2],
      ['a', 3, 7, 6, 4],
    ],
  )
  assert.equal(sumUses(rows).hours, 9)
  assert.equal(sumUses([]).cost, 0)
})

test('spans have no holes, and months their own lengths', () => {
  const months = bounds(Date.UTC(2026, 0), Date.UTC(2026, 3), 'month')
  assert.deepEqual(
    months,
    [0, 1, 2, 3].map(month => Date.UTC(2026, month)),
  )
  assert.equal(bounds(0, 24 * HOUR_MS, 'hour').length, 25)
})

test('a chart has the endpoints with the most, and the others as one series, so that nothing is missing', () => {
  const records = Array.from({ length: MOST_SERIES + 3 }, (_, at) => record(`e${at}`, at, 1))
  const series = costSeries(records, [Date.parse(DAY), Date.parse(NEXT)], 'cost', id => id.toUpperCase())
  assert.equal(series.length, MOST_SERIES + 1)
  assert.equal(series[0]?.title, 'E12')
  assert.equal(series.at(-1)?.title, '3 others')
  assert.deepEqual(series.at(-1)?.values, [0 + 1 + 2, 0])
  const looks = new Set(series.map(({ color, look }) => color + look))
  assert.equal(looks.size, series.length, 'each series looks different')
})

test('few endpoints have no series of others', () => {
  assert.deepEqual(
    costSeries([record('a', 1, 1), record('b', 1, 4)], [Date.parse(DAY)], 'hours', id => id).map(({ id }) => id),
    ['b', 'a'],
  )
})

test('a file has all records with the names of their endpoints', () => {
  const [head, first] = csvRows([record('a', 1, 2)], () => 'my model')
  assert.equal(head?.length, first?.length)
  assert.deepEqual(first?.slice(0, 5), [DAY, NEXT, 'a', 'my model', 1])
})

test('tokens of a model are those of all days, endpoints and keys, and the model with most comes first', () => {
  const tokens = (model: string | null, promptTokens: number) => ({
    startTime: DAY,
    endTime: NEXT,
    serverlessId: 'a',
    keyId: 'k',
    model,
    promptTokens,
    ...COUNTS,
  })
  const rows = byModel([tokens('small', 1), tokens('large', 5), tokens('small', 2), tokens(null, 0)])
  assert.deepEqual(
    rows.map(({ model, promptTokens, requests, measuredRequests }) => [
      model,
      promptTokens,
      requests,
      measuredRequests,
    ]),
    [
      ['large', 5, 2, 1],
      ['small', 3, 4, 2],
      [null, 0, 2, 1],
    ],
  )
})

const COUNTS = { requests: 2, measuredRequests: 1, completionTokens: 1, cachedTokens: 0 }
