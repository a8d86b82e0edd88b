import assert from 'node:assert/strict'
import { test } from 'node:test'
import { messageLine, outputEnd } from '../../src/core/output-end.ts'

const FRAMES = Array.from({ length: 10 }, (_, n) => `    at step${n} (file:///a/handler.mjs:${n}:1)`)
const NODE = [
  'loading',
  'file:///a/handler.mjs:1',
  'boom()',
  '^',
  '',
  'TypeError: boom is no function',
  ...FRAMES,
  '',
  'Node.js v26.1.0',
]
const PYTHON = [
  'Traceback (most recent call last):',
  '  File "handler.py", line 1, in <module>',
  '    boom()',
  'ValueError: 17 is odd',
]

const asLines = (lines: readonly string[]) => lines.map(line => ({ line }))

test('a long stack of JavaScript does not push its message out of the last lines', () => {
  const before = Array.from({ length: 40 }, (_, n) => `request ${n}`)
  const kept = outputEnd(asLines([...before, ...NODE]))
  assert.equal(kept.length, 20)
  const end = ['TypeError: boom is no function', ...FRAMES.slice(0, 2), '', 'Node.js v26.1.0']
  assert.deepEqual(kept.slice(-end.length), end)
  assert.deepEqual(outputEnd(asLines(PYTHON)), PYTHON)
})

test('the message is found among frames, properties and versions, in JavaScript and in Python', () => {
  assert.equal(messageLine(NODE), 'TypeError: boom is no function')
  assert.equal(messageLine(PYTHON), 'ValueError: 17 is odd')
  const withProperties = ['Error [ERR_X]: no', ...FRAMES, '{', "  code: 'ERR_X'", '}', 'Node.js v26.1.0']
  assert.equal(messageLine(withProperties), 'Error [ERR_X]: no')
  assert.equal(
    messageLine(['  File "a.py"', 'torch.cuda.OutOfMemoryError: CUDA out of memory']),
    'torch.cuda.OutOfMemoryError: CUDA out of memory',
  )
  assert.equal(messageLine(['Segmentation fault', '']), 'Segmentation fault')
  assert.equal(messageLine(['', ' ']), null)
})
