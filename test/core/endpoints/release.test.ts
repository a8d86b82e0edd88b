import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Configuration, configDiff, workersOnLatest } from '../../../src/core/endpoints/release.ts'
import { shrinkProblems, volumeProblems } from '../../../src/core/endpoints/volume.ts'
import { problemSentence } from '../../../src/core/field-problem.ts'
import { registryProblems } from '../../../src/core/secrets/registry.ts'
import { makeTemplate, makeVolume } from '../../contract/store-world.ts'
import { anEndpoint } from '../../support/snapshots.ts'

const previous: Configuration = {
  endpoint: anEndpoint({ env: { BOTH: 'endpoint', ONE: '1' } }),
  template: makeTemplate('t', { env: { BOTH: 'template', TWO: '{{ RUNPOD_SECRET_two }}' } }),
}

test('an empty change is no difference, and a name or a range makes no difference for workers', () => {
  const after = {
    endpoint: anEndpoint({ ...previous.endpoint, name: 'other', workersMax: 9, idleTimeoutS: 99 }),
    template: makeTemplate('t', { ...previous.template, name: 'other', readme: 'other', startSsh: false }),
  }
  assert.deepEqual(configDiff(previous, after), [])
})

test('variables are compared one by one as workers see them, and secrets stay references', () => {
  const after = {
    ...previous,
    template: makeTemplate('t', { env: { BOTH: 'changed', TWO: '2', THREE: 'x'.repeat(501) } }),
  }
  assert.deepEqual(configDiff(previous, after), [
    { field: 'env.TWO', old: '{{ RUNPOD_SECRET_two }}', new: '2' },
    { field: 'env.THREE', old: null, new: `${'x'.repeat(500)}…` },
  ])
})

test('values of variables that are sealed in the store are not in a list of changes', () => {
  const after = {
    ...previous,
    template: makeTemplate('t', { env: { ...previous.template.env, TWO: 'sealed:v3.a.b.c' } }),
  }
  assert.deepEqual(configDiff(previous, after), [{ field: 'env.TWO', old: '{{ RUNPOD_SECRET_two }}', new: '(sealed)' }])
})

test('a change from CPU to GPU takes one away and brings the other', () => {
  const gpu = { pools: ['ADA_24'], excludedTypes: [], count: 1, allowedCudaVersions: [], minCudaVersion: null }
  const after = { ...previous, endpoint: anEndpoint({ ...previous.endpoint, compute: { kind: 'gpu', ...gpu } }) }
  assert.deepEqual(configDiff(previous, after), [
    { field: 'cpu', old: [{ id: 'cpu3g', vcpuCount: 2 }], new: null },
    { field: 'gpu', old: null, new: gpu },
  ])
})

test('a rollout is over when all workers have the version, and not a moment before', () => {
  const none = { inProgress: false, workersOnLatest: 0, workersTotal: 0, percentOnLatest: 0 }
  assert.deepEqual(workersOnLatest(4, []), none)
  assert.deepEqual(workersOnLatest(4, [3, 4, 4]), {
    ...none,
    inProgress: true,
    workersOnLatest: 2,
    workersTotal: 3,
    percentOnLatest: 67,
  })
  assert.equal(workersOnLatest(2, [1, ...Array(999).fill(2)]).percentOnLatest, 99)
  assert.deepEqual(workersOnLatest(2, [2]), { ...none, workersOnLatest: 1, workersTotal: 1, percentOnLatest: 100 })
})

test('a registry has a name and a whole credential', () => {
  assert.deepEqual(registryProblems({ name: 'n', username: 'u', password: 'p' }), [])
  assert.deepEqual(
    registryProblems({ name: ' ', username: '', password: 'x'.repeat(8_193) }).map(problem => problemSentence(problem)),
    [...['name must not be empty', 'username must not be empty', 'password must have at most 8192 characters']],
  )
  assert.deepEqual(registryProblems({ username: 'u' }), [], 'what is left out is kept')
})

test('a volume has a size within bounds and a known data center, and only grows', () => {
  const problems = volumeProblems({ name: '', sizeGb: 9, dataCenter: 'X', type: 'FAST' as 'STANDARD' })
  assert.equal(problems.length, 4)
  assert.match(problemSentence(problems[2]!), /^dataCenter: 'X' is not a data center; the data centers are AP-JP-1, /)
  for (const sizeGb of [10, 4_096]) assert.deepEqual(volumeProblems({ sizeGb }), [])
  for (const sizeGb of [4_097, 10.5, Number.NaN]) assert.equal(volumeProblems({ sizeGb }).length, 1)
  assert.deepEqual(shrinkProblems(makeVolume('v'), 20), [])
  assert.match(shrinkProblems(makeVolume('v'), 19)[0]!.problem, /smaller than the 20 GB/)
})
