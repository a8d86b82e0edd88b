import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AUDIT_COLUMNS } from '../../src/cli/terminal/audit-columns.ts'
import { table } from '../../src/cli/terminal/table.ts'

const ROW = {
  sequence: 12,
  at: '2026-05-01T12:00:00.123Z',
  account: 'owner',
  keyId: 'cc4e484a-4d74-4286-9886-f1d19fe57e31',
  session: false,
  address: '10.0.0.1',
  surface: 'rest',
  operation: 'updateEndpoint',
  object: { kind: 'endpoint', id: 'e1' },
  changes: [],
  detail: {},
  outcome: 'done',
  problem: null,
}

function shown(row: object): string {
  return table(AUDIT_COLUMNS, [{ ...ROW, ...row }], Number.POSITIVE_INFINITY).split('\n')[1]!
}

test('an entry is a line with who, what, and what was different', () => {
  const changes = [
    { field: 'workersMax', from: 1, to: 3 },
    { field: 'env', added: ['A'], removed: ['B'], changed: ['C'] },
    { field: 'args', changed: true },
  ]
  assert.equal(
    shown({ changes }),
    '12      2026-05-01 12:00:00  owner cc4e484a  updateEndpoint  e1      done     workersMax 1 -> 3; env +A -B ~C; args changed',
  )
  assert.match(shown({ session: true }), /owner cc4e484a \(console\)/)
  assert.match(shown({ outcome: 'refused', problem: 'not_found', object: null }), / - +refused +not_found$/)
})

test('the server, an account that it acts for, and a stranger are distinguished', () => {
  const server = { surface: 'server', keyId: null, account: null, address: null }
  assert.match(shown(server), /00 {2}server +updateEndpoint/)
  assert.match(shown({ ...server, address: '203.0.113.9' }), /00 {2}203\.0\.113\.9 +updateEndpoint/)
  assert.match(
    shown({ ...server, account: 'user1', detail: { secrets: ['a', 'b'], registry: null } }),
    /secrets \["a","b"\]$/,
  )
})
