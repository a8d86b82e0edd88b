import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LogRateLimit } from '../../../src/system/observing/log-rate-limit.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

function openLines(maxSubjects?: number) {
  const clock = new VirtualClock()
  const written: [string, object][] = []
  const lines = new LogRateLimit<string>(
    (name, fields) => void written.push([name, fields]),
    (ms, callback) => void clock.after(ms, callback),
    maxSubjects,
  )
  return { clock, lines, written }
}

test('a repeated event has one line a minute, with the count since the line before', async () => {
  const { clock, lines, written } = openLines()
  for (const address of ['a', 'a', 'b', 'a']) lines.add('failed', address, { address, count: 2 })
  const first = ['a', 'b'].map(address => ['failed', { address, count: 2 }])
  assert.deepEqual(written.splice(0), first)
  await clock.advance(60_000)
  assert.deepEqual(written.splice(0), [['failed', { address: 'a', count: 4 }]])
  lines.add('failed', 'b', { address: 'b' })
  assert.deepEqual(written.splice(0), [['failed', { address: 'b', count: 1 }]], 'it was quiet for a minute')
  lines.add('failed', 'a', { address: 'a', reason: 'later' })
  assert.deepEqual(written, [], 'its latest line is not a minute old')
  await clock.advance(60_000)
  assert.deepEqual(written, [['failed', { address: 'a', reason: 'later', count: 1 }]])
})

test('above the limit of different events, the rest of each name shares a line', async () => {
  const { clock, lines, written } = openLines(2)
  for (const address of ['a', 'b', 'c', 'd', 'e']) lines.add('failed', address, { address })
  assert.deepEqual(
    written.splice(0).map(([, fields]) => fields),
    ['a', 'b', 'c'].map(address => ({ address, count: 1 })),
  )
  await clock.advance(60_000)
  assert.deepEqual(written, [['failed', { address: 'e', count: 2 }]])
})
