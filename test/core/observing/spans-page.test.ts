/** The guide names the spans that there are, and the places where they are. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SPAN_NAMES } from '../../../src/core/observing/span.ts'
import { PHASE_SPANS } from '../../../src/core/observing/worker-spans.ts'

const page = readFileSync(new URL('../../../docs/guides/tracing.md', import.meta.url), 'utf8')
const names = [...Object.values(SPAN_NAMES), ...Object.values(PHASE_SPANS)]

test('every span is a row of the guide, and every row is a span', () => {
  const [, table = ''] = page.split('<!-- spans -->')
  const rows = new Set([...table.split('\n## ')[0]!.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name))
  assert.deepEqual([...rows].sort(), [...new Set(names)].sort())
})
