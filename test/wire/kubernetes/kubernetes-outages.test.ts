/**
 * Faults of a real cluster itself while pods work: its API server is down, and a node falls silent. Each shows as its
 * reason, and no job is lost.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { addFakeNodes } from '../../../scripts/kubernetes/fake-nodes.ts'
import { noKubernetes, openCluster, type TestCluster } from '../../support/kubernetes.ts'
import { patient } from '../../support/patience.ts'
import { giveGpus } from '../../support/pods.ts'
import { runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import {
  dropEndpoint,
  explained,
  type Gates,
  jobAtGate,
  openGates,
  POD_MS,
  type PodServer,
  passGate,
  podEndpoint,
  startPodServer,
} from '../support/pods.ts'
import { sleep } from '../support/until.ts'

/** Several calls of the driver fail in it. */
const AWAY_MS = 12_000
const SHORT_DRAIN = ['--drain-timeout', '2']

describe('outages of a cluster', { skip: noKubernetes, timeout: patient(295_000) }, () => {
  let cluster: TestCluster
  let server: PodServer
  let gates: Gates
  before(async () => {
    cluster = await openCluster()
    await giveGpus(cluster, 8)
    gates = await openGates(cluster)
    server = await startPodServer(cluster, { args: SHORT_DRAIN })
  })
  after(async () => {
    await server?.stop()
    await cluster?.stop()
  })

  test('an API server that is away for a while ends no worker: jobs go on, new ones wait with the reason, and run', async () => {
    // Another worker would start as soon as the cluster responds.
    const it = await jobAtGate(server, gates, 'away', { settings: { workersMax: 1 } })
    await cluster.kill('apiserver')
    const began = Date.now()
    const waiting = await podEndpoint(server)
    const job = await submit(server, waiting, { say: 'later' })
    assert.equal((await explained(server, waiting, /the cluster does not respond/)).cause, 'cluster_away')
    assert.equal((await statusOf(server, it.endpoint, it.job)).status, 'IN_PROGRESS')
    const second = await submit(server, it.endpoint, { say: 'meanwhile' })
    gates.open('away')
    const done = await whenFinal(server, it.endpoint, it.job)
    assert.deepEqual([done.status, done.workerId, done.retries ?? 0], ['COMPLETED', it.worker, 0])
    assert.equal((await whenFinal(server, it.endpoint, second)).workerId, it.worker)
    await sleep(Math.max(0, began + AWAY_MS - Date.now()))
    await cluster.start('apiserver')
    assert.equal((await whenFinal(server, waiting, job, 2 * POD_MS)).output, 'later')
    assert.equal((await runJob(server, it.endpoint, {})).workerId, it.worker)
    for (const endpoint of [waiting, it.endpoint]) await dropEndpoint(server, endpoint)
  })

  test('a worker on a node that falls silent counts as lost after the limit, and its job runs when there is a node again', async t => {
    await server.kill9()
    server = await startPodServer(cluster, { args: ['--kubernetes-node-lost', '10', ...SHORT_DRAIN] }, server)
    // A cluster whose only node is silent evicts nothing.
    const others = await addFakeNodes(cluster.api, 1, 0)
    t.after(() => others.close())
    const it = await jobAtGate(server, gates, 'silent')
    await cluster.kill('kubelet')
    const { cause } = await explained(server, it.endpoint, /no node of the cluster has room/, 2 * POD_MS)
    assert.equal(cause, 'no_capacity')
    await cluster.start('kubelet')
    await cluster.ready()
    const done = await passGate(server, gates, it, 2 * POD_MS)
    assert.equal(done.retries ?? 0, 0)
  })
})
