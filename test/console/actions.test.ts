import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Action,
  actionBody,
  actionChanges,
  actionHref,
  changesBack,
  findNeeds,
  fittingActions,
  isLook,
  withWorkersMax,
} from '../../console/parts/actions.ts'
import type { EndpointId } from '../../src/core/ids.ts'
import { ACTION_PAGES, type Action as CoreAction } from '../../src/core/observing/action.ts'
import { type ExplainContext, explainEndpoint } from '../../src/core/observing/explain.ts'
import { explanationView } from '../../src/core/observing/explanation.ts'
import { anExit, aSnapshot, NOW } from '../support/snapshots.ts'

const waiting = { queued: 1, headQueuedAtMs: NOW - 3_000 }

/** The actions of a situation, as the console reads them from the server. */
function read(fields: Parameters<typeof aSnapshot>[0], around: Partial<ExplainContext> = {}) {
  const context = { capacity: { freeWorkers: null, bound: 'nothing' }, startFailure: null, nowMs: NOW, ...around }
  const view = explanationView(explainEndpoint(aSnapshot({ queue: waiting, ...fields }), context), 'mine' as EndpointId)
  return view as unknown as { readonly actions: readonly Action[] }
}

function action(of: CoreAction): Action {
  return { ...of, command: null, note: null } as Action
}

test('a paused endpoint gets the worker that the server advises, or as many as a person types', () => {
  const [main] = fittingActions(read({ endpoint: { workersMax: 0 } }), null)
  assert.ok(main?.kind === 'set')
  assert.deepEqual(actionBody(main), { workers: { max: 1 } })
  assert.deepEqual(actionChanges(main, null), [{ name: 'Workers at most', from: '0', to: '1' }])
  const more = withWorkersMax(main, 4)
  assert.deepEqual([more.title, more.kind === 'set' && actionBody(more)], ['Allow 4 workers', { workers: { max: 4 } }])
})

test('a variable is set beside the others, and a scaler with its type', () => {
  const variable = { kind: 'set', title: '', field: 'env.A', from: null, value: '1', isRelease: true } as const
  const set = action(variable)
  assert.ok(set.kind === 'set')
  assert.deepEqual(actionBody(set), { envChanges: { A: '1' } })
  assert.deepEqual(actionChanges(set, null), [{ name: 'A', from: '–', to: '1' }])
  const value = { type: 'QUEUE_DELAY', queueDelay: 2 }
  const scaling = action({ kind: 'set', title: '', field: 'scaling', from: null, value, isRelease: false })
  assert.ok(scaling.kind === 'set')
  assert.deepEqual(actionBody(scaling), { scaling: value })
})

test('every page that the server names has an address', () => {
  const addresses = ACTION_PAGES.map(page => actionHref(action({ kind: 'open', title: '', page, part: null }), 'mine'))
  assert.deepEqual(addresses, [
    '/endpoints/mine/settings',
    '/endpoints/mine/requests',
    '/secrets',
    '/registries',
    '/volumes',
    '/machine',
    '/usage',
    '/batches',
  ])
  const open = (page: (typeof ACTION_PAGES)[number], part: string) =>
    actionHref(action({ kind: 'open', title: '', page, part }), 'mine')
  assert.equal(open('settings', 'env'), '/endpoints/mine/settings#env')
  assert.equal(open('secrets', 'team/key'), '/secrets?new=team%2Fkey')
  assert.equal(open('requests', 'failed'), '/endpoints/mine/requests?status=FAILED,TIMED_OUT')
})

test('the output of a worker is a look, also for a key that may only read', () => {
  const logs = fittingActions(read({ exits: [anExit()] }), null).find(({ kind }) => kind === 'logs')!
  assert.match(actionHref(logs, 'mine') ?? '', /^\/endpoints\/mine\/logs\?worker=\w+$/)
  assert.deepEqual([findNeeds(logs), isLook(logs)], ['read', true])
})

test('commands for the machine of the server are for the operator', () => {
  const serve = fittingActions(read({}, { startFailure: { kind: 'containers_off' } }), null)[0]!
  assert.deepEqual([serve.kind, serve.command, findNeeds(serve)], ['run', 'runyard serve --docker auto', 'operate'])
})

test('an action of a note is shown with the note, unless the cause has the same', () => {
  const idle = anExit({ stopReason: 'idle', placedAtMs: NOW - 90_000, readyAtMs: NOW - 60_000 })
  const explained = read({ endpoint: { workersMax: 0 }, exits: [idle, idle] })
  assert.deepEqual(
    [null, 0].map(note => fittingActions(explained, note).map(({ title }) => title)),
    [['Allow 1 worker'], ['Keep idle workers for 30 s']],
  )
  const doubled = { actions: explained.actions.map(of => ({ ...of, title: 'the same' })) }
  assert.deepEqual([fittingActions(doubled, null).length, fittingActions(doubled, 0).length], [1, 0])
})

test('an action that only a newer server has is not shown', () => {
  const newer = { ...action({ kind: 'restart', title: '' }), kind: 'dance' } as unknown as Action
  const page = { ...action({ kind: 'open', title: '', page: 'usage', part: null }), page: 'moon' } as unknown as Action
  assert.deepEqual([findNeeds(newer), findNeeds(page)], [null, null])
})

test('the changes of a rollback lead from the present values to those of the release', () => {
  const release = (version: number, field: string, old: unknown, present: unknown) => ({
    version,
    restoredVersion: null,
    diff: [{ field, old, new: present }],
  })
  const releases = [
    release(4, 'env.MODEL', 'b', 'c'),
    release(3, 'env.MODEL', 'a', 'b'),
    release(2, 'gpu', null, { count: 1 }),
    release(1, 'image', null, 'x'),
  ]
  const known = { releases }
  assert.deepEqual(changesBack(known, 1), [
    { name: 'env.MODEL', from: 'c', to: 'a' },
    { name: 'gpu', from: '{"count":1}', to: '–' },
  ])
  assert.deepEqual(changesBack(null, 1), [])
})
