import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedValues } from '../../console/pages/audit/audit-words.ts'
import { eventDetails, eventObject } from '../../console/pages/events/event-words.ts'

const event = (type: string, fields: Record<string, unknown>, endpointId: string | null = 'e1') => {
  return { id: 'x-1', type, at: '2026-11-28T00:00:00Z', endpointId, fields }
}

test('an event leads to its job or its worker, and the rest of it is one line without empty values', () => {
  const moved = event('job.moved', { jobId: 'j 1', from: 'IN_QUEUE', to: 'IN_PROGRESS', workerId: 'w1', reason: null })
  assert.deepEqual(eventObject(moved), { id: 'j 1', path: '/endpoints/e1/requests?job=j%201' })
  assert.equal(eventDetails(moved), 'IN_QUEUE → IN_PROGRESS, worker w1')
  const exited = event('worker.exited', { workerId: 'w1', cause: 'exit code 1', asked: false })
  assert.deepEqual(eventObject(exited), { id: 'w1', path: '/endpoints/e1/workers?worker=w1' })
  assert.equal(eventDetails(exited), 'cause exit code 1, asked false')
  const change = event('change.made', { surface: 'rest', operation: 'createSecret', object: 'token' }, null)
  assert.deepEqual(eventObject(change), { id: 'token', path: null })
  assert.equal(eventDetails(change), 'surface rest, operation createSecret')
})

test('a change shows its values, and of secrets and variables that they changed', () => {
  assert.equal(changedValues({ field: 'workersMax', from: 1, to: null }), '1 → –')
  assert.equal(changedValues({ field: 'value', changed: true }), 'changed; its value may be secret')
  const variables = { field: 'env', added: ['A'], removed: [], changed: ['B', 'C'] }
  assert.equal(changedValues(variables), 'added A; changed B, C')
})
