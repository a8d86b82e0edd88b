import assert from 'node:assert/strict'
import { test } from 'node:test'
import { initTimeoutMs } from '../../../src/core/endpoints/serving.ts'
import {
  afterPing,
  afterTake,
  INIT_MS,
  isForgotten,
  isSilent,
  isWedged,
  type JobActivity,
  type PingOnJob,
  SILENT_MS,
  showsBlocking,
  WEDGED_MS,
  type WorkerActivity,
} from '../../../src/core/workers/worker-liveness.ts'
import { omissionMeaning, pingsWhileItWorks, reportsHeldJobs } from '../../../src/core/workers/worker-sdk.ts'

const python = (version: string) => `RunPod-Python-SDK/${version} (Linux; x86_64) Language/Python 3.11.2`
const OURS = 'Runyard-Worker-SDK/0.1.0 (linux; x64) Language/Node 26.10.0'

test('what may be concluded from the words of a worker depends on its SDK', () => {
  const rows: [sdk: string | null, tells: boolean, ownProcess: boolean, omission: string][] = [
    [python('1.6.2'), false, false, 'lost'],
    [python('1.7.4'), false, false, 'lost_when_idle'],
    [python('1.7.10'), false, false, 'lost_when_idle'],
    [python('1.7.11'), false, true, 'lost_when_idle'],
    [python('1.7.12'), false, true, 'lost_when_alone'],
    [python('1.10.0'), false, true, 'lost_when_alone'],
    [python('1.10.1'), true, true, 'lost'],
    [python('1.12.0'), true, true, 'lost'],
    [python('2.0.0'), true, true, 'lost'],
    [OURS, true, false, 'lost'],
    [python('unknown'), false, false, 'lost_when_idle'],
    ['curl/8.0', false, false, 'lost_when_idle'],
    [null, false, false, 'lost_when_idle'],
  ]
  for (const [sdk, ...expected] of rows) {
    assert.deepEqual([reportsHeldJobs(sdk), pingsWhileItWorks(sdk), omissionMeaning(sdk)], expected, String(sdk))
  }
})

const DELIVERED: JobActivity = { deliveredAtMs: 1_000, askedSince: false, omissions: 0 }
const omits: PingOnJob = { lists: false, omission: 'lost', listed: 1, alone: false }
const lists: PingOnJob = { ...omits, lists: true }
const pings = (job: JobActivity, ...all: PingOnJob[]) => all.reduce(afterPing, job)

test('a job that two pings in a row leave out after the worker asked for more is forgotten, and not before', () => {
  const asked = afterTake(DELIVERED, 2_500)
  assert.equal(isForgotten(pings(asked, omits)), false)
  assert.equal(isForgotten(pings(asked, omits, lists, omits)), false)
  assert.equal(isForgotten(pings(asked, omits, omits)), true)
  assert.equal(isForgotten(pings(DELIVERED, omits, omits, omits)), false)
  assert.equal(isForgotten(pings(afterTake(pings(DELIVERED, omits, omits), 30_000), omits)), false)
})

test('a request for more that may have been sent before the job came says nothing', () => {
  assert.equal(afterTake(DELIVERED, 1_900).askedSince, false)
  const onItsWay = { ...DELIVERED, deliveredAtMs: null }
  assert.equal(afterTake(onItsWay, 60_000).askedSince, false)
  assert.deepEqual(pings(onItsWay, omits, omits), onItsWay)
})

test('where waiting jobs are not listed, only an empty list shows that a job is forgotten', () => {
  const asked = afterTake(DELIVERED, 2_500)
  const busy: PingOnJob = { ...omits, omission: 'lost_when_idle' }
  assert.equal(isForgotten(pings(asked, busy, busy, busy)), false)
  const idle = { ...busy, listed: 0 }
  assert.equal(isForgotten(pings(asked, idle, idle)), true)
  assert.equal(isForgotten(pings(asked, idle, busy, idle)), false)
})

test('where workers share their list, only the one worker of an endpoint can be shown to have forgotten', () => {
  const asked = afterTake(DELIVERED, 2_500)
  const shared: PingOnJob = { ...omits, omission: 'lost_when_alone', listed: 0 }
  assert.equal(isForgotten(pings(asked, shared, shared, shared)), false)
  assert.equal(showsBlocking(pings(DELIVERED, shared, shared, shared)), false)
  const alone = { ...shared, alone: true }
  assert.equal(isForgotten(pings(asked, alone, alone)), true)
})

test('a job that is left out while the worker does not ask for more shows a worker that does one thing at a time', () => {
  assert.equal(showsBlocking(pings(DELIVERED, omits)), false)
  assert.equal(showsBlocking(pings(DELIVERED, omits, omits)), true)
  assert.equal(showsBlocking(pings(afterTake(DELIVERED, 2_500), omits, omits)), false)
  const busy: PingOnJob = { ...omits, omission: 'lost_when_idle' }
  assert.equal(showsBlocking(pings(DELIVERED, busy, busy)), true)
})

const NOW = 1_000_000

function seen(fields: Partial<WorkerActivity> = {}): WorkerActivity {
  const pinging = { pingedAtMs: NOW - 5_000, requestedAtMs: NOW - 5_000, pingsSinceWork: 12, listed: 0, openTakes: 0 }
  return { sinceMs: NOW - 500_000, workedAtMs: NOW - WEDGED_MS - 1, ...pinging, ...fields }
}

test('a worker that pings, lists nothing and asks for nothing for longer than a held poll and 90 s is stuck', () => {
  const newer = { sdk: python('1.12.0') }
  assert.equal(isWedged(seen(), newer, true, NOW), true)
  const not: [what: string, Partial<WorkerActivity>][] = [
    ['too early', { workedAtMs: NOW - WEDGED_MS }],
    ['a poll of it is held', { openTakes: 1 }],
    ['it works on something', { listed: 1 }],
    ['hardly a ping of it came: the server was not there', { pingsSinceWork: 5 }],
    ['its pings have ended too', { pingedAtMs: NOW - SILENT_MS }],
    ['it was not looked at for long enough', { workedAtMs: null, sinceMs: NOW - WEDGED_MS }],
  ]
  for (const [what, fields] of not) assert.equal(isWedged(seen(fields), newer, true, NOW), false, what)
  assert.equal(isWedged(seen({ workedAtMs: null }), newer, true, NOW), true, 'one that never asked for a job')
})

test('a worker that may list the jobs of another in its folder does not count as stuck while it holds jobs', () => {
  for (const version of ['1.7.12', '1.7.13', '1.8.1', '1.9.1', '1.10.0']) {
    assert.equal(isWedged(seen(), { sdk: python(version) }, true, NOW), false, version)
    assert.equal(isWedged(seen(), { sdk: python(version) }, false, NOW), true, version)
  }
  for (const sdk of [python('1.7.11'), python('1.10.1'), OURS, null]) {
    assert.equal(isWedged(seen(), { sdk }, true, NOW), true, String(sdk))
  }
})

test('a worker that has pinged and is silent for more than three pings is suspected, unless its handler may be the reason', () => {
  const quiet = { pingedAtMs: NOW - SILENT_MS, requestedAtMs: NOW - SILENT_MS }
  const newer = { sdk: python('1.12.0') }
  assert.equal(isSilent(seen(quiet), newer, true, NOW), true)
  assert.equal(isSilent(seen({ ...quiet, requestedAtMs: NOW - SILENT_MS + 1 }), newer, true, NOW), false)
  assert.equal(isSilent(seen({ ...quiet, pingedAtMs: null }), newer, true, NOW), false, 'it never pinged')
  assert.equal(
    isSilent(seen({ ...quiet, sinceMs: NOW - 1_000 }), newer, true, NOW),
    false,
    'we have just begun to look',
  )
  for (const sdk of [python('1.7.10'), python('1.6.2'), OURS, null]) {
    assert.equal(isSilent(seen(quiet), { sdk }, true, NOW), false, String(sdk))
    assert.equal(isSilent(seen(quiet), { sdk }, false, NOW), true, String(sdk))
  }
})

test('the time to start is seven minutes unless the environment says a sensible number of seconds', () => {
  assert.equal(initTimeoutMs({}, INIT_MS), INIT_MS)
  assert.equal(initTimeoutMs({ RUNPOD_INIT_TIMEOUT: '800' }, INIT_MS), 800_000)
  for (const text of ['', '0', '-1', '1.5', 'long', '86401', '99999999999']) {
    assert.equal(initTimeoutMs({ RUNPOD_INIT_TIMEOUT: text }, INIT_MS), INIT_MS, text)
  }
})
