import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openCircuitOf } from '../../../src/core/balancing/circuit-breaker.ts'
import { explainEndpoint } from '../../../src/core/observing/explain.ts'
import type { EndpointSnapshot } from '../../../src/core/scaling/scale.ts'
import { missingSecretsText, missingVolumeText } from '../../../src/core/workers/worker-failure.ts'
import { anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

type Fields = Parameters<typeof aSnapshot>[0]

/** An endpoint for which one request waits. */
function asked(fields: Fields): EndpointSnapshot {
  const requests = { maxConcurrency: null, resumed: [], peak: null, healthProblems: new Map() }
  const endpoint = { type: 'LOAD_BALANCER', scaler: { type: 'REQUEST_COUNT', requestCount: 1 } } as const
  return { ...aSnapshot({ queue: { queued: 1 }, ...fields, endpoint: { ...endpoint, ...fields.endpoint } }), requests }
}

const crashes = (count: number, cause = 'exited with code 1') =>
  Array.from({ length: count }, () => anExit({}, { cause }))
const neverStarted = (cause: string) => [anExit({ startedAtMs: null }, { code: null, cause })]
const SECRET = missingSecretsText(['HF'])

/** Situations in which no worker is there, and after how many seconds who asks is told to come again; null where requests wait. */
const situations: [what: string, fields: Fields, startProblem: string | null, retryAfterSeconds: number | null][] = [
  ['nothing is known against a start', {}, null, null],
  ['a secret is missing', {}, SECRET, 30],
  ['a volume is missing', {}, missingVolumeText('v1'), 30],
  ['its folder is missing', {}, "folder '/srv/x' does not exist", 30],
  ['the engine is away', {}, 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock', null],
  ['a secret is missing while a worker works', { workers: [{ held: 1 }] }, SECRET, null],
  ['a secret is missing while a worker starts', { workers: [{ state: 'STARTING' }] }, SECRET, null],
  [
    'a secret is missing while a worker is ill and may recover',
    { workers: [{ problem: { kind: 'silent', forS: 35 } }] },
    SECRET,
    null,
  ],
  ['a secret is missing while the last worker ends', { workers: [{ state: 'DRAINING' }] }, SECRET, 30],
  ['the first worker crashed', { exits: crashes(1) }, null, null],
  ['three workers crashed', { exits: crashes(3) }, null, null],
  ['four workers crashed', { exits: crashes(4) }, null, 8],
  [
    'four workers crashed, and the next one starts',
    { exits: crashes(4), workers: [{ state: 'STARTING' }] },
    null,
    null,
  ],
  ['ten workers crashed', { exits: crashes(10) }, null, 300],
  ['ten workers of the version before crashed', { exits: crashes(10), endpoint: { version: 2 } }, null, null],
  ['the image is not there', { exits: neverStarted('manifest for a/b:1 not found') }, null, 30],
  ['the image may not be read', { exits: neverStarted('pull access denied for a/b') }, null, 30],
  ['the registry is not reached', { exits: neverStarted('dial tcp: lookup x: no such host') }, null, null],
  ['the registry allows no more', { exits: neverStarted('toomanyrequests: slow down') }, null, null],
  ['the disk is full', { exits: neverStarted('no space left on device') }, null, null],
  [
    'its program is not there',
    { exits: crashes(1, 'exited with code 127 because its program x was not found in PATH') },
    null,
    30,
  ],
  ['the machine has no such GPU', { queuedWorkers: [aQueued({ resource: 'gpu_type' })] }, null, 30],
  ['all GPUs are in use', { queuedWorkers: [aQueued({ resource: 'gpu' })] }, null, null],
]

for (const [what, fields, startProblem, retryAfterSeconds] of situations) {
  test(`where ${what}, requests ${retryAfterSeconds === null ? 'wait' : 'are refused with the words of explain'}`, () => {
    const snapshot = asked(fields)
    const outage = openCircuitOf(snapshot, { startProblem, nowMs: NOW })
    assert.equal(outage?.retryAfterSeconds ?? null, retryAfterSeconds)
    const capacity = { freeWorkers: null, bound: 'nothing' }
    const { summary } = explainEndpoint(snapshot, { capacity, startProblem, nowMs: NOW })
    if (outage !== null) assert.equal(outage.cause, summary)
  })
}

test('jobs wait, whatever the matter is, and a cause is bounded in length', () => {
  assert.equal(openCircuitOf(aSnapshot({ queue: { queued: 1 } }), { startProblem: SECRET, nowMs: NOW }), null)
  assert.equal(openCircuitOf(asked({}), { startProblem: 'x'.repeat(10_000), nowMs: NOW })?.cause.length, 500)
})
