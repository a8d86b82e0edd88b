/** Decisions of the first tab of an endpoint and of the first page. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointOverview } from '../../console/client/api-types.d.ts'
import { comparisonRows, differences, type Figures } from '../../console/pages/endpoint/overview/comparison.ts'
import {
  bodyFromDraft,
  draftFromEndpoint,
  listChanges,
  queryFromDraft,
} from '../../console/pages/endpoint/overview/draft.ts'
import { failureSentence, sumResults } from '../../console/pages/endpoint/overview/recent-failures.ts'
import { listAddresses, listSnippets } from '../../console/pages/endpoint/overview/snippets.ts'
import { byAttention, failingSentence, shownState } from '../../console/pages/endpoints/endpoint-states.ts'
import { findAttention, mostActive, soonEnding, sumTotals } from '../../console/pages/home/attention.ts'

const QUEUE_URL = 'https://runyard.example'
const at = `${QUEUE_URL}/v2/mine`
const QUEUE: Parameters<typeof listSnippets>[0] = {
  id: 'mine',
  name: 'my model',
  type: 'QUEUE',
  requestUrls: {
    run: `${at}/run`,
    runSync: `${at}/runsync`,
    status: `${at}/status/{job_id}`,
    stream: `${at}/stream/{job_id}`,
    cancel: `${at}/cancel/{job_id}`,
    retry: `${at}/retry/{job_id}`,
    purgeQueue: `${at}/purge-queue`,
    health: `${at}/health`,
  },
}
const sentence = (id: string, of = QUEUE) => listSnippets(of, QUEUE_URL).find(snippet => snippet.id === id)!.text

test('the programs call the endpoint under the address that the server gives', () => {
  assert.match(sentence('curl'), /^curl -sS https:\/\/runyard\.example\/v2\/mine\/runsync /)
  const body = /-d '(.*)'$/m.exec(sentence('curl'))![1]!
  assert.deepEqual(JSON.parse(body), { input: { name: 'World' } })
  assert.ok(sentence('python').includes('runpod.endpoint_url_base = "https://runyard.example/v2"'))
  assert.ok(sentence('python').includes('runpod.Endpoint("mine")'))
  assert.ok(sentence('javascript').includes("{ baseUrl: 'https://runyard.example/v2' }"))
  assert.ok(sentence('openai').includes('base_url="https://runyard.example/openai/v1"'))
  assert.ok(sentence('openai').includes('model="my model"'), 'the endpoint is the model')
})

test('no program has a key in it', () => {
  for (const { text } of listSnippets(QUEUE, QUEUE_URL)) assert.match(text, /RUNYARD_API_KEY/)
})

test('a server behind an endpoint is called at its own address, and not by clients of jobs', () => {
  const base = 'http://127.0.0.1:8080/lb/mine'
  const balanced = { ...QUEUE, type: 'LOAD_BALANCER', requestUrls: { base, health: `${base}/ping` } } as const
  const health = `${QUEUE_URL}/v2/mine/health`
  const browserUrl = 'http://mine.lb.localhost:8080'
  assert.deepEqual(
    listSnippets(balanced, QUEUE_URL).map(({ id }) => id),
    ['curl', 'python', 'javascript', 'openai'],
  )
  assert.equal(sentence('openai', balanced), sentence('openai'))
  assert.match(sentence('curl', balanced), /^curl -sS http:\/\/127\.0\.0\.1:8080\/lb\/mine\/ -H/)
  assert.deepEqual(
    listAddresses(balanced, QUEUE_URL).map(({ url }) => url),
    [base, `${QUEUE_URL}/openai/v1`, health, `${base}/ping`],
  )
  assert.deepEqual(
    listAddresses({ ...balanced, browserUrl }, QUEUE_URL).map(({ url }) => url),
    [base, browserUrl, `${QUEUE_URL}/openai/v1`, health, `${base}/ping`],
  )
  assert.ok(listAddresses(QUEUE, QUEUE_URL).some(({ url }) => url === `${at}/openai/v1`))
})

const SETTINGS: Parameters<typeof draftFromEndpoint>[0] = {
  workers: { min: 0, max: 3, idleTimeout: 10 },
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  flashboot: 'OFF',
}

test('what is not changed in the form is neither asked about nor saved', () => {
  const today = draftFromEndpoint(SETTINGS)
  assert.deepEqual([queryFromDraft(today, today), bodyFromDraft(today, today), listChanges(today, today)], [{}, {}, []])
  const draft = { ...today, workersMax: '8', idleTimeout: '60' }
  assert.deepEqual(queryFromDraft(today, draft), { workersMax: '8', idleTimeout: '60' })
  assert.deepEqual(bodyFromDraft(today, draft), { workers: { max: 8, idleTimeout: 60 } })
  assert.deepEqual(listChanges(today, draft)[0], { name: 'Workers at most', from: '3', to: '8' })
})

test('another scaler is asked about and saved with its value, also where the number is the same', () => {
  const today = draftFromEndpoint(SETTINGS)
  const draft = { ...today, scalerType: 'REQUEST_COUNT' as const }
  assert.deepEqual(queryFromDraft(today, draft), { scalerType: 'REQUEST_COUNT', scalerValue: '4' })
  assert.deepEqual(bodyFromDraft(today, draft), { scaling: { type: 'REQUEST_COUNT', requestCount: 4 } })
})

const FIGURES: Figures = {
  workersMin: 0,
  workersMax: 3,
  idleTimeout: 10,
  scalerType: 'QUEUE_DELAY',
  scalerValue: 4,
  flashBootType: 'OFF',
  startAware: true,
  workerHours: { starting: 1, idle: 2, running: 4, frozen: 0 },
  cost: 10,
  waitMs: { p50: 5_700, p95: 10_800, p99: 23_600 },
  coldStarts: 100,
  thaws: 0,
  mostWorkers: 3,
}

test('the differences of settings are said in words, and small ones are not', () => {
  const other = { ...FIGURES, cost: 15, waitMs: { p50: 0, p95: 10_900, p99: 8_000 }, coldStarts: 60 }
  assert.deepEqual(differences(FIGURES, other), [
    'Workers would have cost $5.000 (50%) more.',
    'Half of the jobs would have waited at most 0 ms instead of 5.7 s.',
    'There would have been 40 cold starts fewer.',
  ])
  assert.deepEqual(differences(FIGURES, { ...FIGURES, cost: 10.1 }), [
    'These settings would have made no difference that matters.',
  ])
  const free = { ...FIGURES, cost: 0 }
  assert.deepEqual(differences(free, { ...free, workerHours: { ...free.workerHours, idle: 9 } }), [
    'Workers would have run for 14.0 h instead of 7.00 h.',
  ])
  const first = { ...FIGURES, cost: 0, waitMs: null, coldStarts: 0 }
  assert.deepEqual(differences(first, { ...first, cost: 1 }), ['Workers would have cost $1.000 more.'])
})

test('the figures beside each other leave out the hours of frozen workers', () => {
  const rows = comparisonRows(FIGURES, { ...FIGURES, workerHours: { ...FIGURES.workerHours, frozen: 90 } })
  const hours = rows.find(({ name }) => name === 'Worker hours')!
  assert.deepEqual([hours.today, hours.other], ['7.00 h', '7.00 h'])
})

function row(id: string, fields: Partial<EndpointOverview> = {}): EndpointOverview {
  return {
    id,
    name: id,
    type: 'QUEUE',
    image: null,
    version: 1,
    createdAt: '2026-11-26T00:00:00.000Z',
    workersMin: 0,
    workersMax: 3,
    flashboot: 'OFF',
    state: 'READY',
    workers: { running: 0, idle: 0, initializing: 0, throttled: 0, unhealthy: 0, frozen: 0, total: 1 },
    jobs: { inQueue: 1, inProgress: 2, oldestQueuedAt: null },
    rate: { perMinute: 1.5, errorShare: null, recentErrorShare: null, failingShare: null, points: [] },
    why: null,
    attention: null,
    rollout: null,
    ...fields,
  }
}

const why = (
  attention: EndpointOverview['attention'],
  cause: NonNullable<EndpointOverview['why']>['cause'],
  sinceMs: number | null,
) => ({ attention, why: { cause, summary: '', sinceMs } })

const NOW = 1_000_000

test('problems to fix come before waits, the longest wait first; work under way and short waits need no one', () => {
  const rows = [
    row('fine'),
    row('starts', why(null, 'worker_starting', 1)),
    row('young', why('wait', 'max_reached', 9)),
    row('old', why('chosen', 'paused', 2)),
    row('crashes', why('fix', 'crash_loop', 5)),
    row('unknown since', why('fix', 'secret_missing', null)),
    row('mended'),
    row('fails', { attention: 'failing' }),
    row('just now', why('wait', 'max_reached', NOW - 3_000)),
  ]
  const shown = findAttention(rows, NOW, id => id === 'mended').map(({ id }) => id)
  assert.deepEqual(shown, ['crashes', 'unknown since', 'fails', 'old', 'young', 'mended'])
})

test('a list begins with what needs attention, also where its reason is not known', () => {
  const rows = [
    row('ready'),
    row('waits', { attention: 'wait' }),
    row('paused', { attention: 'chosen', state: 'PAUSED' }),
    row('unexplained', { state: 'PROBLEM' }),
    row('fails', { attention: 'failing' }),
    row('zero', { state: 'SCALED_TO_ZERO' }),
    row('crashes', { attention: 'fix', state: 'PROBLEM' }),
  ]
  assert.deepEqual(
    rows.sort(byAttention).map(({ id }) => id),
    ['unexplained', 'crashes', 'fails', 'waits', 'paused', 'ready', 'zero'],
  )
})

test('requests that fail are named in any state', () => {
  const failing = (failingShare: number | null) =>
    row('a', { rate: { perMinute: 1, errorShare: 0.35, recentErrorShare: 0.6, failingShare, points: [100] } })
  assert.deepEqual(
    [failing(0.6), failing(null)].map(one => shownState(one).title),
    ['60% fail', 'Ready'],
  )
  assert.equal(
    failingSentence(failing(0.6)),
    '35% of 100 requests failed in the last hour, and 60% in the last ten minutes.',
  )
})

test('failures of the last hour are a sentence, without cancelled requests, and nothing without failures', () => {
  const requests = { completed: 12, failed: 4, timedOut: 2, cancelled: 80, expired: 1 }
  const none = { completed: 3, failed: 0, timedOut: 0, cancelled: 1, expired: 0 }
  const results = sumResults([{ requests }, { requests: none }])
  assert.deepEqual(results, { ended: 22, failed: 7 })
  assert.equal(failureSentence(results, 'QUEUE'), '7 of 22 jobs failed in the last hour (32%).')
  assert.equal(
    failureSentence({ ended: 1, failed: 1 }, 'LOAD_BALANCER'),
    '1 of 1 request failed in the last hour (100%).',
  )
  assert.equal(failureSentence(sumResults([{ requests: none }]), 'QUEUE'), null)
  assert.equal(failureSentence(sumResults([]), 'QUEUE'), null)
})

test('a canary is named with its share', () => {
  const rolling = { state: 'ROLLING_OUT' } as const
  assert.equal(shownState(row('a', { ...rolling, rollout: { state: 'CANARY', canary: 20 } })).title, 'Canary 20%')
  assert.equal(
    shownState(row('a', { ...rolling, rollout: { state: 'IN_PROGRESS', canary: null } })).title,
    'Rolling out',
  )
})

test('a key is named in the last week of its life, the first to end first', () => {
  const nowMs = Date.parse('2026-11-26T00:00:00Z')
  const key = (id: string, expiresAt: string | null, disabled = false) => ({ id, name: id, expiresAt, disabled })
  const keys = [
    key('later', '2026-12-02T23:00:00Z'),
    key('sooner', '2026-11-26T01:00:00Z'),
    key('far', '2026-12-04T00:00:00Z'),
    key('over', '2026-11-25T00:00:00Z'),
    key('off', '2026-11-27T00:00:00Z', true),
    key('never', null),
  ]
  assert.deepEqual(
    soonEnding(keys, nowMs).map(({ id }) => id),
    ['sooner', 'later'],
  )
})

test('the most active endpoints come first, eight at most, and their sums count all of them', () => {
  const rows = Array.from({ length: 12 }, (_, n) =>
    row(`e${n}`, {
      rate: { perMinute: 1.5, errorShare: null, recentErrorShare: null, failingShare: null, points: [n] },
    }),
  )
  assert.deepEqual(
    mostActive(rows).map(({ id }) => id),
    ['e11', 'e10', 'e9', 'e8', 'e7', 'e6', 'e5', 'e4'],
  )
  assert.deepEqual(sumTotals(rows), { inQueue: 12, inProgress: 24, workers: 12, perMinute: 18 })
})
