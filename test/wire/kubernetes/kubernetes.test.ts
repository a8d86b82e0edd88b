/** Workers in pods of a real cluster: queues, load balancing, output, and servers that end. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { nodeImage, noKubernetes, type TestCluster } from '../../support/kubernetes.ts'
import { patient } from '../../support/patience.ts'
import { giveGpus } from '../../support/pods.ts'
import { sharedCluster } from '../../support/shared-cluster.ts'
import { balancedEndpoint, call } from '../support/balanced.ts'
import { ask, runJob, statusOf, submit, whenFinal } from '../support/client.ts'
import { explanationOf } from '../support/containers.ts'
import {
  dropEndpoint,
  type Gates,
  openGates,
  POD_MS,
  type PodServer,
  podEndpoint,
  podPath,
  podsOf,
  removePods,
  startPodServer,
} from '../support/pods.ts'
import { until } from '../support/until.ts'

const WEB = `import { createServer } from 'node:http'
const answer = ({ url }) => JSON.stringify({ path: url, worker: process.env.RUNPOD_POD_ID })
createServer((request, response) =>
  response.setHeader('content-type', 'application/json').end(answer(request))).listen(process.env.PORT)`

describe('workers in pods', { skip: noKubernetes, timeout: patient(290_000) }, () => {
  let cluster: TestCluster
  let server: PodServer
  let gates: Gates
  before(async () => {
    cluster = await sharedCluster()
    await giveGpus(cluster, 8)
    gates = await openGates(cluster)
    server = await startPodServer(cluster)
  })
  after(async () => {
    await server?.stop()
    if (cluster !== undefined) await removePods(cluster)
  })
  const gone = (worker: string) =>
    until(
      `the pod of ${worker} to be gone`,
      async () => (await cluster.api('GET', podPath(worker))).status === 404,
      POD_MS,
    )

  test('run jobs, write to their log, name their node, and go when they are idle, with all that belongs to them', async t => {
    const secret = { DEEP_SECRET: 'nobody may read this in a pod' }
    const endpoint = await podEndpoint(server, { env: secret, settings: { idleTimeout: 3 } })
    t.after(() => dropEndpoint(server, endpoint))
    const { status, output, workerId = '' } = await runJob(server, endpoint, { say: 'hello' }, POD_MS)
    assert.deepEqual([status, output], ['COMPLETED', 'hello'])
    await until('its output', async () =>
      (await ask(server, `/ops/logs/${workerId}`)).text.includes(`this worker is ${workerId}`),
    )
    const pod = await cluster.api('GET', podPath(workerId))
    assert.doesNotMatch(pod.text, /nobody may read this/)
    const { text } = await ask(server, `/v2/serverless/${endpoint}/workers`)
    assert.match(text, new RegExp(cluster.node))
    await gone(workerId)
    await until('its secrets to be gone', async () => {
      const secrets = await cluster.api('GET', '/api/v1/namespaces/default/secrets')
      return !secrets.text.includes(workerId)
    })
  })

  test('several workers run jobs at once, and a deleted endpoint leaves no pod', async () => {
    const endpoint = await podEndpoint(server, {
      settings: { workersMax: 3, scalerType: 'REQUEST_COUNT', scalerValue: 1 },
    })
    const jobs = await Promise.all(
      [1, 2, 3].map(n => submit(server, endpoint, { say: n, gate: gates.url(`many-${n}`) })),
    )
    await Promise.all([1, 2, 3].map(n => gates.reached(`many-${n}`)))
    assert.equal((await podsOf(cluster)).length, 3)
    for (const n of [1, 2, 3]) gates.open(`many-${n}`)
    const done = await Promise.all(jobs.map(job => whenFinal(server, endpoint, job)))
    assert.deepEqual(
      done.map(({ output }) => output),
      [1, 2, 3],
    )
    assert.equal(new Set(done.map(({ workerId }) => workerId)).size, 3)
    await dropEndpoint(server, endpoint)
    await until('all pods to be gone', async () => (await podsOf(cluster)).length === 0, POD_MS)
  })

  test('serve load-balanced requests at the addresses of their pods', async t => {
    const words = JSON.stringify({ cmd: ['node', '--input-type=module', '-e', WEB] })
    const web = await balancedEndpoint(server, { image: nodeImage, args: words, workers: { max: 1, idleTimeout: 600 } })
    t.after(() => dropEndpoint(server, web.id))
    const { status, json, worker } = await call(web, '/items/7?q=x')
    assert.deepEqual([status, json], [200, { path: '/items/7?q=x', worker }])
  })

  test('go on when their server is killed, and the next one takes them over with their jobs', async t => {
    const endpoint = await podEndpoint(server)
    t.after(() => dropEndpoint(server, endpoint))
    const job = await submit(server, endpoint, { say: 'kept', gate: gates.url('taken-over') })
    await gates.reached('taken-over')
    const { workerId = '' } = await statusOf(server, endpoint, job)
    await server.kill9()
    server = await startPodServer(cluster, {}, server)
    assert.equal((await explanationOf(server, endpoint)).cause, 'running')
    gates.open('taken-over')
    const done = await whenFinal(server, endpoint, job, POD_MS)
    assert.deepEqual([done.status, done.output, done.workerId, done.retries ?? 0], ['COMPLETED', 'kept', workerId, 0])
  })
})
