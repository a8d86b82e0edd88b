import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { restSentence } from '../../../src/api/field-names.ts'
import {
  BUCKET_SIZES,
  billingBounds,
  bucketStart,
  bucketsAfter,
  exactAmount,
  MAX_BUCKETS,
  RoundedSum,
} from '../../../src/core/billing/billing.ts'
import { CATALOG_PRICES, dollars, hourlyPrice, NO_PRICES, readPrices } from '../../../src/core/billing/prices.ts'
import { countWorker, HOUR_MS } from '../../../src/core/billing/usage.ts'

const NOW = Date.UTC(2026, 4, 14, 13, 20)
const size = fc.constantFrom(...BUCKET_SIZES)
const instant = fc.integer({ min: Date.UTC(1995, 0), max: Date.UTC(2105, 0) })
const iso = (ms: number) => new Date(ms).toISOString().replace('T00:00:00.000Z', '')

function readBounds(time: Parameters<typeof billingBounds>[0]): readonly number[] {
  const result = billingBounds(time, NOW)
  assert.ok('bounds' in result, JSON.stringify(result))
  return result.bounds
}

function ends(time: Parameters<typeof billingBounds>[0]): string[] {
  const bounds = readBounds(time)
  return [iso(bounds[0]!), iso(bounds.at(-1)!)]
}

function readFailures(time: Parameters<typeof billingBounds>[0]): readonly string[] {
  const result = billingBounds(time, NOW)
  return 'problems' in result ? result.problems.map(problem => restSentence(problem, 'query')) : []
}

test('every instant is in one bucket of each size, and buckets follow each other without a gap', () => {
  fc.assert(
    fc.property(instant, size, (atMs, of) => {
      const startMs = bucketStart(atMs, of)
      const nextMs = bucketsAfter(startMs, of)
      assert.ok(startMs <= atMs && atMs < nextMs)
      assert.equal(bucketStart(nextMs, of), nextMs)
      assert.equal(bucketStart(nextMs - 1, of), startMs)
      assert.equal(bucketsAfter(nextMs, of, -1), startMs)
      assert.equal(startMs % HOUR_MS, 0)
    }),
  )
})

test('days are 24 hours in every time of the year, weeks begin on Mondays, and months are as long as they are', () => {
  const day = (text: string, of: (typeof BUCKET_SIZES)[number]) => iso(bucketStart(Date.parse(text), of))
  assert.equal(day('2026-03-29T12:00:00Z', 'day'), '2026-03-29')
  assert.equal(day('2026-05-14T13:20:00Z', 'week'), '2026-05-11')
  assert.equal(day('2026-05-11T00:00:00Z', 'week'), '2026-05-11')
  assert.equal(day('2026-05-10T23:59:59Z', 'week'), '2026-05-04')
  assert.equal(day('2024-02-29T23:59:59Z', 'month'), '2024-02-01')
  assert.equal(iso(bucketsAfter(Date.UTC(2024, 1), 'month')), '2024-03-01')
  assert.equal(day('2026-12-31T23:59:59Z', 'year'), '2026-01-01')
})

test('what is asked for is widened to whole buckets, and never by more than it takes', () => {
  fc.assert(
    fc.property(size, instant, fc.integer({ min: 1, max: 40 * 24 * HOUR_MS }), (of, startMs, lengthMs) => {
      const bounds = readBounds({ size: of, startMs, endMs: startMs + lengthMs })
      assert.equal(bounds[0], bucketStart(startMs, of))
      assert.ok(bounds.at(-1)! >= startMs + lengthMs && bounds.at(-2)! < startMs + lengthMs)
      for (const [index, bound] of bounds.slice(1).entries()) assert.equal(bound, bucketsAfter(bounds[index]!, of))
    }),
  )
})

test('the default period is the last 30 days, and one given end determines the other', () => {
  assert.deepEqual(ends({ size: 'day' }), ['2026-04-14', '2026-05-15'])
  assert.deepEqual(ends({ size: 'month' }), ['2026-04-01', '2026-06-01'])
  assert.deepEqual(ends({ size: 'year' }), ['2026-01-01', '2027-01-01'])
  assert.deepEqual(ends({ size: 'day', endMs: Date.UTC(2026, 0, 31) }), ['2026-01-01', '2026-01-31'])
  assert.deepEqual(ends({ size: 'day', startMs: Date.UTC(2026, 4, 12, 5) }), ['2026-05-12', '2026-05-15'])
  assert.deepEqual(ends({ size: 'day', lastN: 1 }), ['2026-05-14', '2026-05-15'])
  assert.deepEqual(ends({ size: 'month', lastN: 3 }), ['2026-03-01', '2026-06-01'])
  assert.deepEqual(ends({ size: 'week', lastN: 2 }), ['2026-05-04', '2026-05-18'])
})

test('all mistakes of the period are reported at once', () => {
  const startMs = Date.UTC(2026, 4, 15)
  assert.deepEqual(readFailures({ size: 'day', startMs, endMs: startMs, lastN: 2_000 }), [
    'query.lastN: excludes a start and an end',
    `query.lastN: must be at most ${MAX_BUCKETS}`,
    'query.startTime: must be before endTime, which defaults to the present time',
  ])
  assert.deepEqual(readFailures({ size: 'day', startMs }), [
    'query.startTime: must be before endTime, which defaults to the present time',
  ])
  assert.deepEqual(readFailures({ size: 'hour', startMs: 0 }), [
    'query.bucketSize: makes more than 1000 buckets of this time; ask for less time or larger buckets',
  ])
  assert.deepEqual(readFailures({ size: 'year', startMs: -1, endMs: Date.UTC(9999, 5) }), [
    'query.startTime: must not be before 1970',
    'query.endTime: must not be after the year 9998',
  ])
  assert.equal(readBounds({ size: 'hour', lastN: MAX_BUCKETS }).length, MAX_BUCKETS + 1)
})

test('whatever the buckets, their amounts add up to the same sum as those of the hours, to a millionth', () => {
  const price = fc.integer({ min: 0, max: 10_000_000 })
  const worker = fc.tuple(instant, fc.integer({ min: 1, max: 70 * 24 * HOUR_MS }), price)
  fc.assert(
    fc.property(fc.array(worker, { minLength: 1, maxLength: 5 }), size, (workers, of) => {
      const hours = workers.flatMap(([startMs, ranMs, micros]) => {
        const counted = { countedUntilMs: startMs, countedIdleMs: 0, countedFrozenMs: 0 }
        const now = { idleMs: 0, idleSinceMs: null, frozenMs: 0, frozenSinceMs: null }
        const meter = { readyAtMs: startMs, ...now, ...counted }
        const endMs = startMs + Math.min(ranMs, 700 * HOUR_MS)
        return countWorker(meter, endMs).hours.map(({ hourMs, usage }) => ({
          hourMs,
          exact: exactAmount(micros, usage.runningMs),
        }))
      })
      const buckets = new Map<number, bigint>()
      for (const { hourMs, exact } of hours) {
        const start = bucketStart(hourMs, of)
        buckets.set(start, (buckets.get(start) ?? 0n) + exact)
      }
      const sums = [hours.map(({ exact }) => exact), [...buckets.values()]].map(amounts => {
        const sum = new RoundedSum()
        const parts = amounts.map(exact => {
          const part = sum.add(exact)
          assert.ok(Math.abs(part - Number(exact) / HOUR_MS) < 1.001, 'a part is within a millionth of what it is')
          assert.ok(part >= 0)
          return part
        })
        assert.equal(
          parts.reduce((a, b) => a + b, 0),
          sum.micros,
        )
        return sum.micros
      })
      assert.equal(sums[0], sums[1])
    }),
  )
})

test('an hour costs its price, and a third of a millionth is not lost three times', () => {
  const sum = new RoundedSum()
  assert.equal(sum.add(exactAmount(1_116_000, HOUR_MS)), 1_116_000)
  assert.equal(dollars(sum.micros), 1.116)
  const thirds = new RoundedSum()
  const third = () => thirds.add(exactAmount(1, HOUR_MS / 3))
  assert.deepEqual([third(), third(), third()], [0, 1, 0])
})

test('a worker costs what its hardware costs, times how much of it there is', () => {
  const reading = readPrices('{"gpu": {"ADA_24": "1.116", "default": 0.5}, "cpu": {"cpu3c": 0.02}}')
  assert.ok('prices' in reading)
  const price = (flavor: string) => hourlyPrice(reading.prices, flavor)
  assert.deepEqual(price('gpu:ADA_24:2'), { kind: 'gpu', micros: 2_232_000 })
  assert.deepEqual(price('gpu:any:1'), { kind: 'gpu', micros: 500_000 })
  assert.deepEqual(price('cpu:cpu3c:4'), { kind: 'cpu', micros: 80_000 })
  assert.deepEqual(price('cpu:cpu5g:4'), { kind: 'cpu', micros: 0 })
  assert.deepEqual(price('unknown'), { kind: 'cpu', micros: 0 })
  assert.equal(hourlyPrice(CATALOG_PRICES, 'gpu:ADA_24:1').micros, 1_116_000)
  assert.equal(hourlyPrice(NO_PRICES, 'gpu:ADA_24:1').micros, 0)
})

test('a list of prices is read whole, or refused with all of its mistakes', () => {
  const read = (value: unknown) => readPrices(typeof value === 'string' ? value : JSON.stringify(value))
  const mistakes = (value: unknown) => {
    const reading = read(value)
    return 'mistakes' in reading ? reading.mistakes.map(text => text.slice(0, 60)) : []
  }
  assert.deepEqual(mistakes({}), [])
  assert.deepEqual(mistakes({ gpu: { ADA_24: 1_000_000, default: '0' }, phases: ['starting'] }), [])
  assert.match(mistakes('{')[0]!, /^is not JSON/)
  assert.deepEqual(mistakes('[1]'), ['must be a JSON object'])
  assert.deepEqual(
    mistakes({ gpus: {}, gpu: { ADA: 1, ADA_24: 0.1234567 }, cpu: { cpu3c: -1, default: 1e-7 }, phases: ['busy'] }),
    [
      "'gpus' is not a part of a list of prices; the parts are gpu, cpu and phases".slice(0, 60),
      'gpu.ADA is not known; the pools are AMPERE_16, AMPERE_24, ADA_24, ADA_32_PRO, AMPERE_48, ADA_48_PRO'.slice(
        0,
        60,
      ),
      'gpu.ADA_24 must be dollars for an hour from 0 to 1000000 with at most'.slice(0, 60),
      'cpu.cpu3c must be dollars for an hour from 0 to 1000000 with at most'.slice(0, 60),
      'cpu.default must be dollars for an hour from 0 to 1000000 with'.slice(0, 60),
      'phases must be a list of starting, running, idle, frozen, not ["busy"]'.slice(0, 60),
    ],
  )
  assert.deepEqual(mistakes({ gpu: [], cpu: 1, phases: 'running' }).length, 3)
  assert.deepEqual(mistakes({ gpu: { ADA_24: 1_000_000.01 } }).length, 1)
})
