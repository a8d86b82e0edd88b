import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findOpenCircuit } from '../../../src/core/balancing/circuit-breaker.ts'
import { explainEndpoint } from '../../../src/core/observing/explain.ts'
import type { EndpointSnapshot } from '../../../src/core/scaling/scale.ts'
import type { StartFailure } from '../../../src/core/workers/start-failure.ts'
import type { ExitCause } from '../../../src/core/workers/worker-exit.ts'
import { anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

type Fields = Parameters<typeof aSnapshot>[0]

/** An endpoint for which one request waits. */
function asked(fields: Fields): EndpointSnapshot {
  const requests = { maxConcurrency: null, resumed: [], named: [], peak: null, healthProblems: new Map() }
  const endpoint = { type: 'LOAD_BALANCER', scaler: { type: 'REQUEST_COUNT', requestCount: 1 } } as const
  return { ...aSnapshot({ queue: { queued: 1 }, ...fields, endpoint: { ...endpoint, ...fields.endpoint } }), requests }
}

const crashes = (count: number, cause: ExitCause = { kind: 'ended' }) =>
  Array.from({ length: count }, () => anExit({}, { cause }))
const refused = (said: string): StartFailure => ({ kind: 'engine_refused', said })
const neverStarted = (failure: StartFailure) => [
  anExit({ startedAtMs: null }, { code: null, cause: { kind: 'not_started', failure } }),
]
const SECRET: StartFailure = { kind: 'secrets_missing', names: ['HF'] }

const NO_PROGRAM: StartFailure = {
  kind: 'init_failed',
  program: 'x',
  problem: 'missing',
  said: 'No such file or directory',
  architecture: 'x86_64',
}

/** Situations without a worker, and the Retry-After of their refusals in seconds; null if requests wait. */
const situations: [
  what: string,
  fields: Fields,
  startFailure: StartFailure | null,
  retryAfterSeconds: number | null,
][] = [
  ['nothing is known against a start', {}, null, null],
  ['a secret is missing', {}, SECRET, 30],
  ['a volume is missing', {}, { kind: 'volume_missing', volume: 'v1' }, 30],
  ['its folder is missing', {}, { kind: 'folder_missing', folder: '/srv/x' }, 30],
  ['the engine is away', {}, refused('Cannot connect to the Docker daemon at unix:///var/run/docker.sock'), null],
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
  ['the image is not there', { exits: neverStarted(refused('manifest for a/b:1 not found')) }, null, 30],
  ['the image may not be read', { exits: neverStarted(refused('pull access denied for a/b')) }, null, 30],
  ['the registry is not reached', { exits: neverStarted(refused('dial tcp: lookup x: no such host')) }, null, null],
  ['the registry allows no more', { exits: neverStarted(refused('toomanyrequests: slow down')) }, null, null],
  ['the disk is full', { exits: neverStarted(refused('no space left on device')) }, null, null],
  ['its program is not there', { exits: crashes(1, { kind: 'program_not_started', failure: NO_PROGRAM }) }, null, 30],
  ['the machine has no such GPU', { queuedWorkers: [aQueued({ resource: 'gpu_type' })] }, null, 30],
  ['all GPUs are in use', { queuedWorkers: [aQueued({ resource: 'gpu' })] }, null, null],
]

for (const [what, fields, startFailure, retryAfterSeconds] of situations) {
  test(`where ${what}, requests ${retryAfterSeconds === null ? 'wait' : 'are refused with the words of explain'}`, () => {
    const snapshot = asked(fields)
    const outage = findOpenCircuit(snapshot, { startFailure, nowMs: NOW })
    assert.equal(outage?.retryAfterSeconds ?? null, retryAfterSeconds)
    const capacity = { freeWorkers: null, bound: 'nothing' }
    const { summary } = explainEndpoint(snapshot, { capacity, startFailure, nowMs: NOW })
    if (outage !== null) assert.equal(outage.cause, summary)
  })
}

test('jobs wait, whatever the matter is, and a cause is bounded in length', () => {
  assert.equal(findOpenCircuit(aSnapshot({ queue: { queued: 1 } }), { startFailure: SECRET, nowMs: NOW }), null)
  assert.equal(
    findOpenCircuit(asked({}), { startFailure: { kind: 'other', problem: 'x'.repeat(10_000) }, nowMs: NOW })?.cause
      .length,
    500,
  )
})
