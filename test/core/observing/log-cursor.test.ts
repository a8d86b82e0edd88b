import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { parseInstant } from '../../../src/core/instants.ts'
import { eventId, eventIdFromPlaces, readEventId } from '../../../src/core/observing/log-cursor.ts'

const MS = Date.UTC(2026, 5, 1, 12, 5, 4)

test('the id of an event is its instant and a number of at least 12 digits, and is read back', () => {
  const place = { position: 123, historyRead: 4 }
  assert.equal(eventId(MS, place), '2026-06-01T12:05:04.000Z/000000012304')
  assert.deepEqual(readEventId(eventId(MS, place)), { kind: 'place', place })
  const far = { position: 9_000_000_000_000, historyRead: 99 }
  assert.deepEqual(readEventId(eventId(MS, far)), { kind: 'place', place: far })
})

test('the id of an event about several workers says how far each was read', () => {
  const places = new Map([
    ['a' as WorkerId, { position: 0, historyRead: 1 }],
    ['b2' as WorkerId, { position: 70, historyRead: 0 }],
  ])
  const id = eventIdFromPlaces(MS, places)
  assert.equal(id, '2026-06-01T12:05:04.000Z/a.1,b2.7000')
  assert.deepEqual(readEventId(id), { kind: 'places', places })
  assert.deepEqual(readEventId(eventIdFromPlaces(MS, new Map())), { kind: 'places', places: new Map() })
})

test('an instant alone is an id, and anything else is not', () => {
  assert.deepEqual(readEventId('2026-06-01T14:05:04+02:00'), { kind: 'instant', ms: MS })
  for (const text of ['', 'x', '42', '/42', '2026-06-01T12:05:04Z/x', 'now/000000000001']) {
    assert.equal(readEventId(text), null, text)
  }
  assert.equal(readEventId(`2026-06-01T12:05:04Z/${Array.from({ length: 65 }, () => 'a.1').join(',')}`), null)
})

test('an instant is a whole date and time with its zone', () => {
  assert.equal(parseInstant('2026-06-01T12:05:04Z'), MS)
  assert.equal(parseInstant('2026-06-01t12:05:04.25z'), MS + 250)
  for (const text of ['2026-06-01', '2026-06-01T12:05:04', '2026-13-01T12:05:04Z', '1780000000000']) {
    assert.equal(parseInstant(text), null, text)
  }
})
