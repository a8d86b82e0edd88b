import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, readConfig, SETTINGS, strayVariables } from '../../src/config/config.ts'
import { MAY_DIFFER } from '../../src/config/storage.ts'
import { ACCOUNT_LIMITS } from '../../src/core/accounts/quotas.ts'
import { WINDOWS_PROBLEM } from '../../src/core/accounts/rate-limit.ts'

type Given = Record<string, unknown>
type Env = Record<string, string | undefined>

function read(options: Given = {}, env: Env = {}) {
  return readConfig({ options, env, absolute: path => `/here/${path}` })
}

function config(options: Given = {}, env: Env = {}): Config {
  const reading = read(options, env)
  assert.ok('config' in reading, JSON.stringify(reading))
  return reading.config
}

function mistakes(options: Given = {}, env: Env = {}): readonly string[] {
  const reading = read(options, env)
  return 'mistakes' in reading ? reading.mistakes : []
}

test('a server about which nothing is said listens on loopback, on port 8080, with a folder of its own', () => {
  const { rateWindows, ...rest } = config()
  assert.deepEqual(rest, {
    port: 8080,
    host: '127.0.0.1',
    dataDir: '/here/./.runyard',
    processRoots: [],
    publicUrl: null,
    consoleUrl: null,
    queueUrl: null,
    corsOrigins: [],
    workers: [],
    sample: false,
    json: false,
    drainTimeoutMs: 30_000,
    maxWorkers: null,
    folderGpu: null,
    folderGpuCount: null,
    folderGpuMemoryGb: null,
    folderPriority: null,
    folderPreemptible: null,
    folderCommand: null,
    folderSetup: false,
    folderWatch: false,
    storeHost: 'auto',
    webhookPublicOnly: false,
    metricsPublic: false,
    databaseUrl: null,
    newDatabase: false,
    logLevel: 'info',
    apiKey: null,
    previousApiKey: null,
    metricsKey: null,
    maxConnections: 20_000,
    httpThreads: 1,
    bodyBytes: 256 * 1024 * 1024,
    resultBytes: 20 * 1024 * 1024,
    inputBytes: null,
    bodyDiskBytes: 4096 * 1024 * 1024,
    adminPort: null,
    adminHost: '127.0.0.1',
    addressConnections: null,
    accountConnections: null,
    endpointConnections: null,
    artifacts: { maxBytes: 1_500 * 1024 ** 2, maxUnpackedBytes: 5_000 * 1024 ** 2 },
    audit: { keptMs: 31_536_000_000, maxEntries: 5_000_000 },
    nonDefaults: {},
    jobRecords: {
      keptMs: 604_800_000,
      maxRecords: 500_000,
      maxBytes: 536_870_912,
      failedInputsKeptMs: 86_400_000,
      failedInputsMaxBytes: 134_217_728,
      payloads: false,
    },
    sealPayloads: false,
    processes: 'auto',
    acceptSharedHost: false,
    webhookPrivate: 'auto',
    privateRegistries: [],
    mail: { smtpUrl: null, smtpFrom: null },
    workerSandbox: 'auto',
    workerNetwork: 'open',
    workerReadable: [],
    workerWritable: [],
    workerDiskGb: null,
    workerCacheGb: null,
    modelCache: null,
    modelCacheGb: null,
    modelHub: 'https://huggingface.co',
    masterKeys: [],
    backupPassphrase: null,
    migrateTo: null,
    backups: {
      folder: null,
      everyMs: 86_400_000,
      keep: 14,
      passphraseFile: null,
      withoutKeys: false,
      withLogs: false,
      pgDump: null,
    },
    tracing: null,
    limitJobs: false,
    deleteRunningEndpoints: false,
    prices: null,
    startAware: false,
    rolloutJudge: 'on',
    placing: { requireGpu: false, dwellMs: 30_000, cpuOvercommit: 4, memoryOvercommit: 2 },
    pausing: { maxPauseMs: 300_000, maxPaused: 8, acrossAccounts: false },
    freezing: { keepMs: 3_600_000, minMemoryPercent: 10, suspendedBytes: null },
    tls: { certFile: null, keyFile: null, selfSigned: false, redirectPort: null, hstsSeconds: 0 },
    forwardToActive: false,
    advertiseHost: null,
    directWorkers: false,
    container: false,
    docker: 'auto',
    dockerNetwork: null,
    dockerWorkerAddress: null,
    appImage: 'python:{python}-slim',
    kubernetes: {
      where: 'off',
      context: null,
      namespace: null,
      installation: null,
      workerUrl: null,
      workerHost: '0.0.0.0',
      workerPort: 8082,
      volumeClaim: null,
      modelFolder: null,
      networkPolicy: 'open',
      gpuResource: 'nvidia.com/gpu',
      gpuProducts: [],
      priorityClass: null,
      runtimeClass: null,
      nodeSelector: [],
      tolerations: [],
      nodeLostMs: 300_000,
      podsReachable: false,
    },
    lbFolders: [],
    lbDomain: null,
    lbPublic: [],
    trustedProxies: [],
    allowedHosts: [],
    lbBodyBytes: 30 * 1024 * 1024,
    accountLimits: ACCOUNT_LIMITS,
  })
  assert.deepEqual(
    rateWindows.map(({ quota }) => quota),
    [1_200, 36_000, 500_000],
  )
  assert.ok(Object.isFrozen(config()))
})

test('each setting is read from its option', () => {
  const options = {
    port: '0',
    host: '::1',
    dataDir: 'd',
    processRoot: ['a', 'b'],
    publicUrl: 'https://x.example/',
    consoleUrl: 'https://Console.Example:443/',
    queueUrl: 'http://y:1',
    corsOrigin: ['https://app.example/', '*'],
    worker: ['w1', 'w2'],
    sample: true,
    json: true,
    drainTimeout: '5',
    maxWorkers: '7',
    gpu: 'RTX 4090',
    gpus: '2',
    gpuMemory: 'auto',
    priority: 'low',
    preemptible: 'true',
    command: 'python app.py',
    setup: true,
    watch: true,
    storeHost: 'thread',
    webhookPublicOnly: true,
    metricsPublic: true,
    logLevel: 'debug',
    tlsCert: 'cert.pem',
    tlsKey: 'key.pem',
    httpRedirectPort: '80',
    hsts: '300',
    forwardToActive: true,
    advertiseHost: '10.0.0.3',
    directWorkers: true,
    maxConnections: '70',
    httpThreads: 'auto',
    maxBodyMemory: '40',
    maxResultMb: '2048',
    maxInputMb: '100',
    maxLbBody: '500',
    maxBodyDisk: '50',
    adminPort: '8081',
    adminHost: '10.0.0.1',
    maxConnectionsPerAddress: '7',
    maxConnectionsPerAccount: '8',
    maxConnectionsPerEndpoint: '9',
    accountObjects: '5',
    accountWorkersMin: '6',
    accountWorkers: '7',
    accountGpus: '8',
    accountQueuedJobs: '9',
    accountQueuedMb: '10',
    accountStoredMb: 'off',
    workerSandbox: 'required',
    workerNetwork: 'server',
    workerReadable: ['models'],
    workerWritable: ['results'],
    workerDisk: '5',
    workerCache: '40',
    modelCache: 'models',
    modelCacheSize: '50',
    hfEndpoint: 'https://mirror.example/hub/',
    container: true,
    docker: 'unix:///e.sock',
    dockerNetwork: 'mine',
    dockerWorkerAddress: '192.0.2.7',
    appImage: 'registry.lan/python:{python}',
    kubernetes: 'kubeconfig',
    kubernetesContext: 'lab',
    kubernetesNamespace: 'gpu',
    kubernetesInstallation: 'one',
    kubernetesWorkerUrl: 'http://runyard.gpu.svc:8082/',
    kubernetesWorkerHost: '::',
    kubernetesWorkerPort: '8090',
    kubernetesVolumeClaim: 'volumes',
    kubernetesModelFolder: 'models',
    kubernetesNetworkPolicy: 'closed',
    kubernetesGpuResource: 'amd.com/gpu',
    kubernetesGpuProduct: ['NVIDIA L4=L4'],
    kubernetesPriorityClass: 'low',
    kubernetesRuntimeClass: 'nvidia',
    kubernetesNodeSelector: ['pool=gpu'],
    kubernetesToleration: ['gpu=yes:NoSchedule'],
    kubernetesNodeLost: '60',
    kubernetesPodsReachable: true,
    startAware: true,
    rolloutJudge: 'off',
    requireGpu: true,
    dwell: '60',
    cpuOvercommit: '1.5',
    memoryOvercommit: '1',
    maxPause: '60',
    maxPaused: '2',
    pauseAcrossAccounts: true,
    frozenKeep: '600',
    frozenMinMemory: '20',
    suspendedMemory: '2048',
    database: 'postgres://me@db:5432/runyard?sslmode=require',
    newDatabase: true,
    deleteRunningEndpoints: true,
    backupFolder: 'backups',
    backupEvery: '6',
    backupKeep: '7',
    backupPassphraseFile: 'secret',
    backupWithLogs: true,
    backupPgDump: 'pg_dump',
    migrateTo: '3',
    historyDays: '1',
    historyJobs: '5',
    historyMb: '2',
    failedInputHours: '3',
    failedInputMb: '4',
    keepPayloads: true,
    maxBuildMb: '7',
    maxUnpackedBuildMb: '8',
    auditRetention: '30',
    auditEntries: '5000',
    sealPayloads: true,
    processes: 'off',
    acceptSharedHost: true,
    webhookPrivate: 'on',
    privateRegistry: ['r.lan:5000', '[fd00::5]'],
    smtpUrl: 'smtps://mail.example:465',
    smtpFrom: 'runyard@example.org',
    lb: ['api'],
    lbDomain: 'LB.example',
    lbPublic: ['chat', 'e1'],
    trustedProxy: ['10.0.0.0/8', '::1'],
  }
  const { rateWindows: _, nonDefaults, ...rest } = config(options)
  assert.deepEqual([nonDefaults['--host'], nonDefaults['--audit-entries']], [['::1'], ['5000']])
  assert.deepEqual(rest, {
    port: 0,
    host: '::1',
    dataDir: '/here/d',
    processRoots: ['/here/a', '/here/b'],
    publicUrl: 'https://x.example',
    consoleUrl: 'https://console.example',
    queueUrl: 'http://y:1',
    corsOrigins: ['https://app.example', '*'],
    workers: ['/here/w1', '/here/w2'],
    sample: true,
    databaseUrl: 'postgres://me@db:5432/runyard?sslmode=require',
    newDatabase: true,
    json: true,
    drainTimeoutMs: 5_000,
    maxWorkers: 7,
    folderGpu: 'RTX 4090',
    folderGpuCount: 2,
    folderGpuMemoryGb: 'auto',
    folderPriority: 'low',
    folderPreemptible: 'true',
    folderCommand: 'python app.py',
    folderSetup: true,
    folderWatch: true,
    storeHost: 'thread',
    logLevel: 'debug',
    apiKey: null,
    previousApiKey: null,
    metricsKey: null,
    webhookPublicOnly: true,
    metricsPublic: true,
    maxConnections: 70,
    httpThreads: null,
    bodyBytes: 40 * 1024 * 1024,
    resultBytes: 2048 * 1024 * 1024,
    inputBytes: 100 * 1024 * 1024,
    bodyDiskBytes: 50 * 1024 * 1024,
    adminPort: 8081,
    adminHost: '10.0.0.1',
    addressConnections: 7,
    accountConnections: 8,
    endpointConnections: 9,
    masterKeys: [],
    backupPassphrase: null,
    migrateTo: 3,
    backups: {
      folder: '/here/backups',
      everyMs: 6 * 3_600_000,
      keep: 7,
      passphraseFile: '/here/secret',
      withoutKeys: false,
      withLogs: true,
      pgDump: 'pg_dump',
    },
    tracing: null,
    limitJobs: false,
    deleteRunningEndpoints: true,
    prices: null,
    jobRecords: {
      keptMs: 86_400_000,
      maxRecords: 5,
      maxBytes: 2_097_152,
      failedInputsKeptMs: 10_800_000,
      failedInputsMaxBytes: 4_194_304,
      payloads: true,
    },
    artifacts: { maxBytes: 7 * 1024 * 1024, maxUnpackedBytes: 8 * 1024 * 1024 },
    audit: { keptMs: 2_592_000_000, maxEntries: 5_000 },
    sealPayloads: true,
    processes: 'off',
    acceptSharedHost: true,
    webhookPrivate: 'on',
    privateRegistries: ['r.lan:5000', '[fd00::5]'],
    mail: { smtpUrl: 'smtps://mail.example:465', smtpFrom: 'runyard@example.org' },
    workerSandbox: 'required',
    workerNetwork: 'server',
    workerReadable: ['/here/models'],
    workerWritable: ['/here/results'],
    workerDiskGb: 5,
    workerCacheGb: 40,
    startAware: true,
    rolloutJudge: 'off',
    modelCache: '/here/models',
    modelCacheGb: 50,
    modelHub: 'https://mirror.example/hub',
    placing: { requireGpu: true, dwellMs: 60_000, cpuOvercommit: 1.5, memoryOvercommit: 1 },
    pausing: { maxPauseMs: 60_000, maxPaused: 2, acrossAccounts: true },
    freezing: { keepMs: 600_000, minMemoryPercent: 20, suspendedBytes: 2 ** 31 },
    tls: {
      certFile: '/here/cert.pem',
      keyFile: '/here/key.pem',
      selfSigned: false,
      redirectPort: 80,
      hstsSeconds: 300,
    },
    forwardToActive: true,
    advertiseHost: '10.0.0.3',
    directWorkers: true,
    container: true,
    docker: 'unix:///e.sock',
    dockerNetwork: 'mine',
    dockerWorkerAddress: '192.0.2.7',
    appImage: 'registry.lan/python:{python}',
    kubernetes: {
      where: 'kubeconfig',
      context: 'lab',
      namespace: 'gpu',
      installation: 'one',
      workerUrl: 'http://runyard.gpu.svc:8082',
      workerHost: '::',
      workerPort: 8090,
      volumeClaim: 'volumes',
      modelFolder: 'models',
      networkPolicy: 'closed',
      gpuResource: 'amd.com/gpu',
      gpuProducts: ['NVIDIA L4=L4'],
      priorityClass: 'low',
      runtimeClass: 'nvidia',
      nodeSelector: ['pool=gpu'],
      tolerations: ['gpu=yes:NoSchedule'],
      nodeLostMs: 60_000,
      podsReachable: true,
    },
    lbFolders: ['/here/api'],
    lbDomain: 'lb.example',
    lbPublic: ['chat', 'e1'],
    trustedProxies: ['10.0.0.0/8', '::1'],
    allowedHosts: [],
    lbBodyBytes: 500 * 1024 * 1024,
    accountLimits: {
      objects: 5,
      workersMin: 6,
      workers: 7,
      gpus: 8,
      queuedJobs: 9,
      queuedMb: 10,
      storedMb: null,
      secretsMb: 64,
      buildsMb: 4_096,
      logsMb: 512,
    },
  })
})

test('the windows of REST have the given quotas, and no quota when they are off', () => {
  const quotas = (rateLimits: string) => config({ rateLimits }).rateWindows.map(({ name, quota }) => [name, quota])
  assert.deepEqual(quotas('minute=5,hour=6,day=7'), [
    ['minute', 5],
    ['hour', 6],
    ['day', 7],
  ])
  assert.deepEqual(quotas('hour=6'), [
    ['minute', 1_200],
    ['hour', 6],
    ['day', 500_000],
  ])
  assert.deepEqual(quotas('off'), [])
  for (const rateLimits of [
    'minute',
    'minute=',
    'minute=0',
    'minute=1,minute=2',
    'week=1',
    'off,minute=1',
    '=1',
    'minute=1,',
  ]) {
    assert.deepEqual(mistakes({ rateLimits }), [`--rate-limits ${WINDOWS_PROBLEM}, not '${rateLimits}'`])
  }
})

test('an address of a database is checked and never repeated, since it has a password', () => {
  for (const url of [
    'postgresql://h/d',
    'postgres://u@127.0.0.1:5432/d',
    'postgres://u%40@[::1]/d?options=-csearch_path%3Da',
  ]) {
    assert.equal(config({ database: url }).databaseUrl, url)
  }
  for (const url of [
    'mysql://me:hidden@db/d',
    'postgres://me:hidden@db',
    'postgres:///d',
    'hidden',
    'postgres://h/d d',
    'postgres://me:hid/den@db/d',
    'postgres://me:hid#den@db/d',
    'postgres://me:hid?den@db/d',
  ]) {
    const [mistake = ''] = mistakes({ database: url })
    assert.match(mistake, /^--database must be like postgres:\/\/user@host:5432\/database; in a user name or password/)
    assert.doesNotMatch(mistake, /hid/)
  }
  assert.match(mistakes({ database: 'postgres://u%@db/d' })[0]!, /^--database has a % that begins no code; .* % as %25/)
  assert.match(mistakes({ database: 'postgres://db/d?sslmode=verify' })[0]!, /^--database has an unknown sslmode; give/)
})

test('an option of TLS that would not be kept is refused, and so is a value that no connection could use', () => {
  const refusal = (options: string) => mistakes({ database: `postgres://db/d?${options}` })[0] ?? null
  const known = 'those of TLS are sslmode, sslrootcert, sslcert, sslkey, sslnegotiation'
  assert.equal(
    refusal('sslmode=verify-full&sslrootcrt=/ca.pem'),
    `--database has the unknown option sslrootcrt; ${known}`,
  )
  assert.equal(refusal('sslcrl=/crl.pem'), `--database has the unknown option sslcrl; ${known}`)
  for (const value of ['verify', 'false', ''])
    assert.equal(
      refusal(`ssl=${value}`),
      '--database has an unknown value of ssl; give sslmode=verify-full, or sslmode=disable',
    )
  for (const options of ['ssl=true', 'ssl=1', 'ssl=0', 'sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c&sslkey=/k'])
    assert.equal(refusal(options), null)
})

/** A valid text for each setting that is not its default. */
const OTHER: Record<string, string> = {
  port: '9',
  host: 'h',
  dataDir: 'd',
  database: 'postgres://h/d',
  newDatabase: 'true',
  processRoot: 'p:q',
  publicUrl: 'http://x',
  queueUrl: 'http://y',
  corsOrigin: 'http://p,http://q',
  consoleUrl: 'http://z',
  allowedHost: 'w',
  lb: 'k:l',
  lbDomain: 'z',
  lbPublic: 'one,two',
  maxLbBody: '31',
  trustedProxy: '::1,10.0.0.0/8',
  accountObjects: '1',
  accountWorkersMin: '1',
  accountWorkers: '1',
  accountGpus: '1',
  accountQueuedJobs: '1',
  accountQueuedMb: '1',
  accountStoredMb: '1',
  accountSecretsMb: '1',
  accountBuildsMb: '1',
  accountLogsMb: '1',
  maxBuildMb: '7',
  maxUnpackedBuildMb: '8',
  worker: 'v:w',
  gpu: 'any',
  gpus: '2',
  gpuMemory: '8',
  priority: 'high',
  preemptible: 'false',
  watch: 'true',
  setup: 'true',
  command: 'python app.py',
  container: 'true',
  sample: 'true',
  json: 'true',
  drainTimeout: '1',
  maxWorkers: '2',
  startAware: 'true',
  rolloutJudge: 'off',
  requireGpu: 'true',
  dwell: '5',
  cpuOvercommit: '3',
  memoryOvercommit: '3',
  maxPause: '5',
  maxPaused: '5',
  pauseAcrossAccounts: 'true',
  frozenKeep: '5',
  frozenMinMemory: '5',
  suspendedMemory: '5',
  maxConnections: '99',
  httpThreads: '3',
  maxBodyMemory: '64',
  maxResultMb: '21',
  maxInputMb: '22',
  adminPort: '8',
  adminHost: 'i',
  maxConnectionsPerAddress: '7',
  maxConnectionsPerAccount: '8',
  maxConnectionsPerEndpoint: '9',
  maxBodyDisk: '99',
  tlsCert: 'c',
  tlsKey: 'k',
  tlsSelfSigned: 'true',
  httpRedirectPort: '80',
  hsts: '5',
  forwardToActive: 'true',
  advertiseHost: 'me.example',
  directWorkers: 'true',
  docker: 'off',
  dockerNetwork: 'n',
  dockerWorkerAddress: 'a',
  appImage: 'a',
  kubernetes: 'in-cluster',
  kubernetesContext: 'c',
  kubernetesNamespace: 'n',
  kubernetesInstallation: 'i',
  kubernetesWorkerUrl: 'http://w',
  kubernetesWorkerHost: 'h',
  kubernetesWorkerPort: '9',
  kubernetesVolumeClaim: 'v',
  kubernetesModelFolder: 'm',
  kubernetesNetworkPolicy: 'off',
  kubernetesGpuResource: 'a.b/c',
  kubernetesGpuProduct: 'a=b,c=d',
  kubernetesPriorityClass: 'p',
  kubernetesRuntimeClass: 'r',
  kubernetesNodeSelector: 'a=b,c=d',
  kubernetesToleration: 'a,b=c:NoExecute',
  kubernetesNodeLost: '10',
  kubernetesPodsReachable: 'true',
  storeHost: 'inline',
  webhookPublicOnly: 'true',
  historyDays: '1',
  historyJobs: '9',
  historyMb: '9',
  failedInputHours: '9',
  failedInputMb: '9',
  keepPayloads: 'true',
  auditRetention: '9',
  auditEntries: '9000',
  sealPayloads: 'true',
  processes: 'off',
  acceptSharedHost: 'true',
  webhookPrivate: 'on',
  privateRegistry: 'r.lan,10.0.0.1:5000',
  smtpUrl: 'smtp://mail.example:587',
  smtpFrom: 'runyard@example.org',
  workerSandbox: 'off',
  workerNetwork: 'shared',
  workerReadable: 'm:n',
  workerWritable: 'r',
  workerDisk: '7',
  workerCache: '8',
  modelCache: '/m',
  modelCacheSize: '9',
  hfEndpoint: 'http://hub',
  rateLimits: 'minute=5',
  jobRateLimits: 'true',
  deleteRunningEndpoints: 'true',
  backupFolder: 'x',
  backupEvery: '2',
  backupKeep: '3',
  backupPassphraseFile: 'y',
  backupWithoutKeys: 'true',
  backupWithLogs: 'true',
  backupPgDump: 'dump',
  migrateTo: '4',
  prices: 'catalog',
  metricsPublic: 'true',
  logLevel: 'warn',
}

/** Settings that others require beside them. */
const BESIDE: Record<string, Given> = {
  tlsCert: { tlsKey: 'k' },
  tlsKey: { tlsCert: 'c' },
  httpRedirectPort: { tlsSelfSigned: true },
  hsts: { tlsSelfSigned: true },
  smtpUrl: { smtpFrom: 'runyard@example.org' },
  smtpFrom: { smtpUrl: 'smtp://mail.example' },
}

test('each setting is read from its variable, and the option wins over it', () => {
  assert.deepEqual(Object.keys(OTHER), Object.keys(SETTINGS))
  for (const [name, text] of Object.entries(OTHER)) {
    const { variable, many, separator = ':' } = SETTINGS[name]!
    const env = { [`RUNYARD_${variable}`]: text }
    const given = many === true ? text.split(separator) : text
    const beside = BESIDE[name] ?? {}
    const wanted = config({ ...beside, [name]: given })
    assert.deepEqual(config(beside, env), wanted, name)
    assert.notDeepEqual(wanted, config(beside.tlsSelfSigned === true ? beside : {}), name)
    const shadowed = { [`RUNYARD_${variable}`]: 'x'.repeat(3) }
    assert.deepEqual(config({ ...beside, [name]: given }, shadowed), wanted, name)
  }
})

test('settings of HTTPS that do not fit together are refused with a sentence that names them', () => {
  const pair = { tlsCert: 'c', tlsKey: 'k' }
  const needs = 'needs --tls-cert and --tls-key, or --tls-self-signed'
  for (const [options, mistake] of [
    [{ tlsCert: 'c' }, '--tls-cert needs --tls-key: --tls-cert and --tls-key belong together'],
    [{ tlsKey: 'k' }, '--tls-key needs --tls-cert: --tls-cert and --tls-key belong together'],
    [
      { ...pair, tlsSelfSigned: true },
      '--tls-self-signed makes a certificate of its own; leave out --tls-cert and --tls-key, or it',
    ],
    [{ httpRedirectPort: '80' }, `--http-redirect-port ${needs}`],
    [{ hsts: '60' }, `--hsts ${needs}`],
    [
      { ...pair, kubernetes: 'kubeconfig', kubernetesWorkerPort: '0', kubernetesWorkerUrl: 'http://s:1' },
      '--kubernetes-worker-port 0 lets pods call the port of clients, which speaks HTTPS then; give them a port of their own',
    ],
  ] as const)
    assert.deepEqual(mistakes(options), [mistake])
  assert.deepEqual(mistakes(pair), [])
  assert.deepEqual(
    mistakes({ ...pair, kubernetes: 'kubeconfig', kubernetesWorkerPort: '0', kubernetesWorkerUrl: 'https://s:1' }),
    [],
  )
})

test('what differs from the defaults is known, and nothing of it that may be a secret', () => {
  const database = 'postgres://me:hunter2@db:5432/runyard'
  const { nonDefaults } = config(
    { port: '8080', maxWorkers: '3' },
    { RUNYARD_DATABASE: database, RUNYARD_API_KEY: 'rpa_0123456789abcdefghijklmn' },
  )
  assert.deepEqual(nonDefaults, { '--max-workers': ['3'], '--database': ['set'] })
  assert.deepEqual(config().nonDefaults, {})
})

test('an empty variable counts as unset', () => {
  const env = Object.fromEntries(Object.values(SETTINGS).map(({ variable }) => [`RUNYARD_${variable}`, '']))
  assert.deepEqual(config({}, env), config())
})

test('options and variables are named alike', () => {
  for (const [name, { flag, variable }] of Object.entries(SETTINGS)) {
    assert.equal(flag, `--${name.replaceAll(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`)
    assert.equal(variable, flag.slice(2).replaceAll('-', '_').toUpperCase())
  }
})

const wrong: [option: string, text: string, mistake: string][] = [
  ['maxLbBody', '0', "--max-lb-body must be a whole number from 1 to 1000000, not '0'"],
  ['port', '65536', "--port must be a whole number from 0 to 65535, not '65536'"],
  ['port', '-1', "--port must be a whole number from 0 to 65535, not '-1'"],
  ['port', '80x', "--port must be a whole number from 0 to 65535, not '80x'"],
  ['port', '', "--port must be a whole number from 0 to 65535, not ''"],
  ['host', '', "--host must not be empty, not ''"],
  ['dataDir', '', "--data-dir must not be empty, not ''"],
  ['publicUrl', 'x.example', "--public-url must be an http or https origin without a path, not 'x.example'"],
  ['publicUrl', 'http://x/y', "--public-url must be an http or https origin without a path, not 'http://x/y'"],
  ['queueUrl', 'http://x?y', "--queue-url must be an http or https origin without a path, not 'http://x?y'"],
  ...['console.example', 'https://x/y', 'https://user@x', 'on'].map((text): [string, string, string] => [
    ...(['consoleUrl', text] as const),
    `--console-url must be off or an http or https origin without a path, such as https://console.example, not '${text}'`,
  ]),
  ['lbDomain', '*.x.example', "--lb-domain must be a domain such as lb.example, not '*.x.example'"],
  ['lbDomain', '10.0.0.1', "--lb-domain must be a domain such as lb.example, not '10.0.0.1'"],
  ['lbPublic', '', "--lb-public must not be empty, not ''"],
  ...['10.0.0.0/33', '10.0.0', '256.0.0.1', '::1/129', 'fd00::g', '10.0.0.1/8/8', '10.0.0.1/', 'proxy'].map(
    (text): [string, string, string] => [
      ...(['trustedProxy', text] as const),
      `--trusted-proxy must be an IP address or a network such as 10.0.0.0/8, not '${text}'`,
    ],
  ),
  ['drainTimeout', '1.5', "--drain-timeout must be a whole number from 0 to 86400, not '1.5'"],
  ['maxWorkers', '0', "--max-workers must be a whole number from 1 to 10000, not '0'"],
  ['httpThreads', '0', "--http-threads must be auto or a whole number from 1 to 64, not '0'"],
  ['maxConnections', '63', "--max-connections must be a whole number from 64 to 1000000, not '63'"],
  ['maxBodyMemory', '31', "--max-body-memory must be a whole number from 32 to 1000000, not '31'"],
  ['maxResultMb', '2049', "--max-result-mb must be a whole number from 20 to 2048, not '2049'"],
  ['maxInputMb', '19', "--max-input-mb must be a whole number from 20 to 2048, not '19'"],
  ['maxResultMb', '19', "--max-result-mb must be a whole number from 20 to 2048, not '19'"],
  ['dwell', '-1', "--dwell must be a whole number from 0 to 86400, not '-1'"],
  ['cpuOvercommit', '0.5', "--cpu-overcommit must be a number from 1 to 100, not '0.5'"],
  ['memoryOvercommit', 'x', "--memory-overcommit must be a number from 1 to 100, not 'x'"],
  ['hsts', '63072001', "--hsts must be a whole number from 0 to 63072000, not '63072001'"],
  ['httpRedirectPort', '65536', "--http-redirect-port must be a whole number from 0 to 65535, not '65536'"],
  ['storeHost', 'disk', "--store-host must be one of auto, inline, thread, not 'disk'"],
  [
    'docker',
    'here',
    "--docker must be auto, off, or an address such as unix:///var/run/docker.sock or tcp://host:2375, not 'here'",
  ],
  [
    'kubernetes',
    'on',
    "--kubernetes must be off, in-cluster, kubeconfig, or the address of kubectl proxy, as http://127.0.0.1:8001, not 'on'",
  ],
  ['kubernetesModelFolder', '../x', "--kubernetes-model-folder must be a relative path without .., not '../x'"],
  ['logLevel', 'loud', "--log-level must be one of debug, info, warn, error, silent, not 'loud'"],
  ['sample', 'yes', "--sample must be one of true, false, not 'yes'"],
]

for (const [option, text, mistake] of wrong) {
  test(`${SETTINGS[option]!.flag} '${text}' is refused with a sentence`, () => {
    assert.deepEqual(mistakes({ [option]: text }), [mistake])
  })
}

test('all mistakes are reported at once, each with the place where it was made', () => {
  const env = { RUNYARD_MAX_WORKERS: 'many', RUNYARD_WORKER: 'a::b', RUNYARD_API_KEY: 'short' }
  assert.deepEqual(mistakes({ port: 'x', logLevel: 'loud' }, env), [
    "--port must be a whole number from 0 to 65535, not 'x'",
    "RUNYARD_WORKER must not be empty, not ''",
    "RUNYARD_MAX_WORKERS must be a whole number from 1 to 10000, not 'many'",
    "--log-level must be one of debug, info, warn, error, silent, not 'loud'",
    'RUNYARD_API_KEY must have 20 to 256 visible ASCII characters',
  ])
})

test('the API key comes from the environment alone, and no mistake ever shows it', () => {
  const metrics = 'ry_metrics_0123456789'
  assert.deepEqual([config({}).metricsKey, config({}, { RUNYARD_METRICS_KEY: metrics }).metricsKey], [null, metrics])
  assert.deepEqual(mistakes({}, { RUNYARD_METRICS_KEY: 'short' }), [
    'RUNYARD_METRICS_KEY must have 20 to 256 visible ASCII characters',
  ])
  assert.deepEqual(mistakes({}, { RUNYARD_METRICS_KEY: metrics, RUNYARD_API_KEY: metrics }), [
    'RUNYARD_METRICS_KEY must be another key than RUNYARD_API_KEY',
  ])
  const previous = 'rpa_before_0123456789'
  const ofPrevious = (env: Record<string, string>) => config({}, env).previousApiKey
  assert.deepEqual([ofPrevious({}), ofPrevious({ RUNYARD_PREVIOUS_API_KEY: previous })], [null, previous])
  assert.deepEqual(mistakes({}, { RUNYARD_PREVIOUS_API_KEY: 'short' }), [
    'RUNYARD_PREVIOUS_API_KEY must have 20 to 256 visible ASCII characters',
  ])
  assert.deepEqual(mistakes({}, { RUNYARD_PREVIOUS_API_KEY: previous, RUNYARD_API_KEY: previous }), [
    'RUNYARD_PREVIOUS_API_KEY must be another key than RUNYARD_API_KEY',
  ])
  assert.equal(config({}, { RUNYARD_API_KEY: 'rpa_0123456789abcdef' }).apiKey, 'rpa_0123456789abcdef')
  for (const key of ['', 'rpa_0123456789abcde', 'has a blank between two', 'umläut_of_much_length', 'x'.repeat(257)]) {
    const found = mistakes({}, { RUNYARD_API_KEY: key })
    assert.deepEqual(found, ['RUNYARD_API_KEY must have 20 to 256 visible ASCII characters'], key)
  }
})

test('encryption keys come from the environment alone, and no mistake ever shows one', () => {
  const [one, two] = [1, 2].map(byte => Buffer.alloc(32, byte).toString('base64'))
  assert.deepEqual(config({}, { RUNYARD_MASTER_KEY: one }).masterKeys, [one])
  assert.deepEqual(config({}, { RUNYARD_MASTER_KEY: `${one},${two}` }).masterKeys, [one, two])
  for (const text of ['short', `${one}x`, `${one} ${two}`, Array(4).fill(one).join(',')]) {
    const found = mistakes({}, { RUNYARD_MASTER_KEY: text })
    assert.deepEqual(found, [
      'RUNYARD_MASTER_KEY must be 32 bytes in base64, or up to three of these with commas between them',
    ])
  }
})

test('prices come from a file or the catalog, and their mistakes are reported with the others', () => {
  const files: Env = { '/here/p.json': '{"gpu": {"ADA_24": 2}}', '/here/bad.json': '{"gpu": {"RTX": 1, "ADA_24": -1}}' }
  const reading = (file: string, options: Given = {}) =>
    readConfig({
      options,
      env: { RUNYARD_PRICES: file },
      absolute: path => `/here/${path}`,
      read: path => files[path] ?? assert.fail('there is no such file'),
    })
  const prices = (file: string) => {
    const result = reading(file)
    assert.ok('config' in result)
    return result.config.prices
  }
  assert.equal(prices('p.json')?.gpu.get('ADA_24'), 2_000_000)
  assert.equal(prices('catalog')?.gpu.get('ADA_24'), 1_116_000)
  assert.equal(prices(''), null)
  const wrong = reading('bad.json', { port: 'x' })
  assert.ok('mistakes' in wrong)
  assert.deepEqual(
    wrong.mistakes.map(text => text.slice(0, 30)),
    ['--port must be a whole number from 0', 'bad.json: gpu.RTX is not known', 'bad.json: gpu.ADA_24 must be d'].map(
      text => text.slice(0, 30),
    ),
  )
  assert.deepEqual(reading('none.json'), { mistakes: ['none.json: cannot be read: there is no such file'] })
})

test('a variable that is not a setting is said, with the one that may be meant', () => {
  const env = {
    RUNYARD_MAX_WORKER: '1',
    RUNYARD_GARDEN: 'x',
    PORT: '1',
    RUNYARD_PORT: '1',
    RUNYARD_URL: 'u',
    RUNYARD_API_KEY: 'k',
    RUNYARD_TEST_DOCKER: 'd',
  }
  assert.deepEqual(strayVariables(env), [
    'RUNYARD_MAX_WORKER is not a setting; did you mean RUNYARD_MAX_WORKERS?',
    'RUNYARD_GARDEN is not a setting',
  ])
})

test('the console is given no host by which clients call the server, whatever the port', () => {
  const clashes: readonly [options: Record<string, unknown>, flag: string][] = [
    [{ publicUrl: 'https://x.example' }, '--public-url'],
    [{ queueUrl: 'http://X.example:99' }, '--queue-url'],
    [{ lbDomain: 'x.example' }, '--lb-domain'],
    [{ host: 'x.example' }, '--host'],
    [{ adminHost: 'x.example' }, '--admin-host'],
    [{ allowedHost: ['y.example', 'x.example'] }, '--allowed-host'],
  ]
  for (const [options, name] of clashes) {
    const sentence = `--console-url has the host of ${name}, x.example; give the console a host of its own, such as https://console.example`
    assert.deepEqual(mistakes({ ...options, consoleUrl: 'https://x.example:8443' }), [sentence])
  }
  for (const host of ['localhost', '127.0.0.1', '[::1]', '192.0.2.1']) {
    const [mistake = ''] = mistakes({ host: '0.0.0.0', adminHost: '0.0.0.0', consoleUrl: `http://${host}:8080` })
    assert.match(mistake, /has a host by which clients call this server/)
  }
  assert.equal(config({ consoleUrl: 'off', publicUrl: 'https://off' }).consoleUrl, 'off')
  assert.equal(config({ consoleUrl: 'http://console.localhost:9000/' }).consoleUrl, 'http://console.localhost:9000')
})

test('backups that the server makes have a passphrase, or say that they have no keys', () => {
  const read = (given: { options?: object; env?: Record<string, string>; files?: Record<string, string> }) => {
    const options = { backupFolder: 'b', ...given.options }
    const file = (path: string) => given.files?.[path] ?? assert.fail('no such file')
    const reading = readConfig({ options, env: given.env ?? {}, absolute: path => `/here/${path}`, read: file })
    return 'mistakes' in reading ? reading.mistakes : reading.config.backupPassphrase
  }
  const long = 'twelve or more'
  const env = { RUNYARD_BACKUP_PASSPHRASE: long }
  assert.equal(read({ env }), long)
  assert.equal(read({ options: { backupPassphraseFile: 'p' }, files: { '/here/p': `${long}\n` } }), long)
  assert.equal(read({ options: { backupWithoutKeys: true }, env }), null)
  assert.equal(read({ options: { backupFolder: undefined }, env }), null)
  assert.deepEqual(read({}), [
    '--backup-folder needs a passphrase for the keys: set RUNYARD_BACKUP_PASSPHRASE or give --backup-passphrase-file; --backup-without-keys leaves the keys out',
  ])
  assert.deepEqual(read({ env: { RUNYARD_BACKUP_PASSPHRASE: 'short' } }), [
    'RUNYARD_BACKUP_PASSPHRASE must have 12 to 1024 characters',
  ])
  assert.deepEqual(read({ options: { backupPassphraseFile: 'p' } }), [
    '--backup-passphrase-file /here/p cannot be read: no such file',
  ])
  assert.deepEqual(read({ options: { backupPassphraseFile: 'p', backupWithoutKeys: true } }), [
    '--backup-without-keys leaves out the keys of --backup-passphrase-file',
  ])
})

const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' }

test('traces are recorded when a variable of OpenTelemetry says where they go, and only then', () => {
  assert.equal(config().tracing, null)
  assert.deepEqual(config({}, COLLECTOR).tracing, {
    protocol: 'http/protobuf',
    serviceName: 'runyard',
    resource: {},
    sampling: { sampler: 'parentbased_always_on', ratio: 1 },
    limits: { maxQueueSize: 2_048, maxExportBatchSize: 512, scheduleDelayMs: 5_000, exportTimeoutMs: 30_000 },
  })
  assert.notEqual(config({}, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://a/v1/traces' }).tracing, null)
  assert.equal(config({}, { ...COLLECTOR, OTEL_SDK_DISABLED: 'true' }).tracing, null)
  assert.equal(config({}, { ...COLLECTOR, OTEL_TRACES_EXPORTER: 'none' }).tracing, null)
  assert.equal(config({}, { OTEL_EXPORTER_OTLP_ENDPOINT: '', OTEL_TRACES_SAMPLER: 'nonsense' }).tracing, null)
})

test('the variables of OpenTelemetry have their usual meanings', () => {
  const { tracing } = config(
    {},
    {
      ...COLLECTOR,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other, region=eu%2Dwest,',
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '.25',
      OTEL_BSP_MAX_QUEUE_SIZE: '600',
    },
  )
  assert.equal(tracing?.protocol, 'http/json')
  assert.deepEqual([tracing?.serviceName, tracing?.resource], ['other', { region: 'eu-west' }])
  assert.deepEqual(tracing?.sampling, { sampler: 'traceidratio', ratio: 0.25 })
  assert.equal(tracing?.limits.maxQueueSize, 600)
  const named = { ...COLLECTOR, OTEL_SERVICE_NAME: 'mine', OTEL_RESOURCE_ATTRIBUTES: 'service.name=other' }
  assert.equal(config({}, named).tracing?.serviceName, 'mine')
})

test('wrong variables of OpenTelemetry are mistakes, and an address that may hold a password is not repeated', () => {
  const wrong = (env: Env) => mistakes({}, { ...COLLECTOR, ...env })
  assert.deepEqual(wrong({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }), [
    "OTEL_EXPORTER_OTLP_PROTOCOL must be one of http/protobuf, http/json, not 'grpc'; collectors take http/protobuf at port 4318",
  ])
  assert.match(wrong({ OTEL_TRACES_SAMPLER: 'some' })[0]!, /^OTEL_TRACES_SAMPLER must be one of always_on, /)
  assert.match(
    wrong({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' })[0]!,
    /from 0 to 1, not '2'$/,
  )
  assert.match(wrong({ OTEL_RESOURCE_ATTRIBUTES: 'a' })[0]!, /name=value pairs/)
  assert.match(wrong({ OTEL_RESOURCE_ATTRIBUTES: 'a=%' })[0]!, /name=value pairs/)
  assert.match(wrong({ OTEL_BSP_SCHEDULE_DELAY: '1s' })[0]!, /^OTEL_BSP_SCHEDULE_DELAY must be a whole number/)
  assert.match(wrong({ OTEL_BSP_MAX_QUEUE_SIZE: '10' })[0]!, /must not be more than OTEL_BSP_MAX_QUEUE_SIZE$/)
  assert.match(wrong({ OTEL_TRACES_EXPORTER: 'zipkin' })[0]!, /^OTEL_TRACES_EXPORTER must be otlp or none/)
  const [about] = wrong({ OTEL_EXPORTER_OTLP_ENDPOINT: 'user:secret@host:4318' })
  assert.match(about!, /must be http or https addresses$/)
  assert.doesNotMatch(about!, /secret/)
})

test('the options in which servers of one database may differ exist', () => {
  const flags = Object.values(SETTINGS).map(({ flag }) => flag)
  assert.deepEqual(
    [...MAY_DIFFER].filter(flag => !flags.includes(flag)),
    [],
  )
})

test('a password of a mail server is taken from the environment alone, and a mail server needs a sender', () => {
  const problems = (options: Given) => mistakes(options).join('\n')
  const smtpFrom = 'runyard@example.org'
  assert.match(problems({ smtpUrl: 'smtp://u:hush@mail.example', smtpFrom }), /must not have a password/)
  assert.doesNotMatch(problems({ smtpUrl: 'smtp://u:hush@mail.example', smtpFrom }), /hush/)
  assert.match(problems({ smtpUrl: 'smtp://mail.example' }), /--smtp-url needs --smtp-from/)
  assert.match(problems({ smtpFrom }), /--smtp-from needs --smtp-url/)
})
