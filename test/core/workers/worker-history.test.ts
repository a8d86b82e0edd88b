import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Worker } from '../../../src/core/workers/worker.ts'
import { workerHistory } from '../../../src/core/workers/worker-history.ts'
import { aWorker, NOW } from '../../support/snapshots.ts'

const born: Partial<Worker> = { createdAtMs: NOW, startedAtMs: null, readyAtMs: null, sdk: null, exitedAtMs: null }
const historyLines = (fields: Partial<Worker>) =>
  workerHistory(aWorker({ ...born, ...fields })).map(({ atMs, line }) => `${atMs - NOW} ${line}`)

test('the story of a worker has each thing that was done with it, at its instant', () => {
  const started = { startedAtMs: NOW + 40, readyAtMs: NOW + 1_250, sdk: 'sdk/1' }
  const stopped = { stopReason: 'idle', stopRequestedAtMs: NOW + 20_000, stoppingAtMs: NOW + 30_000 } as const
  const exit = { code: 0, signal: null, cause: { kind: 'ended' }, lastLines: [] } as const
  assert.deepEqual(historyLines({ ...started, ...stopped, exit, exitedAtMs: NOW + 31_000, jobsFinished: 3 }), [
    '0 created for version 1 of endpoint endpoint, driver mock',
    '40 started after 40 ms',
    '1250 asked for its first job 1250 ms after it was created, with sdk/1',
    '20000 gets no more jobs: it was idle for the idle timeout',
    '30000 asked to end',
    '31000 exited with code 0, after 3 finished jobs',
  ])
})

test('a worker that could not be started says why, and one that was ended because of a problem says which', () => {
  const failure = { kind: 'program_refused', name: 'x', code: 'EACCES' } as const
  const exit = { code: null, signal: null, cause: { kind: 'not_started', failure }, lastLines: [] } as const
  assert.deepEqual(historyLines({ exit, exitedAtMs: NOW + 5 }).slice(1), [
    "5 could not be started: cannot start 'x': permission denied",
  ])
  const problem = { problem: { kind: 'loop_stuck', forS: 115 }, problemAtMs: NOW + 7, stopReason: 'wedged' } as const
  assert.deepEqual(historyLines({ ...problem, stopRequestedAtMs: NOW + 8, stoppingAtMs: NOW + 8 }).slice(1), [
    '7 problem: it pinged for 115 s without asking for a job, so its loop is stuck',
    '8 asked to end: its loop is stuck',
  ])
})

test('the story of a worker of a platform names its node, and who took it away', () => {
  const place = { node: 'gpu-1', gpuType: 'NVIDIA L4', gpuCount: 2 }
  const why = { kind: 'evicted', node: 'gpu-1', said: 'low on memory' } as const
  const exit = { code: null, signal: null, cause: { kind: 'reclaimed', why }, lastLines: [] } as const
  const platform = { place, waits: null, leaves: why }
  const left = { stopReason: 'reclaimed', stopRequestedAtMs: NOW + 50, exit, exitedAtMs: NOW + 90 } as const
  assert.deepEqual(historyLines({ placedAtMs: NOW + 20, platform, ...left }).slice(1), [
    '20 placed on node gpu-1 with 2 x NVIDIA L4',
    '50 gets no more jobs: it was evicted from node gpu-1: low on memory',
    '90 was evicted from node gpu-1: low on memory',
  ])
})

test('lines are only ever added', () => {
  const life: Partial<Worker>[] = [
    {},
    { startedAtMs: NOW + 1 },
    { problem: { kind: 'silent', forS: 35 }, problemAtMs: NOW + 2 },
    { readyAtMs: NOW + 3 },
    { stopReason: 'idle', stopRequestedAtMs: NOW + 4 },
    { stoppingAtMs: NOW + 5 },
    { exitedAtMs: NOW + 5, exit: { code: 1, signal: null, cause: { kind: 'ended' }, lastLines: [] } },
  ]
  let record: Partial<Worker> = {}
  let before: string[] = []
  for (const step of life) {
    record = { ...record, ...step }
    const now = historyLines(record)
    assert.deepEqual(now.slice(0, before.length), before)
    assert.equal(now.length, before.length + 1)
    before = now
  }
})
