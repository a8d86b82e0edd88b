/**
 * A real Kubernetes with one node, on a machine of its own: etcd, API server, controllers,
 * scheduler, containerd and kubelet.
 */
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type Api, type ApiAnswer, openApi } from './api.ts'
import { createAccountKeys, createAuthority, createCallers } from './certificates.ts'
import { packImage } from './images.ts'
import { type Machine, openMachine, removeRemains } from './machine.ts'

const execute = promisify(execFile)

const PREFIX = 'runyard-kubernetes-'
const NODE = 'node1'
const SERVICES = '10.216.0'
const PAUSE_IMAGE = 'localhost/pause:1'

/** The programs of a cluster, in the order in which they start. */
export type ClusterProgram = 'etcd' | 'containerd' | 'apiserver' | 'controllers' | 'scheduler' | 'kubelet'

/** A cluster that runs pods. */
export interface Cluster {
  readonly folder: string
  /** A kubeconfig of an administrator; `kubectl` is among the programs. */
  readonly kubeconfig: string
  /** Name of the only node. */
  readonly node: string
  /** Address at which pods reach this host. */
  readonly hostAddress: string
  /** Calls the API server as an administrator. */
  readonly api: Api
  /** Loads an archive of `docker save`, whose images then need no registry. */
  load(archive: string): Promise<void>
  /** Lets the node pull from a registry without TLS. @param host its host and port, as in the names of images */
  trustRegistry(host: string): void
  /** Kills a program at once. */
  kill(program: ClusterProgram): Promise<void>
  /** Starts a program that was killed. */
  start(program: ClusterProgram): Promise<void>
  /** Waits until the node is ready and runs pods. */
  ready(): Promise<void>
  /** The last lines that a program wrote. */
  output(program: ClusterProgram): string
  /** Ends the cluster and removes all of it. */
  stop(): Promise<void>
}

/** Options of a cluster. */
export interface ClusterOptions {
  /** The folder of the programs of Kubernetes. */
  readonly programs: string
  /** An empty folder for its files; a temporary one unless given. */
  readonly folder?: string
  /** True if the API server logs each request in `audit.log` in the folder of the cluster; false unless given. */
  readonly audits?: boolean
  /** Receives a text about each finished step. */
  readonly say?: (text: string) => void
}

/** Starts a cluster. It ends with this process, also if that is killed. */
export async function startCluster({
  programs,
  audits = false,
  say = () => {},
  ...options
}: ClusterOptions): Promise<Cluster> {
  removeRemains(tmpdir(), PREFIX)
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), PREFIX))
  mkdirSync(folder, { recursive: true })
  const machine = await openMachine(folder)
  try {
    // Pods call the API server at this address. No proxy forwards other addresses of services.
    await machine.run(`ip addr add ${SERVICES}.1/32 dev lo`)
    const api = writeFiles(machine)
    const commands = programCommands(machine, programs)
    if (audits) commands.apiserver.push(...auditWords(machine))
    const start = (name: ClusterProgram) => machine.start(name, commands[name])
    for (const name of ['etcd', 'containerd', 'apiserver'] as const) await start(name)
    say('etcd, containerd and the API server were started')
    const load = async (archive: string) => {
      await containerd(machine, 'images', 'import', archive)
    }
    await until('containerd to answer', machine, 'containerd', () => containerd(machine, 'version').then(() => true))
    await load(pauseImage(machine, programs))
    say('containerd has the image of the pause container')
    await until(
      'the API server to answer',
      machine,
      'apiserver',
      async () => (await api('GET', '/readyz')).status === 200,
    )
    say('the API server answers')
    for (const name of ['controllers', 'scheduler', 'kubelet'] as const) await start(name)
    const ready = () => untilReady(machine, api)
    await ready()
    say('the node takes pods')
    return {
      folder,
      kubeconfig: join(folder, 'admin.kubeconfig'),
      node: NODE,
      hostAddress: machine.addresses.host,
      api,
      load,
      trustRegistry: host => trustRegistry(machine, host),
      kill: name => machine.kill(name),
      start,
      ready,
      output: name => machine.output(name),
      stop: machine.close,
    }
  } catch (error) {
    await machine.close()
    throw error
  }
}

async function untilReady(machine: Machine, api: Api): Promise<void> {
  await until('the node to be ready', machine, 'kubelet', async () => {
    const { status, json } = await api('GET', `/api/v1/nodes/${NODE}`)
    const node = json as { readonly spec?: NodeSpec; readonly status?: NodeStatus }
    const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    return status === 200 && isReady === true && (node.spec?.taints ?? []).length === 0
  })
  await until('the account of pods', machine, 'controllers', async () => {
    const { status } = await api('GET', '/api/v1/namespaces/default/serviceaccounts/default')
    return status === 200
  })
}

interface NodeSpec {
  readonly taints?: readonly unknown[]
}

interface NodeStatus {
  readonly conditions?: readonly { readonly type: string; readonly status: string }[]
}

async function until(
  condition: string,
  machine: Machine,
  program: ClusterProgram,
  isSo: () => Promise<boolean>,
): Promise<void> {
  const end = Date.now() + 120_000
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > end) throw new Error(`timed out while waiting for ${condition}:\n${machine.output(program)}`)
    await sleep(100)
  }
}

/** Writes keys, kubeconfigs and settings of all programs. @returns the API as an administrator */
function writeFiles(machine: Machine): Api {
  const { folder, addresses } = machine
  const keys = join(folder, 'keys')
  const sign = createAuthority(keys)
  const server = [`IP:${addresses.machine}`, `IP:${SERVICES}.1`, 'IP:127.0.0.1', 'DNS:kubernetes.default.svc']
  sign('apiserver', '/CN=kube-apiserver', server, 'serverAuth')
  sign('kubelet', `/CN=${NODE}`, [`IP:${addresses.machine}`, `DNS:${NODE}`], 'serverAuth')
  sign('apiserver-client', '/O=system:masters/CN=kube-apiserver', ['DNS:apiserver'], 'clientAuth')
  createAccountKeys(keys)
  const url = `https://${addresses.machine}`
  const tokens = createCallers(folder, url, {
    admin: { name: 'admin', groups: ['system:masters'] },
    controllers: { name: 'system:kube-controller-manager', groups: [] },
    scheduler: { name: 'system:kube-scheduler', groups: [] },
    kubelet: { name: `system:node:${NODE}`, groups: ['system:nodes'] },
  })
  writeFileSync(join(folder, 'containerd.toml'), containerdSettings(folder))
  writeFileSync(join(folder, 'cni', '10-pods.conflist'), JSON.stringify(podNetwork(machine)))
  writeFileSync(join(folder, 'kubelet.json'), JSON.stringify(kubeletSettings(machine)))
  // Lookups of names of other machines would only fail later.
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\noptions attempts:1 timeout:1\n')
  return openApi(url, join(keys, 'ca.crt'), tokens.admin!)
}

function containerdSettings(folder: string): string {
  return `version = 2
root = "${folder}/containerd"
state = "${folder}/containerd-state"
[grpc]
  address = "${folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Scores can only be raised where this machine is itself a guest without that right.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${folder}/registries"
`
}

function podNetwork({ folder, addresses }: Machine): object {
  const range = { subnet: `${addresses.pods}.0/24`, rangeStart: `${addresses.pods}.10`, gateway: `${addresses.pods}.1` }
  const ipam = {
    type: 'host-local',
    dataDir: join(folder, 'pod-addresses'),
    routes: [{ dst: '0.0.0.0/0' }],
    ranges: [[range]],
  }
  const bridge = { type: 'bridge', bridge: 'pods', isGateway: true, ipMasq: false, hairpinMode: true, ipam }
  return { cniVersion: '0.4.0', name: 'pods', plugins: [bridge] }
}

function kubeletSettings({ folder, addresses, controlGroup }: Machine): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: addresses.machine,
    tlsCertFile: join(folder, 'keys', 'kubelet.crt'),
    tlsPrivateKeyFile: join(folder, 'keys', 'kubelet.key'),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(folder, 'keys', 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    containerRuntimeEndpoint: `unix://${folder}/containerd.sock`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: controlGroup,
    // Test machines still have version 1 of control groups.
    failCgroupV1: false,
    failSwapOn: false,
    podLogsDir: join(folder, 'pod-logs'),
    volumePluginDir: join(folder, 'kubelet', 'plugins'),
    resolvConf: join(folder, 'resolv.conf'),
    makeIPTablesUtilChains: false,
    oomScoreAdj: 0,
    // Loaded images cannot be pulled again.
    imageGCHighThresholdPercent: 100,
    evictionHard: { 'memory.available': '50Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    // A lost node is detected in seconds.
    nodeStatusUpdateFrequency: '2s',
    nodeLeaseDurationSeconds: 8,
    syncFrequency: '10s',
    registryPullQPS: 0,
    eventRecordQPS: 0,
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
  }
}

/** The command of each program. */
function programCommands(machine: Machine, programs: string): Record<ClusterProgram, string[]> {
  const { folder, addresses } = machine
  const file = (name: string) => join(folder, name)
  const etcd = 'http://127.0.0.1:2379'
  return {
    etcd: [
      ...[
        'etcd',
        '--name',
        NODE,
        '--data-dir',
        file('etcd'),
        '--listen-client-urls',
        etcd,
        '--advertise-client-urls',
        etcd,
      ],
      ...['--listen-peer-urls', 'http://127.0.0.1:2380', '--initial-advertise-peer-urls', 'http://127.0.0.1:2380'],
      ...['--initial-cluster', `${NODE}=http://127.0.0.1:2380`, '--log-level', 'warn'],
    ],
    containerd: ['containerd', '--config', file('containerd.toml')],
    apiserver: [
      ...[
        join(programs, 'kube-apiserver'),
        '--etcd-servers',
        etcd,
        '--bind-address',
        '0.0.0.0',
        '--secure-port',
        '443',
      ],
      ...['--advertise-address', addresses.machine, '--service-cluster-ip-range', `${SERVICES}.0/24`],
      ...['--tls-cert-file', file('keys/apiserver.crt'), '--tls-private-key-file', file('keys/apiserver.key')],
      ...['--token-auth-file', file('keys/tokens.csv'), '--authorization-mode', 'Node,RBAC'],
      ...['--enable-admission-plugins', 'NodeRestriction', '--kubelet-certificate-authority', file('keys/ca.crt')],
      ...['--kubelet-client-certificate', file('keys/apiserver-client.crt')],
      ...['--kubelet-client-key', file('keys/apiserver-client.key')],
      ...[
        '--kubelet-preferred-address-types',
        'InternalIP',
        '--service-account-issuer',
        'https://kubernetes.default.svc',
      ],
      ...['--service-account-key-file', file('keys/accounts.pub')],
      ...['--service-account-signing-key-file', file('keys/accounts.key')],
      ...['--default-not-ready-toleration-seconds', '5', '--default-unreachable-toleration-seconds', '5'],
    ],
    controllers: [
      ...[
        join(programs, 'kube-controller-manager'),
        '--kubeconfig',
        file('controllers.kubeconfig'),
        '--leader-elect=false',
      ],
      ...['--bind-address', '127.0.0.1', '--service-account-private-key-file', file('keys/accounts.key')],
      ...['--root-ca-file', file('keys/ca.crt'), '--use-service-account-credentials'],
      ...['--node-monitor-period', '1s', '--node-monitor-grace-period', '12s'],
      // With the usual rate the taint of a new node stays for five seconds.
      ...['--kube-api-qps', '500', '--kube-api-burst', '1000'],
    ],
    scheduler: [
      ...[join(programs, 'kube-scheduler'), '--kubeconfig', file('scheduler.kubeconfig'), '--leader-elect=false'],
      ...['--bind-address', '127.0.0.1'],
    ],
    kubelet: [
      ...[join(programs, 'kubelet'), '--config', file('kubelet.json'), '--kubeconfig', file('kubelet.kubeconfig')],
      ...['--root-dir', file('kubelet'), '--hostname-override', NODE, '--node-ip', addresses.machine],
    ],
  }
}

/** Options with which the API server logs the caller and the target of each request, without bodies. */
function auditWords({ folder }: Machine): string[] {
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [{ level: 'Metadata' }],
  }
  writeFileSync(join(folder, 'audit.json'), JSON.stringify(policy))
  return ['--audit-policy-file', join(folder, 'audit.json'), '--audit-log-path', join(folder, 'audit.log')]
}

function pauseImage({ folder }: Machine, programs: string): string {
  const files = join(folder, 'pause')
  mkdirSync(files)
  copyFileSync(join(programs, 'pause'), join(files, 'pause'))
  const archive = join(folder, 'pause.tar')
  packImage(archive, { name: PAUSE_IMAGE, files, command: ['/pause'] })
  return archive
}

async function containerd({ folder }: Machine, ...words: readonly string[]): Promise<void> {
  await execute('ctr', ['--address', join(folder, 'containerd.sock'), '--namespace', 'k8s.io', ...words])
}

function trustRegistry({ folder }: Machine, host: string): void {
  const registry = join(folder, 'registries', host)
  mkdirSync(registry, { recursive: true })
  // Without this table of the host, the registry is called with TLS.
  writeFileSync(
    join(registry, 'hosts.toml'),
    `server = "http://${host}"\n[host."http://${host}"]\n  capabilities = ["pull", "resolve"]\n`,
  )
}

export type { Api, ApiAnswer }
