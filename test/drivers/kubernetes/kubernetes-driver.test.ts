/**
 * The driver over a cluster in memory and in virtual time: starts, ends, takeovers and what goes wrong. The contract
 * of drivers runs on a real one.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { WorkerStartError } from '../../../src/core/workers/start-failure.ts'
import { observedExitText } from '../../../src/core/workers/worker-exit.ts'
import { ANY_PLACE } from '../../../src/core/workers/worker-wish.ts'
import { KubernetesError } from '../../../src/drivers/kubernetes/api.ts'
import { KubernetesDriver } from '../../../src/drivers/kubernetes/kubernetes.ts'
import type { ImagePins, StartWatch, WorkerSpec } from '../../../src/ports/driver.ts'
import { createNotifier } from '../../../src/system/coordination/notifier.ts'
import { PlayedKubernetes } from '../../support/played-kubernetes.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'
import { PLAIN_WORKER, POD_SETTINGS } from '../../support/worker-spec.ts'

const W = 'w1' as WorkerId
const POD = 'runyard-w1'

function specOf(changes: Partial<WorkerSpec> = {}): WorkerSpec {
  return {
    ...PLAIN_WORKER,
    workerId: W,
    endpointId: 'e1' as EndpointId,
    image: 'app:1',
    args: '',
    env: { SECRET: 'x' },
    ...changes,
  }
}

interface World {
  readonly api: PlayedKubernetes
  readonly clock: VirtualClock
  readonly driver: KubernetesDriver
  /** Another server of the same installation. */
  another(): KubernetesDriver
  /** Starts a worker, and returns the result of the start. */
  begin(changes?: Partial<WorkerSpec>, watch?: StartWatch): Promise<{ outcome: string | Error | null }>
  /** A worker that runs. */
  running(changes?: Partial<WorkerSpec>): Promise<string>
  /** Observation of the worker, in words. */
  seen(driver?: KubernetesDriver): Promise<string>
}

/** @param outputMs time in which the rest of an output is copied */
async function world(api = new PlayedKubernetes(), outputMs = 0): Promise<World> {
  const clock = new VirtualClock()
  const notifier = createNotifier()
  const finish = () => new Promise<void>(done => (outputMs === 0 ? done() : clock.after(outputMs, done)))
  const outputs = {
    copy: () => ({ finish, resume: () => {}, close: async () => {} }),
    forget: () => {},
  }
  const make = () =>
    new KubernetesDriver({
      api,
      clock,
      notifier,
      outputs,
      namespace: 'n',
      installation: 'inst1',
      settings: POD_SETTINGS,
      maxWorkers: 10,
      reachesPods: true,
      note: () => {},
    })
  const driver = make()
  await clock.settle()
  const begin: World['begin'] = async (changes, watch) => {
    const started: { outcome: string | Error | null } = { outcome: null }
    driver.start(specOf(changes), watch).then(
      handle => {
        started.outcome = handle
      },
      error => {
        started.outcome = error
      },
    )
    await clock.settle()
    return started
  }
  return {
    api,
    clock,
    driver,
    begin,
    another: make,
    async running(changes) {
      const started = await begin(changes)
      api.run(POD)
      await clock.settle()
      return typeof started.outcome === 'string' ? started.outcome : assert.fail(String(started.outcome))
    },
    async seen(of = driver) {
      const observed = await of.observe(W)
      switch (observed.state) {
        case 'unplaced':
          return `unplaced: ${observed.reason.kind} (${observed.reason.said})`
        case 'leaving':
          return `leaving: ${observed.why.kind}`
        case 'exited':
          return `exited: ${observedExitText(observed.exit)}`
        default:
          return `${observed.state} on ${observed.place?.node ?? 'an unknown node'}`
      }
    },
  }
}

function failureOf({ outcome }: { outcome: string | Error | null }) {
  return outcome instanceof WorkerStartError ? outcome.failure : assert.fail(String(outcome))
}

test('a pod goes from asked for to placed, running and ended, and nothing of it is left', async () => {
  const { api, clock, driver, begin, seen } = await world()
  const started = await begin()
  assert.match(await seen(), /^unplaced: no_room \(the cluster has not looked/)
  api.change(POD, () => ({
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes: full' }] },
  }))
  await clock.settle()
  assert.equal(await seen(), 'unplaced: no_room (0/3 nodes: full)')
  api.status(POD, { waiting: { reason: 'ContainerCreating' } }, { phase: 'Pending' })
  await clock.settle()
  assert.deepEqual([await seen(), started.outcome], ['placed on node-1', null])
  api.run(POD)
  await clock.settle()
  assert.equal(await seen(), 'running on node-1')
  assert.deepEqual(JSON.parse(String(started.outcome)).pod, POD)
  assert.deepEqual(
    api
      .all('secrets')
      .map(({ metadata }) => (metadata as { ownerReferences?: { name: string }[] }).ownerReferences?.[0]?.name),
    [POD],
    'its environment ends with it',
  )
  await assert.rejects(driver.release(W), { code: 'conflict' })
  await driver.terminate(W)
  await driver.terminate(W)
  assert.equal(api.calls.filter(call => call === 'DELETE pods').length, 1)
  assert.equal(await seen(), 'running on node-1')
  api.end(POD, { exitCode: 0, reason: 'Completed' })
  await clock.settle()
  assert.equal(await seen(), 'exited: exited with code 0')
  await driver.release(W)
  await clock.settle()
  assert.deepEqual(api.all('pods'), [])
  await driver.close()
})

test('the progress of a download is reported, with the exact image', async () => {
  const { api, clock, begin } = await world()
  const told: string[] = []
  const exact = `docker.io/library/app@sha256:${'b'.repeat(64)}`
  const pins: ImagePins = {
    current: async () => null,
    pin: async image => {
      told.push(image)
      return image
    },
  }
  await begin({}, { pins, pulling: percent => told.push(`pulling ${percent}`), pulled: () => told.push('pulled') })
  const event = (reason: string) => ({
    type: 'ADDED',
    object: {
      metadata: { name: 'e' },
      reason,
      involvedObject: { kind: 'Pod', name: POD, uid: api.find('pods', POD)?.metadata.uid },
    },
  })
  api.tell('events', event('Scheduled'))
  api.tell('events', event('Pulling'))
  api.tell('events', event('Pulled'))
  await clock.settle()
  api.status(POD, {}, { containerStatuses: [{ name: 'worker', imageID: exact, state: { running: {} } }] })
  await clock.settle()
  assert.deepEqual(told, ['pulling null', 'pulled', exact])
})

test('a volume that its node cannot mount is waited for, and said', async () => {
  const { api, clock, begin, seen } = await world()
  await begin()
  api.status(POD, { waiting: { reason: 'ContainerCreating' } }, { phase: 'Pending' })
  const tell = (reason: string, uid = api.find('pods', POD)?.metadata.uid) =>
    api.tell('events', {
      type: 'MODIFIED',
      object: { metadata: { name: 'e' }, reason, message: 'no such host', involvedObject: { name: POD, uid } },
    })
  tell('FailedMount', 'another')
  await clock.settle()
  assert.equal(await seen(), 'placed on node-1')
  tell('FailedMount')
  await clock.settle()
  assert.equal(await seen(), 'unplaced: volume_pending (no such host)')
  tell('Pulled')
  await clock.settle()
  assert.equal(await seen(), 'placed on node-1')
})

test('a quota that is used up is waited for, and said', async () => {
  const { api, clock, begin, seen } = await world()
  const refusal = new KubernetesError('pods "x" is forbidden: exceeded quota: q, used: pods=1', 403)
  api.failure = ({ method, path }) => (method === 'POST' && path.endsWith('/pods') ? refusal : null)
  const started = await begin()
  assert.match(await seen(), /^unplaced: platform_quota \(.*exceeded quota: q/)
  await clock.advance(60_000)
  assert.equal(started.outcome, null)
  api.failure = () => null
  await clock.advance(20_000)
  api.run(POD)
  await clock.settle()
  assert.equal(await seen(), 'running on node-1')
})

test('an API that is away or asks for patience is waited for, and said', async () => {
  for (const error of [
    new KubernetesError('nobody listens', null),
    new KubernetesError('too many', 429, { retryAfterMs: 5_000 }),
    new KubernetesError('internal', 500),
  ]) {
    const { api, clock, begin, seen } = await world()
    api.failure = ({ method }) => (method === 'POST' ? error : null)
    await begin()
    assert.match(await seen(), /^unplaced: platform_away/)
    await clock.advance(4_000)
    api.failure = () => null
    await clock.advance(20_000)
    api.run(POD)
    await clock.settle()
    assert.equal(await seen(), 'running on node-1')
  }
})

test('no worker is started while the API is away, and its endpoint says why', async () => {
  const { api, clock, driver, begin } = await world()
  api.failure = () => new KubernetesError('nobody listens at its address', null)
  api.endWatches(new KubernetesError('reset', null))
  await clock.advance(1_000)
  assert.deepEqual(await driver.check('app:1', ''), { kind: 'cluster_away', said: 'nobody listens at its address' })
  assert.equal(failureOf(await begin()).kind, 'cluster_away')
  api.failure = () => null
  await clock.advance(20_000)
  assert.equal(await driver.check('app:1', ''), null)
})

test('an answer that was lost leads to one pod', async () => {
  const { api, clock, begin, seen } = await world()
  let lost = false
  api.failure = call => {
    if (lost || call.method !== 'POST' || !call.path.endsWith('/pods')) return null
    lost = true
    void api.put('pods', call.body as never)
    return new KubernetesError('no answer within 4 s', null)
  }
  await begin()
  await clock.advance(2_000)
  api.run(POD)
  await clock.settle()
  assert.deepEqual([await seen(), api.all('pods').length], ['running on node-1', 1])
})

test('what the cluster refuses for good fails the start, and nothing is left of it', async () => {
  const { api, clock, begin, seen } = await world()
  api.failure = ({ method, path }) =>
    method === 'POST' && path.endsWith('/pods') ? new KubernetesError('violates PodSecurity "restricted"', 403) : null
  const started = await begin()
  assert.deepEqual(failureOf(started), { kind: 'cluster_refused', said: 'violates PodSecurity "restricted"' })
  await clock.settle()
  assert.deepEqual(api.all('secrets'), [])
  assert.match(await seen(), /^exited/)
})

test('the objects of others are left alone', async () => {
  const { api, clock, driver, begin } = await world()
  const foreign = {
    metadata: { name: POD, labels: { 'runyard.dev/worker': 'w1', 'runyard.dev/installation': 'other' } },
  }
  api.put('pods', foreign)
  assert.deepEqual(failureOf(await begin()), { kind: 'cluster_name_taken', name: POD })
  assert.equal(await driver.adopt(W, null), false)
  await driver.kill(W)
  api.put('secrets', { metadata: { name: 'runyard-w2' } })
  const other = await begin({ workerId: 'w2' as WorkerId })
  assert.deepEqual(failureOf(other), { kind: 'cluster_name_taken', name: 'runyard-w2' })
  await clock.advance(3_600_000)
  await driver.tidy(new Set())
  assert.deepEqual([api.all('pods').length, api.all('secrets').length], [1, 1])
})

test('an image that cannot be pulled ends a start: at once if no retry can help, else after a minute', async () => {
  const missing = await world()
  const started = await missing.begin()
  missing.api.status(POD, { waiting: { reason: 'ErrImagePull', message: 'app:1: not found' } }, { phase: 'Pending' })
  await missing.clock.settle()
  assert.equal(failureOf(started).kind, 'pull_failed')
  await missing.clock.settle()
  assert.equal(missing.api.find('pods', POD)?.metadata.deletionGracePeriodSeconds, 1)

  const away = await world()
  const waiting = await away.begin()
  const fail = (reason: string, message: string) =>
    away.api.status(POD, { waiting: { reason, message } }, { phase: 'Pending' })
  fail('ErrImagePull', 'dial tcp: i/o timeout')
  await away.clock.advance(30_000)
  fail('ImagePullBackOff', 'Back-off pulling image "app:1"')
  await away.clock.advance(25_000)
  assert.equal(waiting.outcome, null)
  await away.clock.advance(10_000)
  const failure = failureOf(waiting)
  assert.deepEqual([failure.kind, failure.kind === 'pull_failed' && failure.why], ['pull_failed', 'unreachable'])
})

test('a start that is stopped leaves no pod, whether the cluster had made it or not', async () => {
  const { api, clock, driver, begin, seen } = await world()
  const placed = await begin()
  api.status(POD, { waiting: { reason: 'ContainerCreating' } }, { phase: 'Pending' })
  await driver.terminate(W)
  await clock.settle()
  assert.equal(failureOf(placed).kind, 'stopped')
  assert.equal(api.find('pods', POD)?.metadata.deletionGracePeriodSeconds, 1)
  assert.match(await seen(), /^exited/)
  const other = { workerId: 'w2' as WorkerId }
  api.failure = ({ method }) => (method === 'POST' ? new KubernetesError('internal', 500) : null)
  const waiting = await begin(other)
  await driver.kill(other.workerId)
  await clock.settle()
  assert.equal(failureOf(waiting).kind, 'stopped')
  assert.equal(api.find('pods', 'runyard-w2'), undefined)
})

test('a killed pod ends with the word of its node, and is asked for where that was lost', async () => {
  const { api, clock, driver, running, seen } = await world()
  await running()
  api.failure = ({ method }) => (method === 'DELETE' ? new KubernetesError('nobody listens', null) : null)
  await driver.kill(W)
  assert.equal(await seen(), 'running on node-1')
  api.failure = () => null
  await clock.advance(6_000)
  assert.equal(api.find('pods', POD)?.metadata.deletionGracePeriodSeconds, 1)
  api.isMute = true
  api.remove('pods', POD)
  await clock.advance(30_000)
  assert.equal(await seen(), 'exited: was killed by SIGKILL')
})

test('a pod that its platform takes away leaves, and its end is not its own', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  const condition = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'evicting' }
  api.status(POD, { running: {} }, { conditions: [condition] })
  await clock.settle()
  assert.equal(await seen(), 'leaving: node_drained')
  api.remove('pods', POD)
  await clock.settle()
  assert.equal(await seen(), 'exited: had to leave node node-1, which is drained or shut down: evicting')
})

test('a pod that somebody deletes by hand is known as such, also before it ran', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  api.remove('pods', POD)
  await clock.settle()
  assert.equal(await seen(), 'exited: was deleted by another client of the cluster')

  const other = await world()
  const started = await other.begin()
  other.api.remove('pods', POD)
  await other.clock.settle()
  assert.match(String(started.outcome), /was deleted by another client/)
  assert.equal(await other.seen(), 'exited: was deleted by another client of the cluster')
})

test('events that are repeated, old or of another pod of that name change nothing', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  const now = api.find('pods', POD)
  const old = {
    ...now,
    metadata: { ...now?.metadata, resourceVersion: '1' },
    status: { phase: 'Failed', reason: 'Evicted' },
  }
  const other = { ...old, metadata: { ...now?.metadata, uid: 'another', resourceVersion: '999999' } }
  for (const type of ['MODIFIED', 'MODIFIED', 'ADDED']) api.tell('pods', { type, object: old })
  for (const type of ['MODIFIED', 'DELETED']) api.tell('pods', { type, object: other })
  await clock.settle()
  assert.equal(await seen(), 'running on node-1')
})

test('a pod that a list lacks is asked for before it counts as gone', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  const list = api.failure
  // A list from a cache that is behind: it does not have the pod yet.
  const kept = api.find('pods', POD)
  api.isMute = true
  api.remove('pods', POD)
  let listed = false
  api.failure = call => {
    if (call.method === 'GET' && call.path.endsWith('/pods') && call.query?.watch === undefined) listed = true
    else if (listed && call.path.endsWith(POD) && kept !== undefined) api.put('pods', kept)
    return null
  }
  api.endWatches(new KubernetesError('gone', 410))
  await clock.advance(2_000)
  assert.ok(listed)
  assert.equal(await seen(), 'running on node-1')
  api.failure = list
  api.remove('pods', POD)
  api.endWatches(new KubernetesError('gone', 410))
  await clock.advance(20_000)
  assert.match(await seen(), /^exited: was deleted by another client/)
})

test('while the API is away a pod runs on, and its end is known afterwards', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  api.failure = () => new KubernetesError('nobody listens', null)
  api.endWatches(new KubernetesError('reset', null))
  await clock.advance(3_600_000)
  assert.equal(await seen(), 'running on node-1')
  api.end(POD, { exitCode: 137, reason: 'OOMKilled' })
  api.failure = () => null
  await clock.advance(20_000)
  assert.match(await seen(), /^exited: was killed because it used more/)
})

test('the next server adopts by name, with and without a handle, and knows how the worker ended', async () => {
  const { api, clock, driver, running, another, seen } = await world()
  const handle = await running({ serves: { port: 80, healthPort: 81 } })
  const address = await driver.address(W)
  assert.deepEqual(address, { traffic: { host: '10.1.0.7', port: 80 }, health: { host: '10.1.0.7', port: 81 } })
  await driver.close()
  for (const known of [handle, null]) {
    const next = another()
    assert.match(await seen(next), /^exited/)
    assert.equal(await next.adopt(W, known), true)
    assert.equal(await seen(next), 'running on node-1')
    assert.deepEqual(await next.address(W), address)
    await next.close()
  }
  const last = another()
  assert.equal(await last.adopt(W, 'no handle'), false)
  assert.equal(await last.adopt('w9' as WorkerId, null), false)
  await last.adopt(W, handle)
  api.end(POD, { exitCode: 3 })
  await clock.settle()
  assert.equal(await seen(last), 'exited: exited with code 3')
  assert.equal(await another().adopt(W, handle), false)
})

test('a pod that ended before a server starts is not adopted, and can be released at once', async () => {
  const { api, clock, driver, running, another } = await world(new PlayedKubernetes(), 2_000)
  const handle = await running()
  await driver.close()
  api.end(POD, { exitCode: 3 })
  const next = another()
  const released = next.adopt(W, handle).then(async isAlive => {
    assert.equal(isAlive, false)
    await next.release(W)
  })
  await Promise.all([released, clock.advance(3_000)])
})

test('a pod that cannot be seen when a server starts counts as running until the cluster says something else', async () => {
  const { api, clock, running, another, seen } = await world()
  const handle = await running()
  api.failure = () => new KubernetesError('nobody listens', null)
  const next = another()
  assert.equal(await next.adopt(W, handle), true)
  assert.equal(await seen(next), 'running on an unknown node')
  api.isMute = true
  api.remove('pods', POD)
  api.failure = () => null
  await clock.advance(30_000)
  assert.equal(await seen(next), 'exited: was deleted by another client of the cluster', 'its pod would have stayed')
})

test('a server that becomes active asks for no pod that the list had, and waits for no cluster that does not answer', async () => {
  const { api, clock, running, another, seen } = await world()
  const handle = await running()
  const next = another()
  await clock.settle()
  const before = api.calls.length
  assert.equal(await next.adopt(W, handle), true)
  assert.deepEqual(api.calls.slice(before), [])
  assert.equal(await seen(next), 'running on node-1')

  api.failure = () => new KubernetesError('nobody listens', null)
  const third = another()
  await clock.settle()
  const tried = api.calls.length
  assert.equal(await third.adopt(W, handle), true)
  assert.equal(api.calls.length, tried)
})

test('a server that becomes active does not wait long for a cluster of which nothing comes', async () => {
  const { api, clock, running, another, seen } = await world()
  const handle = await running()
  api.call = () => new Promise<never>(() => {})
  const next = another()
  const adopted = next.adopt(W, handle)
  await clock.advance(2_000)
  assert.equal(await adopted, true)
  assert.equal(await seen(next), 'running on an unknown node')
})

test('what became of a pod while no server ran is known to the next one at once', async () => {
  const { api, running, another, seen } = await world()
  const handle = await running()
  api.remove('pods', POD)
  const next = another()
  assert.equal(await next.adopt(W, handle), false)
  assert.equal(await seen(next), 'exited: was deleted by another client of the cluster')
})

test('the pod of a start that was given up is removed once the cluster takes that', async () => {
  const { api, clock, driver, begin } = await world()
  await begin()
  api.failure = call => (call.method === 'DELETE' ? new KubernetesError('too many', 429) : null)
  await driver.kill(W)
  await clock.advance(5_000)
  assert.equal(api.all('pods').length, 1)
  api.failure = () => null
  await clock.advance(30_000)
  assert.deepEqual(api.all('pods'), [])
})

test('a start that a server was killed in goes on under the next one, and may fail there', async () => {
  const { api, clock, driver, begin, another, seen } = await world()
  const started = await begin()
  await driver.close()
  await clock.settle()
  assert.deepEqual([started.outcome, api.all('pods').length], [null, 1], 'a server that stops deletes nothing')
  const next = another()
  await clock.settle()
  assert.equal(await next.adopt(W, null), true)
  assert.match(await seen(next), /^unplaced/)
  api.status(POD, { waiting: { reason: 'ErrImagePull', message: 'app:1: not found' } }, { phase: 'Pending' })
  await clock.settle()
  assert.match(await seen(next), /^exited: image 'app:1' cannot be downloaded/)
  await next.release(W)
  await clock.settle()
  assert.equal(api.find('pods', POD)?.metadata.deletionTimestamp !== undefined, true)
})

test('a node that is silent makes its workers leave, and after a limit they are lost and removed without it', async () => {
  const { api, clock, driver, running, seen } = await world()
  await running()
  api.status(POD, { running: {} }, { conditions: [{ type: 'Ready', status: 'False' }] })
  await clock.advance(299_000)
  assert.equal(await seen(), 'leaving: node_lost')
  assert.equal(api.calls.includes('DELETE pods'), false)
  await clock.advance(70_000)
  assert.match(await seen(), /^exited: ran on .*lost/)
  await driver.release(W)
  await clock.settle()
  assert.deepEqual(api.all('pods'), [], 'nobody would confirm its end')
})

test('a node that is silent for a moment keeps its workers at work, as when the API was away and no node could say anything', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  const states = new Set<string>()
  for (let round = 0; round < 3; round += 1) {
    api.status(POD, { running: {} }, { conditions: [{ type: 'Ready', status: 'False' }] })
    for (let s = 0; s < 10; s += 1) {
      states.add(await seen())
      await clock.advance(1_000)
    }
    api.run(POD)
    await clock.advance(20_000)
    states.add(await seen())
  }
  assert.deepEqual([...states], ['running on node-1'])
})

test('a node that answers again before the limit keeps its workers', async () => {
  const { api, clock, running, seen } = await world()
  await running()
  for (let round = 0; round < 3; round += 1) {
    api.status(POD, { running: {} }, { conditions: [{ type: 'Ready', status: 'False' }] })
    await clock.advance(200_000)
    api.run(POD)
    await clock.advance(10_000)
    assert.equal(await seen(), 'running on node-1')
  }
})

test('a pod that was stopped on a silent node counts as lost after its time and the limit', async () => {
  const { clock, driver, running, seen } = await world()
  await running()
  await driver.kill(W)
  await clock.advance(290_000)
  assert.equal(await seen(), 'running on node-1')
  await clock.advance(30_000)
  assert.match(await seen(), /^exited/)
})

test('objects that no worker needs are removed, unless they are young or of others', async () => {
  const { api, clock, driver, running } = await world()
  await running()
  const labels = (worker: string) => ({
    'app.kubernetes.io/managed-by': 'runyard',
    'runyard.dev/installation': 'inst1',
    'runyard.dev/worker': worker,
  })
  api.put('pods', { metadata: { name: 'runyard-old', labels: labels('old') } })
  api.put('secrets', { metadata: { name: 'runyard-old', labels: labels('old') } })
  api.put('pods', { metadata: { name: 'runyard-kept', labels: labels('kept') } })
  const names = () => [...api.all('pods'), ...api.all('secrets')].map(({ metadata }) => metadata.name)
  const all = names()
  await driver.tidy(new Set(['kept' as WorkerId]))
  assert.deepEqual(names(), all, 'another server may have made them since')
  await clock.advance(11 * 60_000)
  await driver.tidy(new Set(['kept' as WorkerId]))
  assert.deepEqual(
    names(),
    all.filter(name => name !== 'runyard-old'),
  )
  assert.equal(
    api.asked
      .filter(({ path, method }) => method === 'GET' && path.endsWith('/secrets'))
      .every(call => call.metadataOnly === 'list'),
    true,
  )
})

test('which of several types of GPUs a worker got is read from its node, where that is allowed', async () => {
  const wish = { ...ANY_PLACE, gpuTypes: ['NVIDIA L4', 'NVIDIA A40'], gpuCount: 2 }
  const place = async (prepare: (api: PlayedKubernetes) => void) => {
    const { api, clock, driver, running } = await world()
    prepare(api)
    await running({ wish })
    await driver.observe(W)
    await clock.settle()
    const observed = await driver.observe(W)
    return observed.state === 'running' ? observed.place : null
  }
  const labels = { 'nvidia.com/gpu.product': 'NVIDIA-A40' }
  assert.deepEqual(await place(api => void api.put('nodes', { metadata: { name: 'node-1', labels } })), {
    node: 'node-1',
    gpuType: 'NVIDIA A40',
    gpuCount: 2,
  })
  const forbidden = await place(api => {
    api.failure = ({ path }) => (path.includes('/nodes/') ? new KubernetesError('forbidden', 403) : null)
  })
  assert.deepEqual(forbidden, { node: 'node-1', gpuType: 'NVIDIA L4', gpuCount: 2 })
})

test('a worker for requests needs a server that reaches pods', async () => {
  const { api, clock } = await world()
  const driver = new KubernetesDriver({
    api,
    clock,
    notifier: createNotifier(),
    outputs: { copy: () => assert.fail(), forget: () => {} },
    namespace: 'n',
    installation: 'inst1',
    settings: POD_SETTINGS,
    maxWorkers: 1,
    reachesPods: false,
    note: () => {},
  })
  assert.deepEqual(await driver.check('app:1', '', 'LOAD_BALANCER'), { kind: 'cluster_elsewhere' })
  assert.equal(await driver.check('app:1', '', 'QUEUE'), null)
})
