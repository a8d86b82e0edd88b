/** The finder: places by a part of their name, and objects by their id. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findPlaces, isIdLike, objectPath } from '../../console/frame/finder-matches.ts'

const PLACES = ['Home', 'Endpoints', 'Webhooks'].map(title => ({ title, note: 'page', path: `/${title}` }))
const place = { title: 'my-home', note: 'ab12cd34ef', path: '/endpoints/ab12cd34ef' }

test('names that begin with the text come first, and ids are found too', () => {
  const found = (text: string) => findPlaces([place, ...PLACES], text).map(({ title }) => title)
  assert.deepEqual(found('home'), ['Home', 'my-home'])
  assert.deepEqual(found('AB12'), ['my-home'])
  assert.deepEqual(found('nothing'), [])
  const many = Array.from({ length: 5_000 }, (_, n) => ({ ...place, title: `e${n}` }))
  assert.equal(findPlaces(many, '').length, 12)
})

test('ids lead to the page of their object', () => {
  assert.ok(isIdLike(' 0b6f1a52-0ab9-4f60-9d5c-1d1e4c3f9a10-u1 '))
  for (const text of ['short', 'two words here', '<script>alert(1)</script>']) assert.ok(!isIdLike(text))
  const of = { id: 'x1', endpointId: 'e1' }
  assert.equal(objectPath({ ...of, kind: 'job' }), '/endpoints/e1/requests?job=x1')
  assert.equal(objectPath({ ...of, kind: 'worker' }), '/endpoints/e1/workers?worker=x1')
  assert.equal(objectPath({ ...of, kind: 'endpoint' }), '/endpoints/e1')
})
