import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CAUSES, causeTone, errorLine, isPassing, sentence } from '../../console/parts/cause.ts'
import { WAIT_CAUSES } from '../../src/core/observing/explanation.ts'

test('there is a look for every cause that the server names, and for no other', () => {
  assert.deepEqual(Object.keys(CAUSES).sort(), [...WAIT_CAUSES].sort())
})

test('a cause that only a newer server has is shown as a wait', () => {
  assert.equal(causeTone('sunspots'), 'wait')
})

test('of the output of a worker the line with the error is named', () => {
  const python = [
    'Traceback (most recent call last):',
    '  File "x.py", line 1',
    "ModuleNotFoundError: No module named 'torch'",
  ]
  const node = [
    'throw new Error("x")',
    '      ^',
    'Error: weights are missing',
    '    at file:///x.mjs:2:7',
    'Node.js v26',
  ]
  assert.deepEqual([python, node, ['loading']].map(errorLine), [python[2], node[2], null])
})

test('a clause of the server begins as a sentence does', () => {
  assert.deepEqual(['no worker can be started', '2 jobs wait', ''].map(sentence), [
    'No worker can be started',
    '2 jobs wait',
    '',
  ])
})

test('a wait that has just begun may pass; a pause and a crash do not, and a slow clock hides nothing', () => {
  const passing = (cause: string, sinceMs: number | null) => isPassing({ cause, sinceMs }, 2_000, 10_000)
  assert.equal(passing('max_reached', 9_000), true)
  assert.deepEqual(
    [
      passing('max_reached', 8_000),
      passing('max_reached', null),
      passing('max_reached', 11_000),
      passing('paused', 9_000),
      passing('crash_loop', 9_000),
    ],
    [false, false, false, false, false],
  )
})
