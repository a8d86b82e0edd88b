import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AuditView, fieldChanges } from '../../../src/core/audit/field-change.ts'

function aView(fields: Partial<AuditView>): AuditView {
  return { shown: {}, hidden: {}, variables: {}, ...fields }
}

test('shown fields have both values, hidden ones that they changed, variables their names', () => {
  const before = aView({
    shown: { max: 1, name: 'a', list: ['x'] },
    hidden: { password: 'old', args: 'same' },
    variables: { env: { A: '1', B: '2', C: '3' } },
  })
  const after = aView({
    shown: { max: 3, name: 'a', list: ['x', 'y'] },
    hidden: { password: 'new', args: 'same' },
    variables: { env: { A: '1', B: 'other', D: '4' } },
  })
  assert.deepEqual(fieldChanges(before, after), [
    { field: 'max', from: 1, to: 3 },
    { field: 'list', from: ['x'], to: ['x', 'y'] },
    { field: 'password', changed: true },
    { field: 'env', added: ['D'], removed: ['C'], changed: ['B'] },
  ])
  assert.deepEqual(fieldChanges(after, after), [])
  assert.deepEqual(fieldChanges(null, null), [])
})

test('a created record has no values before, and a deleted one has no values after', () => {
  const one = aView({ shown: { name: 'a', owner: null }, hidden: { key: 'k' }, variables: { env: { A: '1' } } })
  assert.deepEqual(fieldChanges(null, one), [
    { field: 'name', from: null, to: 'a' },
    { field: 'key', changed: true },
    { field: 'env', added: ['A'], removed: [], changed: [] },
  ])
  assert.deepEqual(fieldChanges(one, null)[0], { field: 'name', from: 'a', to: null })
})

test('long values and long lists are cut with a note', () => {
  const names = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`N${at}`, 'x']))
  const [text, list, env] = fieldChanges(
    null,
    aView({ shown: { text: 'x'.repeat(10_000), list: Array(1_000).fill('yy') }, variables: { env: names } }),
  )
  assert.ok(text !== undefined && 'to' in text && list !== undefined && 'to' in list && env !== undefined)
  assert.equal(text.to, `${'x'.repeat(500)}... (9500 more characters)`)
  assert.match(String(list.to), /^\["yy",.*\.\.\. \(\d+ more characters\)$/)
  assert.ok('added' in env)
  assert.deepEqual([env.added.length, env.added.at(-1)], [101, 'and 50 more'])
})

test('names of variables that objects have of their own are names like others', () => {
  const [change] = fieldChanges(
    aView({ variables: { env: {} } }),
    aView({ variables: { env: { constructor: '1', toString: '2' } } }),
  )
  assert.deepEqual(change, { field: 'env', added: ['constructor', 'toString'], removed: [], changed: [] })
})
