/** The state of an endpoint in one word. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type EndpointFacts, endpointState } from '../../../src/core/observing/endpoint-state.ts'

const NONE = { running: 0, idle: 0, initializing: 0, throttled: 0, unhealthy: 0, total: 0, ready: 0 }

function stateFrom({
  counts = {},
  ...more
}: Partial<Omit<EndpointFacts, 'counts'>> & { counts?: Partial<typeof NONE> }) {
  const facts = { endpoint: { workersMax: 3 }, waiting: 0, rollout: 'COMPLETE', cause: null } as const
  return endpointState({ ...facts, ...more, counts: { ...NONE, ...counts } })
}

test('without workers an endpoint is scaled to zero, or waits', () => {
  assert.equal(stateFrom({}), 'SCALED_TO_ZERO')
  assert.equal(stateFrom({ waiting: 1 }), 'WAITING')
  assert.equal(stateFrom({ counts: { throttled: 1 } }), 'WAITING')
  assert.equal(stateFrom({ waiting: 1, counts: { initializing: 1 } }), 'STARTING')
  assert.equal(stateFrom({ endpoint: { workersMax: 0 }, waiting: 1, cause: 'paused' }), 'PAUSED')
})

test('a worker that works or waits for work makes it ready, also beside others that do not', () => {
  assert.equal(stateFrom({ counts: { running: 1, ready: 1 } }), 'READY')
  assert.equal(stateFrom({ counts: { idle: 1 } }), 'READY', 'a frozen one is idle')
  assert.equal(stateFrom({ counts: { idle: 1, ready: 1, unhealthy: 1, initializing: 1 } }), 'READY')
})

test('problems that somebody has to fix come before everything else', () => {
  assert.equal(stateFrom({ counts: { unhealthy: 1, initializing: 1 } }), 'PROBLEM')
  assert.equal(stateFrom({ waiting: 1, cause: 'image_error' }), 'PROBLEM')
  assert.equal(stateFrom({ rollout: 'STOPPED', counts: { running: 1, ready: 1 } }), 'PROBLEM')
  assert.equal(stateFrom({ waiting: 1, cause: 'max_reached', counts: { running: 1, ready: 1 } }), 'READY')
})

test('while workers of two releases run it is rolling out', () => {
  for (const rollout of ['IN_PROGRESS', 'CANARY'] as const) {
    assert.equal(stateFrom({ rollout, counts: { running: 1, ready: 1 } }), 'ROLLING_OUT')
  }
})
