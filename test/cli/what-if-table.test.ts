/** Output of `runyard whatif`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { type PlayedFigures, type WhatIfShown, whatIfHead, whatIfTable } from '../../src/cli/terminal/what-if-table.ts'

const TODAY: PlayedFigures = {
  workersMin: 0,
  workersMax: 3,
  idleTimeout: 10,
  scalerType: 'QUEUE_DELAY',
  scalerValue: 4,
  flashBootType: 'OFF',
  startAware: false,
  workerHours: { starting: 31.2, idle: 38.2, running: 171.9, frozen: 20.5 },
  cost: 234.67,
  waitMs: { p50: 4_000, p95: 9_100, p99: 12_800 },
  coldStarts: 14_047,
  thaws: 0,
  mostWorkers: 3,
}
const OTHER = { ...TODAY, idleTimeout: 60, workersMax: 1_000, cost: 0.0004, coldStarts: 51, mostWorkers: 8 }
const ANSWER: WhatIfShown = {
  serverlessId: 'abc',
  recorded: {
    from: '2026-10-26T11:00:00.000Z',
    to: '2026-11-25T11:00:00.000Z',
    attempts: 41_260,
    waitMs: { p50: 3_900, p95: 9_200, p99: 13_300 },
    coldStarts: 13_950,
  },
  assumed: { startMs: 8_000, startFrom: 'WORKERS', concurrency: 1, hardware: 'gpu:ADA_24:1', pricePerHour: 1.116 },
  notes: ['a note that is much longer than what fits on one line of a terminal that has eighty columns'],
  today: TODAY,
  other: OTHER,
}

/** Lines of a text without colors. */
function lines(text: string): string[] {
  return stripVTControlCharacters(text).split('\n')
}

function row(answer: WhatIfShown, title: string): string[] {
  const found = lines(whatIfTable(answer)).find(line => line.trim().startsWith(title))
  return found === undefined ? [] : found.trim().split(/ {2,}/)
}

test('both replays are side by side beside what happened, with the settings in which they differ', () => {
  assert.deepEqual(row(ANSWER, 'idle timeout'), ['idle timeout', '-', '10 s', '60 s'])
  assert.deepEqual(row(ANSWER, 'workers at most'), ['workers at most', '-', '3', '1000'])
  assert.deepEqual(row(ANSWER, 'flashboot'), [])
  assert.deepEqual(row(ANSWER, 'worker hours'), ['worker hours', '-', '241.3', '241.3'])
  assert.deepEqual(row(ANSWER, 'frozen hours'), ['frozen hours', '-', '20.5', '20.5'])
  assert.deepEqual(row(ANSWER, 'cost'), ['cost', '-', '$234.67', '$0.000400'])
  assert.deepEqual(row(ANSWER, 'wait p95'), ['wait p95', '9.2s', '9.1s', '9.1s'])
  assert.deepEqual(row(ANSWER, 'cold starts'), ['cold starts', '13950', '14047', '51'])
})

test('without a question one column has all settings, and without workers today their column is empty', () => {
  assert.deepEqual(row({ ...ANSWER, other: null }, 'scaler'), ['scaler', '-', 'QUEUE_DELAY 4'])
  assert.deepEqual(row({ ...ANSWER, today: null }, 'cold starts'), ['cold starts', '13950', '-', '51'])
})

test('everything fits 80 columns, whatever the settings', () => {
  const longest = { flashBootType: 'PRIORITY_FLASHBOOT', scalerType: 'REQUEST_COUNT', scalerValue: 1_000_000 }
  const answer = { ...ANSWER, other: { ...OTHER, ...longest, cost: 123_456_789.12 } }
  const wide = lines(whatIfHead(answer, 'x'.repeat(20)) + whatIfTable(answer)).filter(line => line.length > 80)
  assert.deepEqual(wide, [])
})
