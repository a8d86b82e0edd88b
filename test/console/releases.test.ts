import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  describeRelease,
  type RolloutFacts,
  readVersions,
  releaseRole,
  rolloutSentence,
  stopRule,
  trafficRows,
} from '../../console/pages/endpoint/releases/release-words.ts'

const RELEASE = { version: 5, restoredVersion: null, source: 'MANUAL', diff: [] } as const
const ROLLOUT: RolloutFacts = {
  state: 'COMPLETE',
  workersOnLatest: 0,
  workersTotal: 0,
  percentOnLatest: 0,
  reason: null,
  workingVersion: null,
  canary: null,
  failures: null,
}

test('a release says what made it', () => {
  assert.equal(describeRelease({ ...RELEASE, version: 1 }), 'Created')
  assert.equal(describeRelease(RELEASE), 'Restart: the same configuration with new workers')
  assert.equal(describeRelease({ ...RELEASE, restoredVersion: 2 }), 'Rollback to version 2')
  const diff = ['image', 'env.A', 'env.B', 'disk'].map(field => ({ field }))
  assert.equal(describeRelease({ ...RELEASE, diff }), 'Changed image, env, disk')
})

test('a rollout says what runs, and what does not', () => {
  assert.equal(rolloutSentence(5, ROLLOUT), 'No worker runs. The next ones run version 5.')
  assert.equal(rolloutSentence(5, { ...ROLLOUT, workersOnLatest: 2, workersTotal: 2 }), 'All 2 workers run version 5.')
  assert.equal(
    rolloutSentence(5, { ...ROLLOUT, state: 'IN_PROGRESS', workersOnLatest: 1, workersTotal: 3 }),
    '1 of 3 workers run version 5. The others end when they are replaced.',
  )
  assert.match(rolloutSentence(5, { ...ROLLOUT, state: 'STOPPED', workingVersion: 4 }), /Workers of version 4 go on\.$/)
  const failures = { ended: 20, failed: 18, workingEnded: 200, workingFailed: 1 }
  const failing = { ...ROLLOUT, state: 'STOPPED', workingVersion: 4, failures } as const
  assert.equal(
    rolloutSentence(5, failing),
    'Version 5 fails clearly more than the last good one: no more workers of it start. Workers of version 4 go on.',
  )
  assert.match(stopRule(failing), /promotion/)
  assert.match(stopRule(ROLLOUT), /three crashes/)
  assert.match(rolloutSentence(5, { ...ROLLOUT, state: 'CANARY', workingVersion: 4, canary: 10 }), /10% of the workers/)
  assert.match(rolloutSentence(5, { ...ROLLOUT, reason: 'it crashed' }), /does not work/)
})

test('releases are compared by what they did, and a canary is named by its share', () => {
  const list = {
    endpointVersion: 5,
    releases: [
      { version: 5, workerCount: 0 },
      { version: 4, workerCount: 1 },
      { version: 3, workerCount: 0 },
    ],
    rollout: { ...ROLLOUT, state: 'CANARY', canary: 20, workingVersion: 4, workersOnLatest: 1, workersTotal: 2 },
  } as const
  const counted = [{ version: 2, ended: 8, failed: 2, executionMs: { p50: 10, p95: 90 } }]
  const none = { ended: 0, failed: 0, p50: null, p95: null }
  assert.deepEqual(trafficRows(list, counted), [
    { version: 5, ...none, workers: 0 },
    { version: 4, ...none, workers: 1 },
    { version: 2, ended: 8, failed: 2, p50: 10, p95: 90, workers: 0 },
  ])
  assert.deepEqual(
    [5, 4, 2].map(version => releaseRole(version, list)?.word ?? null),
    ['Canary 20%', 'last good', null],
  )
  const complete = { ...list, rollout: ROLLOUT }
  assert.equal(releaseRole(5, complete)?.word, 'newest')
})

test('an address names two versions', () => {
  assert.deepEqual(readVersions('3..5'), [3, 5])
  for (const text of [null, '', '3', '3..', 'a..b', '3..5..7', '1234567890..1']) assert.equal(readVersions(text), null)
})
