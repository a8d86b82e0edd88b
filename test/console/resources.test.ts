import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Endpoint, Template } from '../../console/client/api-types.d.ts'
import { findUsers, secretReference } from '../../console/client/users.ts'
import { limitText, quotaName, readLimits } from '../../console/pages/accounts/quota.ts'
import { batchShares, batchState, isStuck, waitingRequests } from '../../console/pages/batches/batch-state.ts'
import { CALL, readLines, withLines } from '../../console/pages/batches/json-lines.ts'
import { localTime, readInstant } from '../../console/pages/keys/expiry.ts'
import { changedLimits, describeLimits, draftFromLimits } from '../../console/pages/keys/limits.ts'
import { describeScope, draftFromScope, scopeFromDraft } from '../../console/pages/keys/scope.ts'
import { deliveryState, lastResult } from '../../console/pages/webhooks/deliveries.ts'

test('what uses a secret is found by its whole name, in any text of a variable', () => {
  const endpoints = [
    endpoint('a', { TOKEN: secretReference('hf') }),
    endpoint('b', { URL: 'https://u:{{RUNPOD_SECRET_hf}}@host' }),
    endpoint('c', { TOKEN: secretReference('hf-2') }),
  ]
  const templates = [
    { id: 't', name: 't', env: { X: `a ${secretReference('hf')}` }, registry: 'r' },
  ] as unknown as Template[]
  assert.deepEqual(
    findUsers({ secret: 'hf' }, endpoints, templates).map(({ id }) => id),
    ['a', 'b', 't'],
  )
  assert.deepEqual(findUsers({ registry: 'r' }, endpoints, templates), [{ kind: 'template', id: 't', name: 't' }])
  assert.deepEqual(
    findUsers({ volume: 'v' }, endpoints, templates).map(({ id }) => id),
    ['a', 'b', 'c'],
  )
})

test('JSON lines keep each request as it was written', () => {
  const lines = readLines('\ufeff{"input": {"n": 12345678901234567890}}\r\n\r\n  {"input":{}}\n')
  assert.deepEqual(lines.problems, [])
  assert.equal(lines.count, 2)
  assert.equal(lines.array, '[{"input": {"n": 12345678901234567890}},{"input":{}}]')
})

test('what is wrong with requests is said by line, and what is too much is counted', () => {
  const { problems } = readLines('{"input":{}}\n{"prompt":"x"}\n\n{"input":[]}\n{"input"')
  assert.equal(problems.length, 3)
  assert.match(problems[0]!, /^line 2: must be a JSON object with an "input" object$/)
  assert.match(problems[1]!, /^line 4: must be/)
  assert.match(problems[2]!, /^line 5: is not JSON/)
  const many = readLines('1\n'.repeat(30)).problems
  assert.equal(many.length, 21)
  assert.equal(many.at(-1), 'and 10 more like these')
  const tooMany = readLines('{"input":{}}\n'.repeat(CALL.requests + 1))
  assert.match(readLines('x'.repeat(CALL.bytes + 1)).problems[0]!, /more than 10 MiB/)
  assert.deepEqual(tooMany.problems, ['there are 5001 requests; a batch may have 5000'])
})

test('a JSON array of requests is taken as well', () => {
  assert.deepEqual(readLines(' [{"input":{}}, {"input":{"a":1}}]').problems, [])
  assert.deepEqual(readLines('[{"input":{}}, {}]').problems, [
    'request 2: must be a JSON object with an "input" object',
  ])
  assert.match(readLines('[{"input":{}}').problems[0]!, /^the array is not JSON/)
  assert.equal(readLines('').count, 0)
})

test('problems that the server finds name lines, not indexes', () => {
  const lines = readLines('\n{"input":{}}\n\n{"input":{}}')
  assert.equal(
    withLines('requests[1]: "policy" must be an object; [0]: "webhook" must be a URL', lines),
    'line 4: "policy" must be an object; line 2: "webhook" must be a URL',
  )
})

test('a batch is done when its requests have ended, whatever its state is called', () => {
  assert.equal(state('DRAFT', 5, 0, 0, 0), 'draft')
  assert.equal(state('FINALIZED', 5, 0, 0, 0), 'waits')
  assert.equal(state('FINALIZED', 5, 1, 2, 0), 'runs')
  assert.equal(state('FINALIZED', 5, 0, 5, 0), 'done')
  assert.equal(state('FINALIZED', 5, 0, 4, 1), 'some failed')
  assert.equal(state('FAILED', 5, 0, 0, 5), 'all failed')
  assert.equal(state('CANCELLED', 5, 1, 1, 3), 'cancelling')
  assert.equal(state('CANCELLED', 5, 0, 1, 4), 'cancelled')
  assert.deepEqual(batchShares(counts('FINALIZED', 0, 0, 0, 0)), [])
  assert.deepEqual(
    batchShares(counts('FINALIZED', 4, 1, 2, 1)).map(({ share }) => share),
    [0.5, 0.25, 0.25],
  )
})

test('the limits of a key are read as words, and a change names those that differ', () => {
  const none = { requestsPerMinute: null, tokensPerMinute: null, tokensPerDay: null }
  assert.equal(describeLimits(none), 'none')
  const limits = { ...none, requestsPerMinute: 60, tokensPerDay: 2_000_000 }
  assert.equal(describeLimits(limits), '60 requests a minute, 2\u202f000\u202f000 tokens a day')
  const before = draftFromLimits(limits)
  assert.deepEqual(changedLimits(before, before), {})
  const draft = { ...before, requestsPerMinute: ' ', tokensPerMinute: '5' }
  assert.deepEqual(changedLimits(draft, before), { requestsPerMinute: null, tokensPerMinute: 5 })
})

test('the rights of a key are read as words, and edited without loss', () => {
  const endpointName = (id: string) => (id === 'a' ? 'images' : id)
  assert.equal(describeScope({ type: 'all' }, endpointName), 'everything')
  assert.equal(describeScope({ type: 'read-only' }, endpointName), 'reads everything')
  const scraper = { type: 'restricted', management: 'none', jobs: 'none', metrics: 'read' } as const
  assert.equal(describeScope(scraper, endpointName), 'reads the metrics of the server')
  assert.deepEqual(
    scopeFromDraft(draftFromScope(scraper), () => true),
    scraper,
  )
  assert.equal(describeScope({ type: 'restricted', management: 'none', jobs: 'none' }, endpointName), 'nothing')
  const files = { type: 'restricted', management: 'none', jobs: 'none', files: { v: 'read', w: 'write' } } as const
  assert.equal(describeScope(files, endpointName), 'files of 2 volumes')
  assert.deepEqual(
    scopeFromDraft(draftFromScope(files), () => true),
    files,
  )
  const models = { type: 'restricted', management: 'none', jobs: 'none', models: ['gpt', 'b', 'c', 'd'] } as const
  const ofModels = { ...models, models: [...models.models] }
  assert.equal(describeScope(ofModels, endpointName), 'models gpt, b, c and 1 more')
  assert.deepEqual(
    scopeFromDraft(draftFromScope(ofModels), () => true),
    ofModels,
  )
  const typed = { ...draftFromScope(ofModels), models: ' gpt\n\nqwen/lora-1, gpt \n' }
  assert.deepEqual(
    scopeFromDraft(typed, () => true),
    { ...ofModels, models: ['gpt', 'qwen/lora-1'] },
  )
  assert.equal(
    describeScope({ type: 'restricted', management: 'write', jobs: 'read' }, endpointName),
    'manages; reads jobs of all endpoints',
  )
  const each = { a: 'write', b: 'read', c: 'write', d: 'write', e: 'write', f: 'none' } as const
  const scope = { type: 'restricted', management: 'none', jobs: each } as const
  assert.equal(describeScope(scope, endpointName), 'jobs of images, c, d and 1 more; reads jobs of b')
  assert.deepEqual(
    scopeFromDraft(draftFromScope({ type: 'all' }), () => true),
    { type: 'all' },
  )
  const { f: _, ...kept } = each
  assert.deepEqual(
    scopeFromDraft(draftFromScope(scope), () => true),
    { ...scope, jobs: kept },
  )
  assert.deepEqual(
    scopeFromDraft(draftFromScope(scope), id => id === 'b'),
    { ...scope, jobs: { b: 'read' } },
  )
})

test('a key ends never, or at a local time to the minute', () => {
  assert.equal(readInstant(''), null)
  assert.equal(localTime(null), '')
  assert.equal(readInstant(localTime('2027-01-02T03:04:56.000Z')), '2027-01-02T03:04:00.000Z')
  assert.equal(readInstant('soon'), 'soon')
})

test('unchanged limits stay default, unlimited or a number', () => {
  const limits = { objects: 5, gpus: null, workers: 0 }
  const texts = Object.fromEntries(Object.entries(limits).map(([name, limit]) => [`limits.${name}`, limitText(limit)]))
  assert.deepEqual(readLimits({ ...texts, 'limits.queuedMb': limitText(undefined), name: 'x' }), limits)
  assert.deepEqual(readLimits({ 'limits.workers': 'many' }), { workers: 'many' })
  assert.equal(quotaName('storedMb'), 'MB of stored inputs and results')
  assert.equal(quotaName('registries'), 'Registries')
})

test('a delivery says how far it is, and what the receiver answered last', () => {
  const refused = { at: '', tookMs: 1, error: 'connect ECONNREFUSED' }
  assert.equal(deliveryState({ state: 'PENDING', tries: [] }).word, 'waits')
  assert.equal(deliveryState({ state: 'PENDING', tries: [refused] }).word, 'tried 1 of 3')
  assert.equal(lastResult({ tries: [] }), '')
  assert.equal(lastResult({ tries: [refused] }), 'connect ECONNREFUSED')
  assert.equal(
    lastResult({ tries: [{ at: '', tookMs: 1, status: 301 }] }),
    'the receiver answered 301; only 200 to 299 count',
  )
})

function endpoint(id: string, env: Readonly<Record<string, string>>): Endpoint {
  return { id, name: id, env, registry: null, networkVolumes: ['v'] } as unknown as Endpoint
}

function counts(
  status: string,
  requestTotal: number,
  requestInProgress: number,
  requestCompleted: number,
  requestFailed: number,
) {
  return { status, requestTotal, requestInProgress, requestCompleted, requestFailed }
}

function state(...given: Parameters<typeof counts>): string {
  return batchState(counts(...given)).word
}

test('a batch is stuck while requests wait and none runs', () => {
  const counts = { status: 'PENDING', requestTotal: 5, requestInProgress: 0, requestCompleted: 1, requestFailed: 1 }
  const batch = counts as Parameters<typeof isStuck>[0]
  assert.deepEqual([waitingRequests(batch), isStuck(batch)], [3, true])
  assert.equal(isStuck({ ...batch, requestInProgress: 1 }), false)
  for (const status of ['DRAFT', 'CANCELLED'] as const) assert.equal(isStuck({ ...batch, status }), false)
})
