import assert from 'node:assert/strict'
import { test } from 'node:test'
import { explainSlow, UNEXPLAINED } from '../../bench/harness/pauses.ts'

const pauses = [
  { cause: 'commit', fromMs: 100, toMs: 101 },
  { cause: 'checkpoint', fromMs: 200, toMs: 220 },
  { cause: 'commit', fromMs: 221, toMs: 224 },
  { cause: 'collection', fromMs: 500, toMs: 510 },
]

test('a slow response has the cause whose pauses fill most of its time', () => {
  const slow = [
    { fromMs: 199, toMs: 224 },
    { fromMs: 210, toMs: 226 },
    { fromMs: 499, toMs: 512 },
  ]
  const causes = explainSlow(slow, 2, pauses)
  assert.deepEqual(
    causes.map(({ cause, slow: count }) => [cause, count]),
    [
      ['checkpoint', 2],
      ['collection', 1],
      ['commit', 0],
    ],
  )
  assert.deepEqual(causes.at(-1), { cause: 'commit', slow: 0, pauses: 2, longestMs: 3, middleMs: 3 })
})

test('a pause that fills too little of a response is not its cause', () => {
  const causes = explainSlow([{ fromMs: 95, toMs: 120 }], 2, pauses)
  assert.deepEqual([causes[0]?.cause, causes[0]?.slow], [UNEXPLAINED, 1])
})

test('several pauses of one cause count together', () => {
  const commits = Array.from({ length: 10 }, (_, n) => ({ cause: 'commit', fromMs: n * 2, toMs: n * 2 + 1 }))
  const [first] = explainSlow([{ fromMs: 0, toMs: 20 }], 2, [...commits, { cause: 'other', fromMs: 0, toMs: 4 }])
  assert.deepEqual([first?.cause, first?.slow], ['commit', 1])
})

test('without slow responses the causes are those that have pauses, the longest first', () => {
  assert.deepEqual(
    explainSlow([], 2, pauses).map(({ cause }) => cause),
    ['checkpoint', 'collection', 'commit'],
  )
})
