import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Around,
  Rates,
  type TopAnswer,
  type TopEndpoint,
  type TopWorker,
  topScreen,
} from '../../src/cli/terminal/top-screen.ts'

const NOW = Date.parse('2026-08-01T12:00:00Z')

function worker(fields: Partial<TopWorker> = {}): TopWorker {
  return {
    id: '8g3n5t6r',
    status: 'RUNNING',
    phase: 'ready',
    phaseSince: new Date(NOW - 65_000).toISOString(),
    pullPercent: null,
    download: null,
    isStale: false,
    gpuCount: 1,
    gpuTypeId: 'NVIDIA L40',
    node: null,
    reason: null,
    jobsHeld: 1,
    jobs: [{ id: '6f1c4f0e-8d7e-4d0b-9d3a-000000000001-u1', startedAtMs: NOW - 12_500 }],
    ...fields,
  }
}

function endpoint(fields: Partial<TopEndpoint> = {}): TopEndpoint {
  const workers = fields.workers ?? [worker()]
  const none = { running: 0, idle: 0, initializing: 0, throttled: 0, unhealthy: 0, ready: 0 }
  return {
    id: '4m7x2k9q',
    name: 'sdxl',
    type: 'QUEUE',
    workersMin: 0,
    workersMax: 3,
    finished: 0,
    explanation: null,
    workers,
    jobs: { inQueue: 4, inProgress: 1, headQueuedAtMs: NOW - 9_000 },
    summary: { ...none, running: workers.length, total: workers.length },
    ...fields,
  }
}

function screen(endpoints: readonly TopEndpoint[], around: Partial<Around> = {}): string[] {
  const answer: TopAnswer = { atMs: NOW, endpoints, more: false }
  const all = { url: 'http://localhost:8080', rates: new Map(), problem: null, columns: 120, rows: 40, ...around }
  return topScreen(answer, all).map(({ text }) => text)
}

test('top shows endpoints with their lines, and workers with phase, GPU, job and how long it is held', () => {
  const rates = new Map([['4m7x2k9q', 1.25]])
  const idle = endpoint({
    id: 'quiet123',
    name: 'quiet',
    workers: [],
    jobs: { inQueue: 0, inProgress: 0, headQueuedAtMs: null },
  })
  assert.deepEqual(screen([endpoint(), idle], { rates }), [
    'runyard top  12:00:00 UTC  http://localhost:8080',
    '1 worker: 1 running;  4 jobs waiting, 1 running, 1.3 jobs/s',
    '',
    '  WORKER    STATUS   PHASE  FOR    GPU         JOB                                      HELD',
    'sdxl (4m7x2k9q)  workers 1 of 0-3  queue 4 (oldest 9s)  running 1  1.3 jobs/s',
    '  8g3n5t6r  RUNNING  ready  1m05s  NVIDIA L40  6f1c4f0e-8d7e-4d0b-9d3a-000000000001-u1  12.5s',
    '1 without work and workers: quiet (quiet123)',
  ])
})

test('of a load-balancing endpoint top shows requests, and no rate of jobs', () => {
  const serving = worker({ jobs: [], jobsHeld: 3 })
  const balanced = endpoint({ type: 'LOAD_BALANCER', workers: [serving], finished: 0 })
  const rates = new Map([['4m7x2k9q', 0]])
  assert.deepEqual(screen([balanced], { rates }).slice(1), [
    '1 worker: 1 running;  4 requests waiting, 1 running',
    '',
    '  WORKER    STATUS   PHASE  FOR    GPU         JOB         HELD',
    'sdxl (4m7x2k9q)  workers 1 of 0-3  queue 4 (oldest 9s)  requests in flight 1',
    '  8g3n5t6r  RUNNING  ready  1m05s  NVIDIA L40  3 requests  -',
  ])
  assert.match(screen([balanced, endpoint({ id: 'b' })], { rates })[1]!, /; {2}8 waiting, 2 running, 0 jobs\/s$/)
})

test('top says why jobs wait and what is wrong with a worker', () => {
  const explanation = {
    cause: 'no_capacity' as const,
    summary: 'there is no room for a worker: no GPU is free',
    action: 'free a GPU',
    sinceMs: NOW,
    evidence: [],
    commands: [],
    notes: [],
    actions: [],
  }
  const throttled = worker({
    status: 'THROTTLED',
    phase: 'queued',
    gpuCount: 0,
    gpuTypeId: null,
    jobs: [],
    jobsHeld: 0,
    reason: 'no GPU is free',
  })
  const lines = screen([endpoint({ explanation, workers: [throttled] })])
  assert.deepEqual(lines.slice(5), [
    '  no_capacity: there is no room for a worker: no GPU is free',
    '  -> free a GPU',
    '  8g3n5t6r  THROTTLED  queued  1m05s  -    -    -',
    '    no GPU is free',
  ])
  const pulling = worker({ status: 'INITIALIZING', phase: 'pulling', pullPercent: 42.4, jobs: [], jobsHeld: 0 })
  assert.match(screen([endpoint({ workers: [pulling] })]).at(-1)!, /INITIALIZING {2}pulling 42%/)
})

test('where workers run on a platform their nodes are shown', () => {
  const placed = worker({ node: 'gpu-1', jobs: [], jobsHeld: 0 })
  const waiting = worker({ node: null, gpuCount: 2, gpuTypeId: null, jobs: [], jobsHeld: 0 })
  const lines = screen([endpoint({ workers: [placed, waiting] })])
  assert.ok(lines.some(text => /GPU +NODE +JOB/.test(text)))
  const [first, second] = lines.slice(-2)
  assert.match(first!, /NVIDIA L40 +gpu-1 +-/)
  assert.match(second!, /2x GPU +- +-/)
})

test('at any size of the terminal, no line is wider and the lines are no more than fit', () => {
  const workers = Array.from({ length: 30 }, (_, index) => worker({ id: `worker${index}`, reason: 'x'.repeat(200) }))
  const all = Array.from({ length: 5 }, (_, index) => endpoint({ id: `e${index}`, name: 'n'.repeat(90), workers }))
  for (let columns = 1; columns <= 140; columns += 3) {
    for (const rows of [1, 2, 5, 24, 400]) {
      const lines = screen(all, { columns, rows, problem: 'no server answers' })
      assert.ok(lines.length <= rows, `${columns}x${rows}: ${lines.length}`)
      for (const line of lines) assert.ok([...line].length <= columns, `${columns}x${rows}: ${line}`)
    }
  }
  assert.match(screen(all, { rows: 24 }).at(-1)!, /^and \d+ lines more$/)
  const narrow = screen([endpoint()], { columns: 40 })
  assert.deepEqual(narrow.slice(3, 4), ['  WORKER    STATUS   PHASE  FOR    HELD'])
})

test('names cannot steer the terminal', () => {
  const lines = screen([endpoint({ name: 'a\u001b[2Jb\nc\u009b' })])
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
  for (const line of lines) assert.doesNotMatch(line, /[\u0000-\u001f\u007f-\u009f]/)
})

test('an unavailable server is reported, with the last known state', () => {
  const lines = screen([endpoint()], { problem: 'no server answers at http://localhost:8080' })
  assert.equal(lines[2], 'trying again: no server answers at http://localhost:8080')
  assert.ok(lines.some(line => line.includes('8g3n5t6r')))
})

test('jobs a second are counted over the last ten seconds, and not across a server that starts to count again', () => {
  const rates = new Rates()
  const at = (second: number, finished: number) =>
    rates.add({ atMs: NOW + second * 1_000, endpoints: [endpoint({ finished })], more: false }).get('4m7x2k9q')
  assert.equal(at(0, 100), undefined)
  assert.equal(at(2, 104), 2)
  assert.equal(at(10, 120), 2)
  assert.equal(at(20, 130), 1)
  assert.equal(at(22, 3), undefined)
  assert.equal(at(21, 3), undefined)
})

test('top shows the memory of each GPU as a bar, with who has it', () => {
  const holder = { endpointId: '4m7x2k9q', endpointName: 'sdxl', asleep: false, usedMb: 9_000 }
  const gpu = { index: 0, name: 'NVIDIA L40', problem: null }
  const answer: TopAnswer = {
    atMs: NOW,
    endpoints: [],
    more: false,
    gpus: [
      {
        ...gpu,
        memory: { totalMb: 46_080, freeMb: 27_648, foreignMb: 4_608 },
        holders: [holder, { ...holder, endpointName: null, asleep: true, usedMb: null }],
      },
      {
        ...gpu,
        index: 3,
        memory: { totalMb: 24_576, freeMb: 4_096, foreignMb: 0 },
        holders: [
          { ...holder, usedMb: 6_144, shareMb: 8_192, beyondMb: 0 },
          { ...holder, endpointName: 'chat', usedMb: 14_336, shareMb: 8_192, beyondMb: 6_144 },
        ],
      },
      { ...gpu, index: 1, memory: null, holders: [] },
      { ...gpu, index: 2, problem: 'it has fallen off the bus', memory: null, holders: [] },
    ],
  }
  const all = { url: 'http://localhost:8080', rates: new Map(), problem: null, columns: 120, rows: 40 }
  assert.deepEqual(
    topScreen(answer, all)
      .map(({ text }) => text)
      .filter(text => text.startsWith('GPU')),
    [
      'GPU 0 NVIDIA L40  [######xx............]  18 GB of 45 GB  sdxl 8.8 GB, 4m7x2k9q (asleep), other programs 4.5 GB',
      'GPU 3 NVIDIA L40  [#################...]  20 GB of 24 GB  sdxl 6 GB (share 8 GB), chat 14 GB, beyond its share of 8 GB',
      'GPU 1 NVIDIA L40  free',
      'GPU 2 NVIDIA L40  it has fallen off the bus',
    ],
  )
})
