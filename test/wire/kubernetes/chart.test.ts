/** The chart on a real Kubernetes: two servers on one PostgreSQL with the rights of the chart and no others, of which the Service follows the active one. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { basename, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { writeContext } from '../../../scripts/image.ts'
import { addProgram, packImage, workerFiles } from '../../../scripts/kubernetes/images.ts'
import { noHelm, template } from '../../support/helm.ts'
import { nodeImage, noKubernetes, openCluster, type TestCluster } from '../../support/kubernetes.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { ask } from '../support/client.ts'
import { containerEndpoint } from '../support/containers.ts'
import { noPostgresPrograms, startPostgres } from '../support/postgres.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

const IMAGE = 'runyard-test-server:1'
const KEY = 'key-of-the-servers-in-the-cluster'
const METRICS_KEY = 'key-for-metrics-in-the-cluster'
const SELECTOR = 'app.kubernetes.io/component=server'
const START_MS = 60_000
/** A takeover has to be done within 10 s of a server's death; the rest is for the label to reach the Service. */
const TAKEOVER_MS = 12_000

interface Pod {
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly labels: Record<string, string>
    readonly deletionTimestamp?: string
  }
  readonly status: {
    readonly phase: string
    readonly podIP?: string
    readonly conditions?: readonly { type: string; status: string }[]
  }
}

let cluster: TestCluster

function kubectl(words: readonly string[], input = ''): string {
  const { status, stdout, stderr } = spawnSync('kubectl', words, { env: cluster.env, input, encoding: 'utf8' })
  assert.equal(status, 0, `kubectl ${words.join(' ')}: ${stderr}`)
  return stdout
}

function pods(namespace: string, selector: string): Pod[] {
  const { items } = JSON.parse(kubectl(['get', 'pods', '-n', namespace, '-l', selector, '-o', 'json'])) as {
    items: Pod[]
  }
  return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

const isReady = ({ status }: Pod) =>
  status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true
const roleOf = ({ metadata }: Pod) => metadata.labels['runyard.dev/role']
const servers = () => pods('serving', SELECTOR)
const active = () => servers().filter(pod => roleOf(pod) === 'active')
const serverAt = (pod: Pod) => ({ url: `http://${pod.status.podIP}:8080`, apiKey: KEY })

/** The addresses to which a Service leads. */
function endpointsOf(service: string): string[] {
  const words = ['get', 'endpointslices', '-n', 'serving', '-l', `kubernetes.io/service-name=${service}`, '-o', 'json']
  const { items } = JSON.parse(kubectl(words)) as {
    items: { endpoints: { addresses: string[]; conditions: { ready: boolean } }[] | null }[]
  }
  return items
    .flatMap(({ endpoints }) => endpoints ?? [])
    .flatMap(({ addresses, conditions }) => (conditions.ready ? addresses : []))
}

/** Two servers that run, one of which is active and where both Services lead. */
async function settled(): Promise<Pod> {
  return until(
    'two servers, and Services that lead to the active one',
    () => {
      const [first, ...more] = active()
      const isWell = servers().length === 2 && servers().every(isReady) && first !== undefined && more.length === 0
      return (
        isWell &&
        ['runyard', 'runyard-workers'].every(name => String(endpointsOf(name)) === first.status.podIP) &&
        first
      )
    },
    START_MS,
    250,
  )
}

/** Makes a port of this machine that pods reach, and that leads to one of loopback. */
function openWay(port: number): Promise<number> {
  const server = createServer(socket => {
    const other = connect(port, '127.0.0.1')
    for (const [one, end] of [
      [socket, other],
      [other, socket],
    ] as const)
      one.on('error', () => end.destroy()).pipe(end)
  })
  atEnd(() => server.close())
  return new Promise(resolve =>
    server.listen(0, cluster.hostAddress, () => resolve((server.address() as { port: number }).port)),
  )
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

async function install(): Promise<void> {
  const { url } = await startPostgres()
  const port = await openWay(Number(new URL(url).port))
  for (const [namespace, level] of [
    ['serving', 'restricted'],
    ['gpu-workers', 'baseline'],
  ] as const) {
    kubectl(['create', 'namespace', namespace])
    kubectl(['label', 'namespace', namespace, `pod-security.kubernetes.io/enforce=${level}`])
  }
  const database = `database-url=postgres://postgres@${cluster.hostAddress}:${port}/postgres`
  const secrets = [
    database,
    `api-key=${KEY}`,
    `metrics-key=${METRICS_KEY}`,
    `encryption-key=${Buffer.alloc(32, 7).toString('base64')}`,
  ]
  kubectl(['create', 'secret', 'generic', 'runyard', '-n', 'serving', ...secrets.map(text => `--from-literal=${text}`)])
  const [repository, tag] = IMAGE.split(':')
  const { stdout } = template({
    image: { repository, tag },
    workers: { namespace: 'gpu-workers' },
    resources: { requests: { cpu: 0, memory: '128Mi' }, limits: {} },
  })
  kubectl(['apply', '--validate=strict', '-f', '-'], stdout)
}

describe('the chart', { skip: noKubernetes || noHelm || noPostgresPrograms, timeout: 280_000 }, () => {
  before(async () => {
    cluster = await openCluster()
    atEnd(() => cluster.stop())
    await loadServer()
    await install()
  })

  test('two servers become ready, one of them active, and the Services lead there', async () => {
    const leader = await settled()
    const [standby] = servers().filter(({ metadata }) => metadata.name !== leader.metadata.name)
    assert.equal(roleOf(standby!), 'standby')
    const { status } = await ask(serverAt(leader), '/readyz')
    assert.equal(status, 200)
    const scraped = await ask({ ...serverAt(leader), apiKey: METRICS_KEY }, '/metrics')
    assert.equal(scraped.status, 200)
    // Whoever has an old address of the Service gets an answer all the same, if not at the first try of a busy machine.
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
    await until('the worker to run', () => pods('gpu-workers', ours).some(({ status }) => status.phase === 'Running'))
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
    const workers = () => pods('gpu-workers', 'runyard.dev/worker').map(({ metadata }) => metadata.name)
    const running = workers()
    const isOther = ({ metadata }: Pod) => metadata.name !== frozen.metadata.name
    const pid = processOf(frozen)
    process.kill(pid, 'SIGSTOP')
    try {
      const next = await until('the other server to be active', () => active().find(isOther), TAKEOVER_MS, 100)
      assert.equal((await ask(serverAt(next), '/v2/serverless')).status, 200)
      await until('the Service to follow', () => String(endpointsOf('runyard')) === next.status.podIP, TAKEOVER_MS)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await until(
      'the one that woke up to stand by',
      async () => (await ask(serverAt(frozen), '/v2/serverless')).status === 200,
    )
    assert.equal(isOther(await settled()), true)
    assert.deepEqual(workers(), running)
  })
})

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
