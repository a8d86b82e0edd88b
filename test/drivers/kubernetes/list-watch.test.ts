/** That all objects of a kind are known in the end, whatever the API forgets, repeats or refuses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubernetesError, type KubernetesObject } from '../../../src/drivers/kubernetes/api.ts'
import { ListWatch, readLines } from '../../../src/drivers/kubernetes/list-watch.ts'
import { type AnyObject, PlayedKubernetes } from '../../support/played-kubernetes.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const labels = { app: 'a' }
const pod = (name: string): AnyObject => ({ metadata: { name, labels } })

async function watching(api = new PlayedKubernetes(), from: 'all' | 'new' = 'all') {
  const clock = new VirtualClock()
  const known = new Set<string>()
  const away: (string | null)[] = []
  let lists = 0
  const watch = new ListWatch<KubernetesObject>({
    api,
    clock,
    from,
    path: '/api/v1/namespaces/n/pods',
    query: { labelSelector: 'app=a' },
    onPage: ({ items, isFirst, isLast }) => {
      if (isFirst) known.clear()
      if (isLast) lists += 1
      for (const { metadata } of items) known.add(metadata.name)
    },
    onEvent: (type, { metadata }) => {
      if (type === 'DELETED') known.delete(metadata.name)
      else known.add(metadata.name)
    },
    onAway: problem => away.push(problem),
  })
  await clock.settle()
  return { api, clock, known, away, watch, lists: () => lists }
}

test('existing objects are listed in pages, and changes are reported', async () => {
  const api = new PlayedKubernetes()
  api.pageSize = 2
  for (const name of ['a', 'b', 'c', 'd', 'e']) api.put('pods', pod(name))
  api.put('pods', { metadata: { name: 'other', labels: { app: 'b' } } })
  const { known, clock, watch, away } = await watching(api)
  assert.deepEqual([...known], ['a', 'b', 'c', 'd', 'e'])
  api.put('pods', pod('f'))
  api.remove('pods', 'a')
  await clock.settle()
  assert.deepEqual([...known], ['b', 'c', 'd', 'e', 'f'])
  assert.deepEqual(away, [null])
  watch.close()
})

test('a watch asks for bookmarks and goes on behind the last of them', async () => {
  const { api, clock, watch } = await watching()
  api.tell('pods', { type: 'BOOKMARK', object: { metadata: { resourceVersion: '777' } } })
  await clock.settle()
  api.endWatches()
  await clock.settle()
  const last = api.asked.at(-1)
  assert.equal(last?.query?.allowWatchBookmarks, 'true')
  assert.equal(last?.query?.resourceVersion, '777')
  watch.close()
})

test('a version that is gone leads to a list, whether a call or an event says so', async () => {
  const { api, clock, known, watch, lists, away } = await watching()
  api.isMute = true
  api.put('pods', pod('missed'))
  api.isMute = false
  api.tell('pods', { type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old resource version' } })
  await clock.advance(1_000)
  assert.deepEqual([[...known], lists()], [['missed'], 2])
  api.endWatches(new KubernetesError('gone', 410))
  await clock.advance(2_000)
  assert.equal(lists(), 3)
  assert.deepEqual(away, [null], 'the API was there all the time')
  watch.close()
})

test('a connection on which nothing comes is given up, since bookmarks would come', async () => {
  const { api, clock, watch, lists } = await watching()
  const watches = () => api.calls.filter(call => call === 'GET pods watch').length
  await clock.advance(60_000)
  api.tell('pods', { type: 'BOOKMARK', object: { metadata: { resourceVersion: '5' } } })
  await clock.advance(60_000)
  assert.equal(watches(), 1)
  await clock.advance(31_000)
  assert.deepEqual([watches(), lists()], [2, 1])
  watch.close()
})

test('events that were lost are made up for by a list after some minutes', async () => {
  const { api, clock, known, watch } = await watching()
  api.isMute = true
  api.put('pods', pod('missed'))
  for (let minute = 0; minute < 6; minute += 1) {
    api.tell('pods', { type: 'BOOKMARK', object: { metadata: { resourceVersion: '200' } } })
    await clock.advance(60_000)
    // The API ends a watch after the time that it was asked for.
    if (minute === 4) api.endWatches()
  }
  assert.deepEqual([...known], ['missed'])
  watch.close()
})

test('while the API is away it is asked less and less often, and not before it wants', async () => {
  const { api, clock, watch, away } = await watching()
  api.failure = () => new KubernetesError('nobody listens', null)
  api.endWatches(new KubernetesError('reset', null))
  const before = api.calls.length
  await clock.advance(60_000)
  const tries = api.calls.length - before
  assert.ok(tries >= 6 && tries <= 12, String(tries))
  assert.deepEqual(away.slice(0, 2), [null, 'reset'])
  api.failure = () => new KubernetesError('too many', 429, { retryAfterMs: 30_000 })
  await clock.advance(10_000)
  const asked = api.calls.length
  await clock.advance(25_000)
  assert.ok(api.calls.length - asked <= 1)
  api.failure = () => null
  await clock.advance(40_000)
  assert.equal(away.at(-1), null)
  watch.close()
})

test('an API that ends each watch at once is not asked in a circle', async () => {
  const { api, clock, watch } = await watching()
  const before = api.calls.length
  for (let second = 0; second < 10; second += 1) {
    api.endWatches()
    await clock.advance(1_000)
  }
  assert.ok(api.calls.length - before <= 20, String(api.calls.length - before))
  watch.close()
})

test('a watch of new objects leaves out existing ones', async () => {
  const api = new PlayedKubernetes()
  api.put('pods', pod('old'))
  const { known, clock, watch } = await watching(api, 'new')
  api.put('pods', pod('new'))
  await clock.settle()
  assert.deepEqual([...known], ['new'])
  watch.close()
})

test('lines are put together from any pieces', async () => {
  async function* pieces() {
    for (const text of ['{"a"', ':1}\n\n{"', 'b":"ä', '"}\n{"c":3}\n', 'rest']) yield Buffer.from(text)
  }
  const lines: string[] = []
  for await (const line of readLines(pieces())) lines.push(line)
  assert.deepEqual(lines, ['{"a":1}', '{"b":"ä"}', '{"c":3}'])
})
