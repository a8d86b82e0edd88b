/** Range and intervals in which the metrics of an endpoint are read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  INTERVALS,
  intervalFor,
  moved,
  RANGES,
  type RangeId,
  rangeAddress,
  rangeFromQuery,
  scaled,
} from '../../console/pages/endpoint/metrics/range.ts'

const NOW = Date.parse('2026-11-26T10:03:20Z')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const of = (query: string) => rangeFromQuery(new URLSearchParams(query), NOW)
const at = (text: string) => Date.parse(text)

test('each range that ends now has its time in whole intervals, the last of which is not over, and no more points than a chart shows', () => {
  for (const id of Object.keys(RANGES) as RangeId[]) {
    const range = of(`range=${id}`)
    const { lengthMs, keptMs } = INTERVALS[range.interval]
    assert.equal(range.id, id)
    assert.equal(range.isLive, true)
    assert.equal(range.fromMs % lengthMs, 0)
    assert.equal(range.toMs - range.fromMs, RANGES[id].ms)
    assert.ok(range.toMs > NOW && range.toMs - NOW <= lengthMs, `${id} ends with the present interval`)
    assert.ok((range.toMs - range.fromMs) / lengthMs <= 400, `${id} has few points`)
    assert.ok(NOW - range.fromMs <= keptMs, `${id} is kept`)
  }
})

test('short ranges are read by the minute, days by the hour, months by the day', () => {
  const found = Object.keys(RANGES).map(id => of(`range=${id}`).interval)
  assert.deepEqual(found, ['1m', '1m', '1m', '1h', '1h', '1d', '1d'])
})

test('an address that says nothing, or nonsense, is the last hour', () => {
  const nonsense = [
    '',
    'range=1y',
    'range=toString',
    'from=x&to=y',
    'from=2026-11-26T11:00:00Z&to=2026-11-26T10:00:00Z',
  ]
  for (const query of [...nonsense, 'from=2030-01-01T00:00:00Z&to=2030-01-02T00:00:00Z']) {
    assert.equal(of(query).id, '1h', query)
  }
})

test('a chosen range has whole intervals around it and is over', () => {
  const range = of('from=2026-11-26T08:00:30Z&to=2026-11-26T08:20:10Z')
  assert.deepEqual(range, {
    id: null,
    interval: '1m',
    fromMs: at('2026-11-26T08:00:00Z'),
    toMs: at('2026-11-26T08:21:00Z'),
    isLive: false,
  })
})

test('a chosen range that reaches the present goes on', () => {
  const range = of('from=2026-11-26T09:30:00Z&to=2026-11-26T23:00:00Z')
  assert.equal(range.isLive, true)
  assert.equal(range.toMs, at('2026-11-26T11:00:00Z'))
})

test('minutes that are no longer kept are read by the hour', () => {
  assert.equal(intervalFor(NOW - 7 * DAY_MS + HOUR_MS, NOW - 7 * DAY_MS + 2 * HOUR_MS, NOW), '1m')
  assert.equal(intervalFor(NOW - 8 * DAY_MS, NOW - 8 * DAY_MS + HOUR_MS, NOW), '1h')
})

test('a range of years is cut to what the server may have', () => {
  const range = of('from=2020-01-01T00:00:00Z&to=2026-11-26T00:00:00Z')
  assert.equal(range.interval, '1d')
  assert.equal(range.toMs - range.fromMs, 90 * DAY_MS)
})

test('what is dragged is in the address to the second, at least five minutes, and not after the present minute', () => {
  assert.deepEqual(rangeAddress(at('2026-11-26T08:00:00.400Z'), at('2026-11-26T09:00:00.400Z'), NOW), {
    from: '2026-11-26T08:00:00Z',
    to: '2026-11-26T09:00:00Z',
    range: null,
  })
  const short = rangeAddress(at('2026-11-26T08:00:00Z'), at('2026-11-26T08:00:20Z'), NOW)
  assert.equal(at(short.to!) - at(short.from!), 300_000)
  const late = rangeAddress(at('2026-11-26T10:00:00Z'), at('2026-11-26T10:30:00Z'), NOW)
  assert.deepEqual([late.from, late.to], ['2026-11-26T09:34:00Z', '2026-11-26T10:04:00Z'])
})

test('earlier and later move by half, shorter and longer keep the middle', () => {
  const range = of('from=2026-11-26T06:00:00Z&to=2026-11-26T08:00:00Z')
  const ends = ({ from, to }: ReturnType<typeof moved>) => [from?.slice(11, 16), to?.slice(11, 16)]
  assert.deepEqual(ends(moved(range, -1, NOW)), ['05:00', '07:00'])
  assert.deepEqual(ends(moved(range, 1, NOW)), ['07:00', '09:00'])
  assert.deepEqual(ends(scaled(range, 'in', NOW)), ['06:30', '07:30'])
  assert.deepEqual(ends(scaled(range, 'out', NOW)), ['05:00', '09:00'])
})
