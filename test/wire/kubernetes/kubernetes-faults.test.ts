/**
 * Faults around workers in pods on a real cluster: images, memory, disks, evictions, drains, deleted pods and quotas.
 * Each shows as its reason, and no job is lost.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { noKubernetes, type TestCluster } from '../../support/kubernetes.ts'
import { patient } from '../../support/patience.ts'
import { giveGpus } from '../../support/pods.ts'
import { openRegistry } from '../../support/registry.ts'
import { sharedCluster } from '../../support/shared-cluster.ts'
import { atEnd } from '../support/cleanup.ts'
import { graphql, statusOf, submit, whenFinal } from '../support/client.ts'
import type { ContainerWish } from '../support/containers.ts'
import {
  cordon,
  drain,
  dropEndpoint,
  evict,
  explained,
  type Gates,
  guideOptions,
  jobAtGate,
  nodeWords,
  openGates,
  POD_MS,
  type PodServer,
  passGate,
  podEndpoint,
  podPath,
  removePods,
  startPodServer,
} from '../support/pods.ts'
import { until } from '../support/until.ts'

/** A worker with a limit of memory, and nothing else of the node. */
const SMALL = { gpuIds: undefined, gpuCount: undefined, instanceIds: ['cpu3c-2-4'] }
const QUOTAS = '/api/v1/namespaces/default/resourcequotas'

describe('faults around pods', { skip: noKubernetes, timeout: patient(295_000) }, () => {
  let cluster: TestCluster
  let server: PodServer
  let gates: Gates
  before(async () => {
    cluster = await sharedCluster()
    await giveGpus(cluster, 8)
    gates = await openGates(cluster)
    server = await startPodServer(cluster, { args: ['--drain-timeout', '4'] })
  })
  after(async () => {
    await server?.stop()
    if (cluster !== undefined) await removePods(cluster)
  })

  /** The cause that is shown for an endpoint whose job waits. */
  const causeOf = async (wish: ContainerWish, pattern: RegExp) => {
    const endpoint = await podEndpoint(server, wish)
    const job = await submit(server, endpoint, {})
    const reason = await explained(server, endpoint, pattern)
    assert.notEqual(reason.action, null)
    assert.equal((await statusOf(server, endpoint, job)).status, 'IN_QUEUE', 'no job is lost')
    await dropEndpoint(server, endpoint)
    return reason.cause
  }
  test('a missing image, a wrong credential and a missing credential each show as the reason', async () => {
    const depot = await openRegistry(false, cluster.hostAddress)
    const open = await openRegistry(true, cluster.hostAddress)
    for (const { host, close } of [depot, open]) {
      cluster.trustRegistry(host)
      atEnd(close)
    }
    depot.publish('private', '1', 'hello')
    const { saveRegistryAuth } = await graphql(
      server,
      'mutation ($input: SaveRegistryAuthInput) { saveRegistryAuth(input: $input) { id } }',
      { input: { name: 'wrong', username: 'me', password: 'let me in' } },
    )
    const image = `${depot.host}/private:1`
    const causes = [
      await causeOf({ image, registry: saveRegistryAuth.id }, /does not accept the credential/),
      await causeOf({ image }, /requires a credential/),
      await causeOf({ image: `${open.host}/nothing:1` }, /has no such image/),
    ]
    assert.deepEqual(causes, ['image_error', 'image_error', 'image_error'])
    assert.ok(server.lines.every(line => !line.includes('let me in')))
  })

  test('a program that is missing, and a crash at the start, show as the reason', async () => {
    assert.equal(
      await causeOf({ words: ['/nowhere/start.sh'] }, /program does not exist in the image.*\/nowhere\/start\.sh/),
      'image_error',
    )
    assert.equal(await causeOf({ words: ['sh', '-c', 'exit 7'] }, /exited with code 7/), 'crash_loop')
  })

  test('a worker that is killed for its memory gives its job back, which runs again', async () => {
    const endpoint = await podEndpoint(server, { words: nodeWords, settings: SMALL })
    const job = await submit(server, endpoint, { say: 'enough', eat: gates.url('greedy') })
    await gates.reached('greedy')
    const done = await whenFinal(server, endpoint, job, 2 * POD_MS)
    assert.deepEqual([done.status, done.output, done.retries], ['COMPLETED', 'enough', 1])
    assert.ok(server.events('worker.exited').some(event => /memory/.test(JSON.stringify(event))))
    await dropEndpoint(server, endpoint)
  })

  test('an evicted worker and one that somebody deletes: their jobs run on others, and no attempt counts', async () => {
    const takers: Record<string, (worker: string) => Promise<unknown>> = {
      evicted: worker => evict(cluster, worker),
      deleted: worker => cluster.api('DELETE', `${podPath(worker)}?gracePeriodSeconds=1`),
    }
    const runOnOthers = Object.entries(takers).map(async ([gate, take]) => {
      const it = await jobAtGate(server, gates, gate)
      await take(it.worker)
      await until(
        'its pod to be gone',
        async () => (await cluster.api('GET', podPath(it.worker))).status === 404,
        POD_MS,
      )
      const done = await passGate(server, gates, it)
      assert.notEqual(done.workerId, it.worker)
      assert.equal(done.retries ?? 0, 0, gate)
    })
    await Promise.all(runOnOthers)
  })

  test('kubectl drain as the guide has it: a job ends on its worker within the grace, another one goes back, and no attempt counts', async () => {
    const [ending, endless] = await Promise.all(['ending', 'endless'].map(gate => jobAtGate(server, gates, gate)))
    // Without its options it names one of them, then the other.
    assert.match((await drain(cluster, [])).said, /--delete-emptydir-data/)
    assert.match((await drain(cluster, ['--delete-emptydir-data'])).said, /--force/)
    const drained = drain(cluster, guideOptions())
    await until('the pod to be asked to end', async () => {
      const { text } = await cluster.api('GET', podPath(ending!.worker))
      return text.includes('deletionTimestamp')
    })
    const ended = await passGate(server, gates, ending!)
    assert.deepEqual([ended.workerId, ended.retries ?? 0], [ending!.worker, 0])
    const { code, said } = await drained
    assert.equal(code, 0, said)
    const { cause } = await explained(server, endless!.endpoint, /no node of the cluster has room/)
    assert.equal(cause, 'no_capacity')
    await cordon(cluster, false)
    const done = await passGate(server, gates, endless!)
    assert.notEqual(done.workerId, endless!.worker)
    assert.equal(done.retries ?? 0, 0)
  })

  test('a quota of the namespace shows as the reason, and the job runs when there is room in it', async () => {
    await cluster.api('POST', QUOTAS, { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } })
    await until('the quota to be in force', async () =>
      (await cluster.api('GET', `${QUOTAS}/none`)).text.includes('"used"'),
    )
    const endpoint = await podEndpoint(server)
    const job = await submit(server, endpoint, { say: 'in the end' })
    const { cause, summary } = await explained(server, endpoint, /quota/)
    assert.equal(cause, 'cluster_quota')
    assert.match(summary, /exceeded quota: none/)
    await cluster.api('DELETE', `${QUOTAS}/none`)
    assert.equal((await whenFinal(server, endpoint, job, POD_MS)).output, 'in the end')
    await dropEndpoint(server, endpoint)
  })
})
