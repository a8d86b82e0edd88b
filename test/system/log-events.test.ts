/** Events with a line of the log each, and events that share one a minute. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Logger } from 'pino'
import { logEvents } from '../../src/system/observing/log.ts'

/** A log that keeps its lines, and the end of the first minute. */
function openLog() {
  const lines: [string, Record<string, unknown>][] = []
  const keep = (fields: Record<string, unknown>, name: string) => lines.push([name, fields])
  const minutes: (() => void)[] = []
  const log = { info: keep, warn: keep, error: keep, debug: keep } as unknown as Logger
  return { lines, emit: logEvents(log, (_, ended) => minutes.push(ended)), endMinute: () => minutes.shift()!() }
}

const failed = { surface: 'jobs', method: 'POST', path: '/v2/e/run', requestId: 'r1' }

test('requests that fail for one cause while a disk is full share a line a minute', () => {
  const { lines, emit, endMinute } = openLog()
  for (let call = 0; call < 500; call += 1)
    emit('request.failed', { ...failed, status: 503, problem: `Error: database or disk is full\n  at call ${call}` })
  assert.deepEqual(
    lines.map(([name, { count }]) => [name, count]),
    [['request.failed', 1]],
  )
  endMinute()
  assert.equal(lines[1]?.[1].count, 499)
  emit('request.failed', { ...failed, status: 503, problem: 'Error: the database is away' })
  assert.equal(lines[2]?.[1].problem, 'Error: the database is away')
})

test('a mistake of the program has a line for each request, which its id finds', () => {
  const { lines, emit } = openLog()
  for (const requestId of ['r1', 'r2'])
    emit('request.failed', { ...failed, status: 500, problem: 'TypeError', requestId })
  assert.deepEqual(
    lines.map(([, { requestId }]) => requestId),
    ['r1', 'r2'],
  )
})
