/**
 * The chart on a real Kubernetes: two servers on one PostgreSQL with the rights of the chart and no others, of which
 * the Service follows the active one.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { writeContext } from '../../../scripts/image.ts'
import { addProgram, packImage, workerFiles } from '../../../scripts/kubernetes/images.ts'
import { makeCertificate } from '../../support/certificates.ts'
import { CHART, helm, noHelm, type Values } from '../../support/helm.ts'
import { nodeImage, noKubernetes, openCluster, type TestCluster } from '../../support/kubernetes.ts'
import { patient } from '../../support/patience.ts'
import { giveGpus } from '../../support/pods.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask, healthOf } from '../support/client.ts'
import { containerEndpoint } from '../support/containers.ts'
import { playService } from '../support/played-service.ts'
import { cordon, drain, guideOptions } from '../support/pods.ts'
import { noPostgresPrograms, startPostgres } from '../support/postgres.ts'
import { loadSdkImage, noSdkInPods, sdkWorker, startSdkClient } from '../support/sdk-in-pods.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

const IMAGE = 'runyard-test-server:1'
const KEY = 'key-of-the-servers-in-the-cluster'
const METRICS_KEY = 'key-for-metrics-in-the-cluster'
const SELECTOR = 'app.kubernetes.io/component=server'
const START_MS = 60_000
/** A takeover has to be done within 10 s of a server's death; the rest is for the label to reach the Service. */
const TAKEOVER_MS = 12_000
/** The first job of the SDK's client is in progress during a whole takeover. */
const LONG_JOB_S = 12
/** Longest delay until a node uses the new target of a Service. */
const FOLLOW_MS = 250

interface Pod {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly labels: Record<string, string>
    readonly annotations: Record<string, string>
    readonly deletionTimestamp?: string
  }
  readonly status: {
    readonly phase: string
    readonly podIP?: string
    readonly conditions?: readonly { type: string; status: string }[]
  }
}

let cluster: TestCluster
/** Done when the node has the image of the SDK. */
let sdkImage: Promise<void> | null = null

function kubectl(words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync('kubectl', words, { env: cluster.env, encoding: 'utf8' })
  assert.equal(status, 0, `kubectl ${words.join(' ')}: ${stderr}`)
  return stdout
}

/** Items of a list of the cluster. */
async function listed<Item>(path: string, selector: string): Promise<readonly Item[]> {
  const { json } = await cluster.api('GET', `${path}?labelSelector=${encodeURIComponent(selector)}`)
  return (json as { readonly items: readonly Item[] }).items
}

async function pods(namespace: string, selector: string): Promise<Pod[]> {
  const all = await listed<Pod>(`/api/v1/namespaces/${namespace}/pods`, selector)
  return all.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

const isReady = ({ status }: Pod) =>
  status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
const roleOf = ({ metadata }: Pod) => metadata.labels['runyard.dev/role']
const servers = () => pods('serving', SELECTOR)
const workers = () => pods('gpu-workers', 'runyard.dev/worker')
const active = async () => (await servers()).filter(pod => roleOf(pod) === 'active')
const isOther = (pod: Pod) => (other: Pod) => other.metadata.name !== pod.metadata.name
const serverAt = (pod: Pod) => ({ url: `http://${pod.status.podIP}:8080`, apiKey: KEY })

/** The addresses to which a Service leads. */
async function endpointsOf(service: string): Promise<string[]> {
  const slices = await listed<{
    readonly endpoints: { readonly addresses: string[]; readonly conditions: { readonly ready: boolean } }[] | null
  }>('/apis/discovery.k8s.io/v1/namespaces/serving/endpointslices', `kubernetes.io/service-name=${service}`)
  return slices
    .flatMap(({ endpoints }) => endpoints ?? [])
    .flatMap(({ addresses, conditions }) => (conditions.ready ? addresses : []))
}

/** Two servers that run, one of which is active and where both Services lead. */
async function settled(): Promise<Pod> {
  return until(
    'two servers, and Services that lead to the active one',
    async () => {
      const all = await servers()
      const [first, ...more] = all.filter(pod => roleOf(pod) === 'active')
      if (all.length !== 2 || !all.every(isReady) || first === undefined || more.length > 0) return false
      const ends = await Promise.all(['runyard', 'runyard-workers'].map(endpointsOf))
      return ends.every(addresses => String(addresses) === first.status.podIP) && first
    },
    START_MS,
    250,
  )
}

/** An address of this machine that leads where a Service does, as the cluster of the tests has no kube-proxy. */
async function serviceAddress(service: string, port: number): Promise<string> {
  let host: string | undefined
  const look = () =>
    endpointsOf(service).then(
      ([first]) => (host = first),
      () => {},
    )
  await look()
  const following = setInterval(look, FOLLOW_MS)
  atEnd(() => clearInterval(following))
  const own = await playService(cluster.hostAddress, () => (host === undefined ? null : { host, port }))
  return `http://${cluster.hostAddress}:${own}`
}

/** Packs the image of the server as the Dockerfile does, without an engine. */
async function loadServer(): Promise<void> {
  const folder = temporaryFolder()
  const files = join(folder, 'files')
  mkdirSync(files)
  workerFiles(root, files)
  for (const name of ['dirname', 'readlink', 'uname']) addProgram(files, `/usr/bin/${name}`, `/bin/${name}`)
  await writeContext(join(files, 'opt/runyard'))
  const archive = join(folder, 'server.tar')
  packImage(archive, {
    name: `docker.io/library/${IMAGE}`,
    files,
    entrypoint: ['/opt/runyard/bin/runyard'],
    command: [],
  })
  await cluster.load(archive)
}

/** Runs Helm on the cluster, with values on its standard input. */
function onCluster(words: readonly string[], values: Values = {}): string {
  const { status, stdout, stderr } = helm(
    [...words, '--namespace', 'serving', '--values', '-'],
    JSON.stringify(values),
    { ...cluster.env, HOME: cluster.folder },
  )
  assert.equal(status, 0, `helm ${words.join(' ')}: ${stderr}`)
  return stdout
}

async function install(): Promise<void> {
  const tls = makeCertificate({ names: [cluster.hostAddress] })
  const { url } = await startPostgres([], tls)
  const { port: own } = new URL(url)
  const port = await playService(cluster.hostAddress, () => ({ host: '127.0.0.1', port: Number(own) }))
  for (const [namespace, level] of [
    ['serving', 'restricted'],
    ['gpu-workers', 'baseline'],
  ] as const) {
    kubectl(['create', 'namespace', namespace])
    kubectl(['label', 'namespace', namespace, `pod-security.kubernetes.io/enforce=${level}`])
  }
  const secrets = [
    `database-url=postgres://postgres@${cluster.hostAddress}:${port}/postgres?sslmode=verify-full`,
    `api-key=${KEY}`,
    `metrics-key=${METRICS_KEY}`,
    `encryption-key=${Buffer.alloc(32, 7).toString('base64')}`,
  ]
  kubectl(['create', 'secret', 'generic', 'runyard', '-n', 'serving', ...secrets.map(text => `--from-literal=${text}`)])
  kubectl(['create', 'configmap', 'authorities', '-n', 'serving', `--from-literal=ca.crt=${tls.cert}`])
  const [repository, tag] = IMAGE.split(':')
  onCluster(['install', 'runyard', CHART], {
    image: { repository, tag },
    workers: { namespace: 'gpu-workers' },
    certificateAuthorities: { configMap: 'authorities' },
    settings: { RUNYARD_HISTORY_JOBS: 2_000_000 },
    resources: { requests: { cpu: 0, memory: '128Mi' }, limits: {} },
  })
}

describe('the chart', { skip: noKubernetes || noHelm || noPostgresPrograms, timeout: patient(280_000) }, () => {
  before(async () => {
    cluster = await openCluster()
    atEnd(() => cluster.stop())
    await loadServer()
    // Workers that ask for a GPU ask for nothing else, so that two have room.
    await giveGpus(cluster, 2)
    // It is needed last, and built during the other tests.
    if (noSdkInPods === false) sdkImage = loadSdkImage(cluster)
    // Its error belongs to the test that waits for it.
    sdkImage?.catch(() => {})
    await install()
  })

  test('two servers become ready, one of them active, and the Services lead there', async () => {
    const leader = await settled()
    const [standby] = (await servers()).filter(({ metadata }) => metadata.name !== leader.metadata.name)
    assert.equal(roleOf(standby!), 'standby')
    const { status } = await ask(serverAt(leader), '/readyz')
    assert.equal(status, 200)
    const scraped = await ask({ ...serverAt(leader), apiKey: METRICS_KEY }, '/metrics')
    assert.equal(scraped.status, 200)
    // Whoever has an old address of the Service gets an answer all the same, if not at the
    // first try of a busy machine.
    const passedOn = async () => (await ask(serverAt(standby!), '/v2/serverless')).status === 200
    await until('the one that stands by to pass calls on', passedOn, TAKEOVER_MS, 500)
    // So does a worker, whose token the active server looks up.
    const ofWorkers = { ...serverAt(standby!), url: `http://${standby!.status.podIP}:8082` }
    const refused = await ask(ofWorkers, '/v2/none/job-take/none')
    assert.equal(refused.status, 401, refused.text)
  })

  test('the rights of the chart are enough for a worker, and are no more than that', async () => {
    const server = serverAt(await settled())
    const words = ['node', '-e', 'setInterval(() => {}, 1000)']
    const endpoint = await containerEndpoint(server, { image: nodeImage, words })
    await ask(server, `/v2/${endpoint}/run`, { body: { input: {} } })
    const ours = 'app.kubernetes.io/managed-by=runyard,runyard.dev/installation=serving-runyard'
    await until('the worker to run', async () =>
      (await pods('gpu-workers', ours)).some(({ status }) => status.phase === 'Running'),
    )
    const as = ['--as', 'system:serviceaccount:serving:runyard']
    const may = (words: readonly string[]) =>
      spawnSync('kubectl', ['auth', 'can-i', ...words, ...as], { env: cluster.env, encoding: 'utf8' }).stdout.trim()
    assert.equal(may(['create', 'pods', '-n', 'gpu-workers']), 'yes')
    for (const words of [
      ['get', 'secrets', '-n', 'serving'],
      ['list', 'secrets', '-n', 'kube-system'],
      ['create', 'pods', '-n', 'serving'],
      ['create', 'pods', '--subresource=exec', '-n', 'gpu-workers'],
      ['patch', 'networkpolicies', '-n', 'gpu-workers'],
      ['list', 'nodes'],
    ])
      assert.equal(may(words), 'no', words.join(' '))
  })

  test('the server changes the label of its role and nothing else, on pods of its release alone', async () => {
    const leader = (await settled()).metadata.name
    const bystander = ['run', 'bystander', '-n', 'serving', `--image=${nodeImage}`, '--restart=Never']
    const secure = { runAsNonRoot: true, runAsUser: 1, seccompProfile: { type: 'RuntimeDefault' } }
    const container = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
    const overrides = {
      spec: {
        securityContext: secure,
        containers: [{ name: 'bystander', image: nodeImage, securityContext: container }],
      },
    }
    kubectl([...bystander, `--overrides=${JSON.stringify(overrides)}`])
    const patch = (pod: string, change: object) => {
      const words = ['patch', 'pod', pod, '-n', 'serving', '--as', 'system:serviceaccount:serving:runyard']
      const { status, stderr } = spawnSync('kubectl', [...words, '--patch', JSON.stringify(change)], {
        env: cluster.env,
        encoding: 'utf8',
      })
      return status === 0 ? 'changed' : stderr
    }
    const role = { metadata: { labels: { 'runyard.dev/role': 'active' } } }
    assert.equal(patch(leader, role), 'changed')
    for (const [pod, change, refusal] of [
      ['bystander', role, /pods of its own release alone/],
      [leader, { spec: { containers: [{ name: 'server', image: 'other:1' }] } }, /nothing that a pod runs/],
      [leader, { metadata: { labels: { 'app.kubernetes.io/component': 'x' } } }, /no label but runyard.dev\/role/],
      [leader, { metadata: { annotations: { a: 'b' } } }, /no annotation but what the pod costs/],
      [leader, { metadata: { finalizers: ['a.example/b'] } }, /neither owners nor finalizers/],
    ] as const)
      assert.match(patch(pod, change), refusal)
    kubectl(['delete', 'pod', 'bystander', '-n', 'serving', '--now', '--wait=false'])
  })

  test('the other one takes over from a server that is frozen, takes its label, and keeps it when that wakes up', async () => {
    const frozen = await settled()
    const running = (await workers()).map(({ metadata }) => metadata.name)
    const pid = processOf(frozen)
    process.kill(pid, 'SIGSTOP')
    try {
      const next = await until(
        'the other server to be active',
        async () => (await active()).find(isOther(frozen)),
        TAKEOVER_MS,
        100,
      )
      assert.equal((await ask(serverAt(next), '/v2/serverless')).status, 200)
      await until(
        'the Service to follow',
        async () => String(await endpointsOf('runyard')) === next.status.podIP,
        TAKEOVER_MS,
      )
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await until(
      'the one that woke up to stand by',
      async () => (await ask(serverAt(frozen), '/v2/serverless')).status === 200,
    )
    assert.equal(isOther(frozen)(await settled()), true)
    assert.deepEqual(
      (await workers()).map(({ metadata }) => metadata.name),
      running,
    )
  })

  test('an upgrade keeps the values that were given, and replaces the servers with one takeover', async () => {
    const old = await settled()
    const before = await epochAt(old)
    onCluster(['upgrade', 'runyard', CHART, '--reset-then-reuse-values', '--set', 'podAnnotations.round=two'])
    const isNew = ({ metadata }: Pod) => metadata.annotations.round === 'two'
    await until(
      'all servers to be new',
      async () => {
        const all = await servers()
        return all.length === 2 && all.every(isNew)
      },
      2 * START_MS,
      250,
    )
    const leader = await settled()
    assert.equal(await epochAt(leader), before + 1)
  })

  test('the command of the guide drains a node of workers and servers, one server at a time', async () => {
    await settled()
    const everything = async () => [...(await servers()), ...(await workers())].map(({ metadata }) => metadata.uid)
    const before = await everything()
    assert.equal(before.length, 3)
    const { code, said } = await drain(cluster, guideOptions(), soFar => {
      // The node is the only one, so it has to be the one that takes the new pods, too.
      if (soFar.includes('cordoned')) void cordon(cluster, false)
    })
    assert.equal(code, 0, said)
    assert.match(said, /would violate the pod's disruption budget/)
    await settled()
    const after = await everything()
    assert.deepEqual(
      before.filter(uid => after.includes(uid)),
      [],
    )
  })

  test("jobs of RunPod's Python client run on its SDK in pods, and each has one outcome though the active server and its pod are gone meanwhile", {
    skip: noSdkInPods,
  }, async () => {
    const leader = await settled()
    await sdkImage
    const url = await serviceAddress('runyard', 8080)
    const worker = sdkWorker('http://runyard-workers.serving.svc', await serviceAddress('runyard-workers', 8082))
    const settings = { instanceIds: undefined, gpuIds: 'AMPERE_24', gpuCount: 1, workersMin: 2, workersMax: 2 }
    const endpoint = await containerEndpoint(serverAt(leader), { ...worker, settings })
    await until('two workers', async () => (await healthOf(serverAt(leader), endpoint)).workers.idle === 2, START_MS)
    const client = startSdkClient({ url, apiKey: KEY }, endpoint, LONG_JOB_S)
    await until('some jobs to be acknowledged', () => client.acknowledged() >= 3)
    loseServer(leader)
    const next = await until(
      'the other server to be active',
      async () => (await active()).find(isOther(leader)),
      TAKEOVER_MS,
    )
    const before = client.acknowledged()
    await until('jobs that the new one acknowledged', () => client.acknowledged() >= before + 3)
    const outcomes = await client.outcomes()
    assert.equal(new Set(outcomes.map(({ id }) => id)).size, outcomes.length)
    for (const { n, id, status, output } of outcomes) {
      assert.deepEqual([n, status, output.square, output.sdk], [n, 'COMPLETED', n ** 2, '1.12.0'])
      const { json } = await ask(serverAt(next), `/v2/${endpoint}/status/${id}`)
      assert.deepEqual([json.status, json.output], [status, output])
    }
    // A call without an answer may have succeeded, too; the client does not follow its job.
    const counts = async () => (await healthOf(serverAt(next), endpoint)).jobs
    await until('all jobs to end', async () => (await counts()).inQueue + (await counts()).inProgress === 0)
    assert.equal((await counts()).failed, 0)
  })
})

/** Ends a server as the loss of its machine does: without a signal, and its pod does not restart. */
function loseServer(server: Pod): void {
  const pid = processOf(server)
  kubectl(['delete', 'pod', server.metadata.name, '-n', 'serving', '--force', '--grace-period=0', '--wait=false'])
  process.kill(pid, 'SIGKILL')
}

/** Present epoch of the database, as this server reports it. */
async function epochAt(pod: Pod): Promise<number> {
  return (await ask(serverAt(pod), '/ops/status')).json.active.epoch
}

/** The process of a server, as this host sees it. */
function processOf({ metadata: { uid } }: Pod): number {
  const found = globSync('/proc/[0-9]*').find(folder => {
    try {
      const inPod = readFileSync(`${folder}/cgroup`, 'utf8').includes(uid)
      return inPod && readFileSync(`${folder}/cmdline`, 'utf8').includes('runyard.js')
    } catch {
      return false
    }
  })
  return Number(basename(found ?? assert.fail(`no process of the pod ${uid}`)))
}
