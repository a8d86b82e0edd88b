/** Files for spreadsheets. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { csv } from '../../console/parts/csv.ts'

test('rows end as RFC 4180 says, and nothing is an empty field', () => {
  assert.equal(
    csv([
      ['a', 'b'],
      [1.5, null],
    ]),
    'a,b\r\n1.5,\r\n',
  )
})

test('a text with commas, quotes or lines stays one field', () => {
  assert.equal(csv([['a,b', 'say "x"', 'two\nlines']]), '"a,b","say ""x""","two\nlines"\r\n')
})

test('a name that a spreadsheet would run as a formula is a text; a number stays a number', () => {
  assert.equal(csv([['=HYPERLINK("x")', '+1', '-1', '@a', -1]]), '"\'=HYPERLINK(""x"")",\'+1,\'-1,\'@a,-1\r\n')
})
