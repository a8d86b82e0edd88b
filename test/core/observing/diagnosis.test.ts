/** Diagnosis of a machine, by the findings on it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as diagnosis from '../../../src/core/observing/diagnosis.ts'
import type { ContainerReach } from '../../../src/core/workers/container-reach.ts'

const GB = 1_000_000_000
const folder: diagnosis.DataDirFacts = {
  path: '/data',
  kind: 'folder',
  refusal: null,
  mode: 0o700,
  freeBytes: 100 * GB,
}
const engine: diagnosis.EngineState = {
  address: 'unix:///run/docker.sock',
  problem: null,
  product: 'docker',
  version: '28.2.2',
  apiVersion: '1.50',
  storageDriver: 'overlay2',
  cgroupVersion: '2',
  rootless: false,
  missingLimits: [],
  freeBytes: 100 * GB,
  skewMs: 12,
  hasNvidiaRuntime: false,
}
const noGpus: diagnosis.GpuFacts = { nvidia: [], problem: null, nvidiaDriver: false, amd: false, hasCdi: false }
const port: diagnosis.PortFacts = { host: '127.0.0.1', port: 8080, serverUrl: null, problem: null, holder: null }
const network = { name: 'runyard-abc', isolated: true }
const gateway: ContainerReach = {
  how: 'gateway',
  listenOn: '172.18.0.1',
  host: '172.18.0.1',
  extraHosts: [],
  serving: 'direct',
}

/** Each finding as one line. */
const messages = (...found: (diagnosis.Finding | diagnosis.Finding[])[]) =>
  found
    .flat()
    .map(
      ({ check, state, message, action }) => `${state} ${check}: ${message}${action === null ? '' : ` -> ${action}`}`,
    )

/** Asserts the beginnings of the lines. */
function begins(lines: readonly string[], wanted: readonly string[]): void {
  assert.deepEqual(
    lines.map((line, index) => line.slice(0, wanted[index]?.length ?? 0)),
    wanted,
  )
}

const backups = { folder: '/b', everyMs: 24 * 3_600_000, problem: null, newestAgeMs: 47 * 3_600_000, broken: [] }

test('a machine where all is well has nothing but good lines', () => {
  const all = [
    ...[
      diagnosis.checkNode('26.10.0'),
      ...diagnosis.checkDataDir(folder),
      diagnosis.checkOpenFiles(20_000),
      diagnosis.checkPort(port),
    ],
    diagnosis.checkMemory({ totalBytes: 16 * 2 ** 30, freeBytes: 8 * 2 ** 30 }),
    ...diagnosis.checkDatabase({
      kind: 'PostgreSQL',
      problem: null,
      remedy: null,
      version: '17.1, schema 8',
      skewMs: -40,
    }),
    ...[
      ...diagnosis.checkEngine(engine),
      diagnosis.checkGpus(noGpus, engine),
      diagnosis.checkNetwork(gateway, network, null),
    ],
    diagnosis.checkProbe({ what: 'reached', image: 'busybox:1' }, { platform: 'linux' }),
    diagnosis.checkBackups(backups),
  ]
  assert.deepEqual(new Set(all.map(({ state }) => state)), new Set(['ok']))
  assert.ok(all.every(({ action }) => action === null))
})

test('whatever fails or warns says what to do', () => {
  const lines = [
    diagnosis.checkNode('22.1.0'),
    ...diagnosis.checkDataDir({ ...folder, refusal: CLOSED, freeBytes: 1 }),
    diagnosis.checkMemory({ totalBytes: 2 ** 30, freeBytes: 2 ** 20 }),
    diagnosis.checkOpenFiles(256),
    diagnosis.checkPort({ ...port, problem: 'EADDRINUSE' }),
    ...diagnosis.checkDatabase({
      kind: 'file',
      problem: 'it cannot be read: file is not a database',
      remedy: null,
      version: null,
      skewMs: null,
    }),
    ...diagnosis.checkEngine(null),
    ...diagnosis.checkEngine({ ...engine, problem: 'EACCES' }),
    diagnosis.checkGpus({ ...noGpus, nvidia: ['H200'] }, engine),
    diagnosis.checkProbe({ what: 'unreached', image: 'busybox:1', error: 'timed out' }, { platform: 'linux' }),
    diagnosis.checkBackups({ ...backups, problem: 'ENOENT' }),
    diagnosis.checkBackups({ ...backups, newestAgeMs: null }),
    diagnosis.checkBackups({ ...backups, broken: ['b'] }),
    diagnosis.checkBackups({ ...backups, newestAgeMs: null, broken: ['b'] }),
    diagnosis.checkBackups({ ...backups, newestAgeMs: 49 * 3_600_000 }),
  ]
  for (const { check, state, action } of lines) {
    assert.ok(state === 'fail' || state === 'warn', check)
    assert.ok(action !== null && action.length > 5, check)
  }
})

const CLOSED = '/data may not be entered (EACCES)'

test('a data directory is made, private and writable, or the reason is given', () => {
  const line = (facts: Partial<diagnosis.DataDirFacts>) =>
    messages(diagnosis.checkDataDir({ ...folder, ...facts })[0]!)[0]!
  assert.equal(line({ kind: 'missing', mode: null }), 'ok data directory: /data is made by the first start')
  assert.equal(
    line({ kind: 'missing', refusal: CLOSED }),
    `fail data directory: /data cannot be used: ${CLOSED} -> run this as its owner, or give another --data-dir`,
  )
  assert.match(line({ kind: 'other' }), /^fail .*is not a folder/)
  assert.match(line({ mode: 0o755 }), /^warn .*can be read by others -> chmod 700/)
})

test('a disk has room, is nearly full, is full, or says nothing', () => {
  const state = (freeBytes: number | null) => diagnosis.checkDataDir({ ...folder, freeBytes })[1]!.state
  assert.deepEqual([100 * GB, 4 * GB, 0.5 * GB, null].map(state), ['ok', 'warn', 'fail', 'skip'])
})

test('memory and open files have two limits each', () => {
  const memory = (freeMb: number) => diagnosis.checkMemory({ totalBytes: 2 ** 34, freeBytes: freeMb * 2 ** 20 }).state
  assert.deepEqual([512, 511, 128, 127].map(memory), ['ok', 'warn', 'warn', 'fail'])
  const files = (limit: number | null) => diagnosis.checkOpenFiles(limit).state
  assert.deepEqual([4096, 1024, 511, null].map(files), ['ok', 'warn', 'fail', 'skip'])
})

test('a port is free, belongs to this server, or its holder is named', () => {
  const line = (facts: Partial<diagnosis.PortFacts>) => messages(diagnosis.checkPort({ ...port, ...facts }))[0]!
  assert.equal(line({ serverUrl: 'http://127.0.0.1:8080' }), 'ok server: it runs and answers at http://127.0.0.1:8080')
  assert.match(line({ problem: 'EADDRINUSE', holder: 'pid 7 (nginx)' }), /port 8080 is in use by pid 7 \(nginx\)/)
  assert.match(line({ problem: 'EACCES', port: 80 }), /may not listen on port 80 -> give a --port above 1023/)
  assert.match(
    line({ problem: 'EADDRNOTAVAIL', host: '203.0.113.9' }),
    /203\.0\.113\.9 is not an address of this machine/,
  )
  assert.match(line({ problem: 'EWEIRD' }), /cannot listen .*EWEIRD/)
})

test('a certificate is valid for two weeks or more, or should be renewed, or cannot be used', () => {
  const DAY_MS = 86_400_000
  const line = (days: number) =>
    messages(diagnosis.checkCertificate({ subject: 'CN=a.example', expiresAtMs: days * DAY_MS }, 0))[0]!
  assert.equal(line(14), 'ok certificate: the one of CN=a.example is valid for 14 days')
  assert.match(line(1.5), /^warn certificate: the one of CN=a\.example is valid for 1 day -> renew its files/)
  const unfit = messages(diagnosis.checkCertificate({ problem: 'the key in k is not that of c' }, 0))[0]!
  assert.equal(
    unfit,
    'fail certificate: the key in k is not that of c -> give files that fit in --tls-cert and --tls-key',
  )
})

test('clocks that differ are reported, in both directions', () => {
  const clock = (skewMs: number) => messages(diagnosis.checkEngine({ ...engine, skewMs }).at(-1)!)[0]!
  assert.equal(clock(1_999), 'ok clock: the clock of the engine agrees with this one')
  assert.match(clock(-2_000), /^warn clock: .* 2\.0 s behind this one -> let both be set over the network/)
  assert.match(clock(31_000), /^fail clock: .* 31\.0 s ahead of this one/)
  const postgres = diagnosis.checkDatabase({
    kind: 'PostgreSQL',
    problem: null,
    remedy: null,
    version: '17',
    skewMs: 5_000,
  })
  begins(messages(postgres), ['ok database: PostgreSQL answers', 'warn clock: the clock of PostgreSQL is 5.0 s ahead'])
})

test('an engine that cannot be called says why by the code of the system', () => {
  const line = (problem: string) => messages(diagnosis.checkEngine({ ...engine, problem }))[0]!
  assert.match(line('EACCES'), /this user may not use .* -> add the user to the group/)
  assert.match(line('ENOENT'), /nothing answers .* -> start the engine/)
  assert.match(line('ETIMEDOUT'), /nothing answers .*ETIMEDOUT/)
})

test('each feature that an engine lacks is reported by itself', () => {
  const lacking = diagnosis.checkEngine({
    ...engine,
    apiVersion: '1.39',
    storageDriver: 'vfs',
    missingLimits: ['cpu', 'pids'],
    rootless: true,
    freeBytes: GB,
  })
  begins(messages(lacking), [
    ...['fail engine: Docker 28.2.2, without root speaks API 1.39 only', 'warn engine storage: vfs'],
    ...[
      'warn engine limits: containers cannot be limited in cpu, pids -> delegate',
      'fail engine disk: 1.0 GB',
      'ok clock',
    ],
  ])
})

test('GPUs are for containers only where the engine can hand them on', () => {
  const cards = { ...noGpus, nvidia: ['NVIDIA H200', 'NVIDIA H200'], nvidiaDriver: true }
  const line = (gpus: diagnosis.GpuFacts, state: diagnosis.EngineState | null) =>
    messages(diagnosis.checkGpus(gpus, state))[0]!
  assert.match(line(cards, engine), /^fail gpu: 2 \(NVIDIA H200\), which .* -> install the NVIDIA Container Toolkit/)
  assert.equal(line(cards, { ...engine, hasNvidiaRuntime: true }), 'ok gpu: 2 (NVIDIA H200), for containers too')
  assert.equal(line({ ...cards, hasCdi: true }, engine), 'ok gpu: 2 (NVIDIA H200), for containers too')
  assert.equal(line(cards, null), 'ok gpu: 2 (NVIDIA H200)')
  assert.match(messages(diagnosis.checkGpus(noGpus, null, true))[0]!, /^ok gpu: none here; .* on nodes of the cluster/)
  assert.match(line({ ...noGpus, nvidiaDriver: true }, engine), /^warn gpu: .*lists no card/)
  assert.match(line({ ...noGpus, amd: true }, engine), /^ok gpu: an AMD GPU/)
  const hangs = 'nvidia-smi did not end within 10 s'
  assert.match(
    line({ ...noGpus, problem: hangs }, engine),
    /^warn gpu: nvidia-smi did not end within 10 s -> run that tool/,
  )
  assert.match(line({ ...cards, problem: 'GPU 1 does not answer' }, null), /^warn gpu: 2 can be read; GPU 1 does not/)
})

test('suspending is reported with its lack, and with the risk where threads cannot be held', () => {
  const line = (lack: string | null, canHold: boolean) => messages(diagnosis.checkGpuSuspend(lack, canHold))[0]!
  assert.equal(line(null, true), 'ok gpu suspend: the driver can suspend processes; runyard doctor --gpu tries it')
  assert.match(
    line(null, false),
    /^ok gpu suspend: .* this server may make no control groups of version 2, so a process/,
  )
  assert.match(line('MPS runs', false), /^ok gpu suspend: processes keep their memory .*: MPS runs$/)
})

test('a missing connection is reported with what to do', () => {
  const none: ContainerReach = {
    how: 'none',
    problem: 'the engine is on another machine',
    action: 'give --docker-worker-address x',
  }
  assert.deepEqual(messages(diagnosis.checkNetwork(none, network, null)), [
    'fail network: containers cannot reach this server: the engine is on another machine -> give --docker-worker-address x',
  ])
  begins(messages(diagnosis.checkNetwork(gateway, { name: 'mine', isolated: false }, null)), [
    'warn network: containers in mine reach each other',
  ])
  begins(messages(diagnosis.checkNetwork(null, null, "the engine has no network 'mine'")), [
    "fail network: the engine has no network 'mine'",
  ])
})

test('what could not be tested is neither good nor bad', () => {
  const found = diagnosis.checkProbe({ what: 'untested', why: 'the engine has no image' }, { platform: 'linux' })
  assert.deepEqual(messages(found), ['skip reachability: not tested: the engine has no image'])
})

test('a cluster answers or says why not, and which rights are missing', () => {
  const cluster: diagnosis.ClusterState = {
    problem: null,
    address: 'https://k',
    version: 'v1.34.4',
    namespace: 'n',
    missing: [],
    lacking: [],
  }
  const words = (state: Partial<diagnosis.ClusterState>) =>
    diagnosis.checkCluster({ ...cluster, ...state }).map(finding => `${finding.state} ${finding.message}`)
  assert.deepEqual(words({}), [
    'ok Kubernetes v1.34.4 at https://k, namespace n',
    'ok this server has all required rights',
  ])
  assert.deepEqual(words({ problem: 'nobody listens' }), [
    'fail the cluster at https://k does not respond: nobody listens',
  ])
  const lacking = diagnosis.checkCluster({ ...cluster, missing: ['create pods'], lacking: ['get nodes'] })
  assert.deepEqual(
    [lacking[1]?.state, lacking[1]?.message],
    ['fail', 'this server may not create pods in the namespace n'],
  )
  const weaker = diagnosis.checkCluster({ ...cluster, lacking: ['get nodes'] })
  assert.deepEqual(
    [weaker[1]?.state, weaker[1]?.message],
    ['warn', 'this server may not get nodes; it works without these rights'],
  )
})

test('a clock that differs from the time of the server is a warning that says by how much and what to do', () => {
  assert.deepEqual(diagnosis.checkServerTime(null), [])
  assert.equal(diagnosis.checkServerTime(1_500)[0]?.state, 'ok')
  const [found] = diagnosis.checkServerTime(-7_200_000)
  assert.deepEqual([found?.check, found?.state], ['clock', 'warn'])
  assert.match(`${found?.message}; ${found?.action}`, /2 h behind the time of the server.*runyard clock accept/)
})
