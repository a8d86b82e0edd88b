import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CAUSES } from '../../../console/parts/cause.ts'
import { ALERT_TIMES, type Alert, nextAlerts } from '../../../src/core/alerts/alert.ts'
import { alertContent, MAX_NAMED, nextAttemptMs, writeMessage } from '../../../src/core/alerts/alert-message.ts'
import { receiverProblems, shownAddress } from '../../../src/core/alerts/alert-receiver.ts'
import { type Concern, failingShare, findAttention, findConcern, URGENCY } from '../../../src/core/alerts/concern.ts'
import type { EndpointId, OwnerId } from '../../../src/core/ids.ts'
import { WAIT_CAUSES } from '../../../src/core/observing/explanation.ts'
import type { RequestRate } from '../../../src/core/observing/recent-results.ts'

const OWNER = 'o' as OwnerId
const CALM = { perMinute: 0, errorShare: null, recentErrorShare: null, points: [] }

const concern = (changes: Partial<Concern> = {}): Concern => ({
  endpointId: 'e1' as EndpointId,
  name: 'chat',
  cause: 'crash_loop',
  urgency: 'fix',
  text: 'workers crash',
  ...changes,
})

/** The alerts after looks at these times, and what was said at each. */
function looks(...seen: readonly (readonly [atMs: number, concerns: readonly Concern[]])[]) {
  let alerts: readonly Alert[] = []
  return seen.map(([atMs, concerns]) => {
    const next = nextAlerts(OWNER, alerts, concerns, atMs)
    alerts = next.alerts
    return [next.raised.length, next.over.length]
  })
}

test('a concern is raised once it has lasted, once, and is over once it has been gone for a while', () => {
  const { holdMs, overMs } = ALERT_TIMES
  const at = holdMs.fix
  assert.deepEqual(
    looks(
      [0, [concern()]],
      [at - 1, [concern()]],
      [at, [concern()]],
      [at + 1, [concern({ cause: 'out_of_memory' })]],
      [at + 2, []],
      [at + 1 + overMs, []],
      [at + 2 + overMs, []],
    ),
    [
      [0, 0],
      [0, 0],
      [1, 0],
      [0, 0],
      [0, 0],
      [0, 1],
      [0, 0],
    ],
  )
})

test('a concern that goes before it was raised is never mentioned, and one that flickers is one alert', () => {
  const { holdMs } = ALERT_TIMES
  assert.deepEqual(looks([0, [concern()]], [1_000, []], [holdMs.fix, [concern()]]), [
    [0, 0],
    [0, 0],
    [0, 0],
  ])
  const at = holdMs.fix
  assert.deepEqual(looks([0, [concern()]], [at, [concern()]], [at + 1_000, []], [at + 2_000, [concern()]]), [
    ...[
      [0, 0],
      [1, 0],
      [0, 0],
      [0, 0],
    ],
  ])
})

test('a wait is raised later than a problem', () => {
  const wait = concern({ cause: 'no_capacity', urgency: 'wait' })
  const { holdMs } = ALERT_TIMES
  assert.deepEqual(looks([0, [wait]], [holdMs.fix, [wait]], [holdMs.wait, [wait]]), [
    [0, 0],
    [0, 0],
    [1, 0],
  ])
})

test('what the console colors as a problem is what has to be fixed', () => {
  for (const cause of WAIT_CAUSES) assert.equal(URGENCY[cause] === 'fix', CAUSES[cause].tone === 'bad', cause)
})

test('the most urgent thing about an endpoint decides, and a wait that somebody chose is no alert', () => {
  const failing = { perMinute: 1, errorShare: 0.5, recentErrorShare: null, points: [100] }
  const why = (cause: (typeof WAIT_CAUSES)[number]) => ({ cause, summary: 'a' })
  const found = (cause: (typeof WAIT_CAUSES)[number] | null, rate: RequestRate = CALM, isRolloutStopped = false) => {
    const facts = { why: cause === null ? null : why(cause), isRolloutStopped, rate }
    const concern = findConcern({ id: 'e1' as EndpointId, name: 'chat', ...facts })
    return [findAttention(facts), concern?.cause ?? null]
  }
  assert.deepEqual(found(null), [null, null])
  assert.deepEqual(found('running'), [null, null])
  assert.deepEqual(found('crash_loop', failing), ['fix', 'crash_loop'])
  assert.deepEqual(found('max_reached', failing), ['failing', 'failing'])
  assert.deepEqual(found('max_reached', CALM, true), ['fix', 'rollout_stopped'])
  assert.deepEqual(found(null, CALM, true), ['fix', 'rollout_stopped'])
  assert.deepEqual(found('max_reached'), ['wait', 'max_reached'])
  assert.deepEqual(found('paused'), ['chosen', null])
})

test('an endpoint whose requests fail is a concern, unless that is over or were few', () => {
  const share = (errorShare: number, recentErrorShare: number | null, ended: number) =>
    failingShare({ perMinute: 1, errorShare, recentErrorShare, points: [ended] })
  assert.deepEqual([share(0.35, 0.6, 100), share(0.05, 0.9, 200), share(0.35, null, 100)], [0.6, 0.9, 0.35])
  assert.deepEqual([share(0.35, 0.01, 100), share(0.35, 0.6, 10), share(0.05, 0.05, 1_000)], [null, null, null])
  const facts = { id: 'e1' as EndpointId, name: 'chat', why: null, isRolloutStopped: false }
  const rate = { perMinute: 1, errorShare: 0.35, recentErrorShare: 0.35, points: [100] }
  assert.equal(findConcern({ ...facts, rate })?.text, '35 % of its requests fail')
  assert.equal(findConcern({ ...facts, rate: CALM }), null)
})

test('a message names a limited number of endpoints, and says how many there are', () => {
  const alert = nextAlerts(OWNER, [], [concern()], 0).alerts[0]!
  const many = Array.from({ length: 300 }, (_, index) => ({ ...alert, name: `chat ${index}` }))
  const written = writeMessage('webhook', 'm1', alertContent('raised', many, 0, null))
  assert.equal(written.form, 'json')
  const body = JSON.parse((written as { body: string }).body)
  assert.deepEqual([body.id, body.type, body.total, body.endpoints.length], ['m1', 'alert.raised', 300, MAX_NAMED])
})

test('names are no markup in Slack and no headers in a mail', () => {
  const alert = { ...nextAlerts(OWNER, [], [concern()], 0).alerts[0]!, name: 'a\r\nBcc: b@c <!channel>' }
  const content = alertContent('raised', [alert], 0, null)
  const slack = writeMessage('slack', 'm1', content) as { body: string }
  assert.doesNotMatch(slack.body, /<!channel>/)
  const mail = writeMessage('email', 'm1', content) as { subject: string }
  assert.doesNotMatch(mail.subject, /[\r\n]/)
})

test('attempts pause longer and longer, and end', () => {
  const times = Array.from({ length: 7 }, (_, index) => nextAttemptMs(index + 1, 0))
  assert.equal(times.at(-1), null)
  assert.deepEqual(
    times.slice(0, -1),
    times.slice(0, -1).toSorted((a, b) => a! - b!),
  )
})

test('an address that cannot be right is refused, and a URL is never shown whole', () => {
  const of = (kind: 'webhook' | 'email', address: string) => receiverProblems({ name: 'n', kind, address }).length
  assert.deepEqual(
    [of('webhook', 'ftp://a'), of('webhook', 'https://a/b'), of('email', 'a'), of('email', 'a@b.c')],
    [...[1, 0, 1, 0]],
  )
  assert.equal(of('email', 'a@b.c,d@e.f'), 1)
  assert.equal(shownAddress('slack', 'https://u:p@hooks.example/T/secret?x=1'), 'https://hooks.example')
})
