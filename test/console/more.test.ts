import assert from 'node:assert/strict'
import { test } from 'node:test'
import { joinedPages } from '../../console/parts/more.ts'

const page = (rows: string, nextCursor: string | null) => ({ rows: [...rows], nextCursor })
const join = (first: ReturnType<typeof page> | null, rest: ReturnType<typeof page> | null) => {
  const { rows, nextCursor } = joinedPages(first, rest, row => row)
  return `${rows.join('')} ${nextCursor}`
}

test('a list that grows has each row once: new ones push others out of the first page', () => {
  assert.equal(join(null, null), ' null')
  assert.equal(join(page('cba', 'a'), null), 'cba a')
  assert.equal(join(page('cba', 'a'), page('cba987', '7')), 'cba987 7')
  assert.equal(join(page('edc', 'c'), page('cba987', '7')), 'edcba987 7')
})

test('a list that grew by more than a page has no gap: its later pages are read again', () => {
  assert.equal(join(page('hgf', 'f'), page('cba987', '7')), 'hgf f')
  assert.equal(join(page('', null), page('cba', null)), ' null')
})
