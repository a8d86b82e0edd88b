import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cursorAfter, joinedPage, pageFromRows, readSlice } from '../../src/core/pages.ts'

const items = Array.from({ length: 5 }, (_, n) => ({ id: `i-${n}`, createdAtMs: 1_800_000_000_000 + (n >> 1) }))

/** Rows that a store would return. */
function read(cursor: string | null, limit: number) {
  const slice = readSlice({ cursor, limit })
  const { after } = slice
  const rest = items.filter(
    ({ id, createdAtMs }) =>
      after === null || createdAtMs > after.createdAtMs || (createdAtMs === after.createdAtMs && id > after.id),
  )
  return pageFromRows(rest.slice(0, slice.limit), slice)
}

test('pages follow one another without a gap, and the last one says that it is', () => {
  for (const limit of [1, 2, 3, 4, 5, 6]) {
    const found: string[] = []
    let cursor: string | null = null
    do {
      const page: ReturnType<typeof read> = read(cursor, limit)
      assert.ok(page.items.length > 0 && page.items.length <= limit)
      found.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor
    } while (cursor !== null)
    assert.deepEqual(
      found,
      items.map(({ id }) => id),
    )
  }
})

test('a cursor that no page had, and a limit out of bounds, are refused together', () => {
  assert.throws(() => readSlice({ cursor: 'x y', limit: 0 }), {
    code: 'invalid',
    message: 'limit must be an integer from 1 to 1000; cursor is not one that an earlier page has returned',
  })
  for (const cursor of ['', 'abc', '-id', 'zzzzzzzzzzzz-id', '1-é']) {
    assert.throws(() => readSlice({ cursor }), { code: 'invalid' }, cursor)
  }
  assert.deepEqual(readSlice({}), { after: null, limit: 1_001 })
})

test('several lists are one, which ends where the first of them was not read further', () => {
  const at = (createdAtMs: number) => ({ createdAtMs, id: `i${createdAtMs}` })
  const whole = { items: [at(9), at(4)], readUntil: null }
  const part = { items: [at(8), at(6)], readUntil: at(5) }
  assert.deepEqual(joinedPage([whole, part], 9), { items: [at(9), at(8), at(6)], nextCursor: cursorAfter(at(5)) })
  assert.deepEqual(joinedPage([whole, part], 2), { items: [at(9), at(8)], nextCursor: cursorAfter(at(8)) })
  assert.deepEqual(joinedPage([whole, { items: [], readUntil: null }], 2), { items: [at(9), at(4)], nextCursor: null })
  assert.deepEqual(joinedPage([{ items: [], readUntil: at(5) }], 2), { items: [], nextCursor: cursorAfter(at(5)) })
  assert.deepEqual(joinedPage([], 2), { items: [], nextCursor: null })
})
