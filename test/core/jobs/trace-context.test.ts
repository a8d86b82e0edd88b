/** Contexts of traces that go with a job. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readTraceparent } from '../../../src/core/jobs/trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

test('a well-formed context is taken as it is', () => {
  assert.equal(readTraceparent(`00-${TRACE}-${SPAN}-01`), `00-${TRACE}-${SPAN}-01`)
  assert.equal(readTraceparent(` 00-${TRACE}-${SPAN}-00 `), `00-${TRACE}-${SPAN}-00`)
})

test('a context that the standard forbids is ignored', () => {
  const bad = [
    '',
    'x',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`.repeat(2),
  ]
  for (const text of bad) assert.equal(readTraceparent(text), null, text)
  assert.equal(readTraceparent(undefined), null)
})
