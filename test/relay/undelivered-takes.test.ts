import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UndeliveredTakes } from '../../src/relay/undelivered-takes.ts'

test('a take whose answer was lost is reported from the moment before it was passed on, once', () => {
  const takes = new UndeliveredTakes()
  takes.end(takes.begin('w', 1_000), 'lost', 1_200)
  assert.ok(takes.isLost('w'))
  assert.equal(takes.beginReport('w'), 999)
  assert.ok(takes.isReporting('w'))
  assert.equal(takes.beginReport('w'), null, 'one report at a time')
  takes.endReport('w', true)
  assert.deepEqual([takes.isLost('w'), takes.isReporting('w'), takes.beginReport('w')], [false, false, null])
})

test('an unreported take is reported again', () => {
  const takes = new UndeliveredTakes()
  takes.end(takes.begin('w', 1_000), 'lost', 1_200)
  takes.beginReport('w')
  takes.endReport('w', false)
  takes.end(takes.begin('w', 2_000), 'lost', 2_200)
  assert.equal(takes.beginReport('w'), 999, 'from the first that was lost')
})

test('nothing is reported of takes that were answered', () => {
  const takes = new UndeliveredTakes()
  takes.end(takes.begin('w', 1_000), 'delivered', 1_200)
  takes.end(takes.begin('w', 1_300), 'nothing', 1_400)
  assert.equal(takes.beginReport('w'), null)
})

test('nothing is reported while another take of the worker is open, whose jobs could be mistaken for the lost ones', () => {
  const takes = new UndeliveredTakes()
  const lost = takes.begin('w', 1_000)
  const open = takes.begin('w', 1_100)
  takes.end(lost, 'lost', 1_200)
  assert.equal(takes.beginReport('w'), null)
  takes.end(open, 'nothing', 1_500)
  assert.equal(takes.beginReport('w'), 999)
})

test('jobs that came with another take are never reported', () => {
  const takes = new UndeliveredTakes()
  const lost = takes.begin('w', 1_000)
  const first = takes.begin('w', 1_100)
  takes.end(first, 'delivered', 1_300)
  const second = takes.begin('w', 1_350)
  takes.end(lost, 'lost', 1_400)
  takes.end(second, 'delivered', 1_500)
  assert.equal(takes.beginReport('w'), 1_500)
})

test('workers are apart, and one of which nothing is left to say is forgotten', () => {
  const takes = new UndeliveredTakes()
  takes.end(takes.begin('a', 1_000), 'lost', 1_200)
  takes.end(takes.begin('b', 1_000), 'delivered', 1_200)
  assert.equal(takes.size, 1)
  assert.equal(takes.beginReport('b'), null)
  assert.equal(takes.beginReport('a'), 999)
  takes.endReport('a', true)
  assert.equal(takes.size, 0)
})
