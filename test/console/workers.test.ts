import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gpuText, startMs, workerEnd, workerState } from '../../console/pages/endpoint/workers/worker-text.ts'
import { machineMeasures, shownFindings } from '../../console/pages/machine/machine-text.ts'

type Stated = Parameters<typeof workerState>[0]

test('a state says health first, then the phase with its progress, then whether it works', () => {
  assert.deepEqual(state({ phase: 'ready', status: 'RUNNING' }), { tone: 'busy', text: 'running' })
  assert.deepEqual(state({ phase: 'ready' }), { tone: 'good', text: 'idle' })
  assert.deepEqual(state({ phase: 'frozen' }), { tone: 'frozen', text: 'frozen' })
  assert.deepEqual(state({ phase: 'ready', status: 'UNHEALTHY' }), { tone: 'bad', text: 'unhealthy' })
  assert.deepEqual(state({ phase: 'initializing', status: 'UNHEALTHY' }), {
    tone: 'bad',
    text: 'unhealthy, initializes',
  })
  assert.deepEqual(state({ phase: 'pulling', pullPercent: 45.4 }).text, 'pulls its image 45%')
  assert.deepEqual(
    state({ phase: 'downloading', download: { receivedBytes: 1_500_000, totalBytes: 3_000_000 } }).text,
    'downloads its models 1.5 MB of 3.0 MB',
  )
  assert.equal(state({ phase: 'queued' }).tone, 'wait')
  assert.equal(state({ phase: 'exited', status: 'EXITED' }).text, 'ended')
})

test('a worker that was stopped did not fail, whatever its exit code; one that ended by itself did', () => {
  const exit = (code: number | null) => ({ code, signal: null, cause: `exited with code ${code}` })
  assert.deepEqual(workerEnd({ exit: exit(3), stopReason: null }), { tone: 'bad', text: 'exited with code 3' })
  assert.deepEqual(workerEnd({ exit: exit(143), stopReason: 'scaled_down' }), {
    tone: 'off',
    text: 'scaled down; exited with code 143',
  })
  assert.equal(workerEnd({ exit: exit(0), stopReason: null }).tone, 'off')
  assert.equal(workerEnd({ exit: null, stopReason: null }).text, 'ended')
})

test('a start is counted to the millisecond, and not before the worker was ready', () => {
  assert.equal(startMs({ createdAt: '2026-01-01T00:00:00.100Z', readyAt: '2026-01-01T00:00:04.333Z' }), 4_233)
  assert.equal(startMs({ createdAt: '2026-01-01T00:00:00.100Z', readyAt: null }), null)
})

test('GPUs are named, and a worker that has none of its GPUs yet does not run on a CPU', () => {
  const startedAt = '2026-01-01T00:00:00.100Z'
  assert.equal(gpuText({ gpuCount: 0, gpuTypeId: null, node: null, startedAt: null }, 2), 'waits for 2 GPUs')
  assert.equal(gpuText({ gpuCount: 0, gpuTypeId: null, node: null, startedAt: null }, 0), 'CPU')
  assert.equal(gpuText({ gpuCount: 0, gpuTypeId: null, node: null, startedAt }, 0), 'CPU')
  assert.equal(gpuText({ gpuCount: 1, gpuTypeId: 'NVIDIA L4', node: null, startedAt }, 1), 'NVIDIA L4')
  assert.equal(gpuText({ gpuCount: 2, gpuTypeId: 'NVIDIA L4', node: null, startedAt }, 2), '2 × NVIDIA L4')
  assert.equal(gpuText({ gpuCount: 1, gpuTypeId: null, node: 'gpu-1', startedAt }, 1), 'GPU on gpu-1')
})

test('a machine that does not know its memory or disk says so, and has no meter for it', () => {
  const measures = machineMeasures({
    vcpus: { total: 4, used: 1 },
    memoryMb: { total: 2_048, used: null, available: null, assigned: 0 },
    disk: null,
    gpus: [],
    gpuProblem: null,
    suspending: null,
    workers: { total: 3, free: null, bound: 'no limit' },
    waiting: [],
    isolation: { processes: null, problem: null },
    containers: null,
  })
  assert.deepEqual(
    measures.map(({ text, used }) => [text, used]),
    [
      ['1 of 4', 1],
      ['2.1 GB', null],
      ['not known', null],
      ['3', null],
    ],
  )
})

test('the worst findings come first, each with a shape and a word', () => {
  const finding = (check: string, state: 'ok' | 'warn' | 'fail' | 'skip') => ({
    check,
    state,
    message: '',
    action: null,
  })
  const shown = shownFindings([finding('a', 'ok'), finding('b', 'skip'), finding('c', 'fail'), finding('d', 'warn')])
  assert.deepEqual(
    shown.map(({ check, tone, word }) => [check, tone, word]),
    [
      ['c', 'bad', 'fails'],
      ['d', 'wait', 'warning'],
      ['b', 'off', 'not tested'],
      ['a', 'good', 'well'],
    ],
  )
})

function state(members: Partial<Stated>) {
  return workerState({ phase: 'ready', status: 'IDLE', pullPercent: null, download: null, ...members } as Stated)
}
