import assert from 'node:assert/strict'
import { test } from 'node:test'
import { column, table } from '../../src/cli/terminal/table.ts'

const columns = [column('ID', 'id'), column('NAME', 'name'), column('IMAGE', 'image')]
const rows = [
  { id: '4m7x2k9q', name: 'a name with many words', image: 'registry.example.com/people/image:latest' },
  { id: '9x4m2p7vlonger', name: 'b', image: 'c\u001b[31m\nd' },
]

function lines(width?: number): string[] {
  return table(columns, rows, width).replaceAll('\u001b[1m', '').replaceAll('\u001b[22m', '').trimEnd().split('\n')
}

test('a table has room for everything where the terminal has', () => {
  assert.deepEqual(lines(200), [
    'ID              NAME                    IMAGE',
    '4m7x2k9q        a name with many words  registry.example.com/people/image:latest',
    '9x4m2p7vlonger  b                       c d',
  ])
  assert.deepEqual(lines(), lines(200))
})

test('on a narrow terminal no line is broken: the widest columns are cut, and never the id', () => {
  for (let width = 34; width <= 80; width += 1) {
    const found = lines(width)
    assert.equal(found.length, 3)
    for (const line of found) assert.ok(line.length <= width, `${width}: ${line}`)
    assert.ok(found[2]!.startsWith('9x4m2p7vlonger  b'))
  }
  assert.equal(lines(40)[1], '4m7x2k9q        a name wit…  registry.e…')
})

test('where even that is too wide each row is a paragraph', () => {
  assert.deepEqual(lines(20), [
    'ID     4m7x2k9q',
    'NAME   a name with many words',
    'IMAGE  registry.example.com/people/image:latest',
    '',
    'ID     9x4m2p7vlonger',
    'NAME   b',
    'IMAGE  c d',
  ])
})
