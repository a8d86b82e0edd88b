/** Manifests of pods. Whole objects are recorded, so that a change of one is seen in a review. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, OwnerId, VolumeId, WorkerId } from '../../../src/core/ids.ts'
import { WorkerStartError } from '../../../src/core/workers/start-failure.ts'
import { ANY_PLACE } from '../../../src/core/workers/worker-wish.ts'
import { gpuTypeFromProduct, nodeAffinity } from '../../../src/drivers/kubernetes/node-choice.ts'
import { type PodSettings, podManifest, secretManifests } from '../../../src/drivers/kubernetes/pod-spec.ts'
import type { WorkerSpec } from '../../../src/ports/driver.ts'
import { PLAIN_WORKER, POD_SETTINGS } from '../../support/worker-spec.ts'

const { gpus: GPUS } = POD_SETTINGS
const SPEC: WorkerSpec = {
  ...PLAIN_WORKER,
  workerId: 'w1' as WorkerId,
  endpointId: 'e1' as EndpointId,
  image: 'app:1',
  args: '',
}

const context = (settings: Partial<PodSettings> = {}, image = 'app:1') => ({
  installation: 'inst1',
  namespace: 'gpu',
  image,
  settings: { ...POD_SETTINGS, ...settings },
})

const pod = (changes: Partial<WorkerSpec> = {}, settings: Partial<PodSettings> = {}) =>
  podManifest({ ...SPEC, ...changes }, context(settings)) as {
    metadata: { annotations: Record<string, string> }
    spec: Record<string, unknown> & { containers: Record<string, unknown>[] }
  }

const SILENCE = ['not-ready', 'unreachable'].map(taint => ({
  key: `node.kubernetes.io/${taint}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 300,
}))

test('the smallest pod', () => {
  assert.deepEqual(pod(), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'runyard-w1',
      namespace: 'gpu',
      labels: {
        'app.kubernetes.io/managed-by': 'runyard',
        'runyard.dev/installation': 'inst1',
        'runyard.dev/worker': 'w1',
        'runyard.dev/endpoint': 'e1',
      },
      annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
    },
    spec: {
      hostname: 'w1',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 30,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      shareProcessNamespace: true,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      tolerations: SILENCE,
      containers: [
        {
          name: 'worker',
          image: 'app:1',
          envFrom: [{ secretRef: { name: 'runyard-w1' } }],
          resources: { requests: {}, limits: {} },
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: {
              drop: ['ALL'],
              add: ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID'],
            },
          },
          volumeMounts: [{ name: 'shared-memory', mountPath: '/dev/shm' }],
        },
      ],
      volumes: [{ name: 'shared-memory', emptyDir: { medium: 'Memory' } }],
    },
  })
})

test('a pod says whose it is, to people who look at the cluster', () => {
  const labels = (owner: string) =>
    (pod({ owner: owner as OwnerId }) as unknown as { metadata: { labels: Record<string, string> } }).metadata.labels
  assert.equal(labels('acct1')['runyard.dev/owner'], 'acct1')
  assert.equal(labels('no label!')['runyard.dev/owner'], undefined)
})

test('a worker for requests, with vCPUs, memory, a disk and all that an operator may set', () => {
  const toleration = { key: 'pool', operator: 'Equal', value: 'a', effect: 'NoSchedule' } as const
  const { metadata, spec } = pod(
    {
      wish: { ...ANY_PLACE, cpus: [{ flavor: 'cpu3c', vcpus: 2, memoryMb: 4096 }] },
      diskGb: 5,
      serves: { port: 8000, healthPort: 8001 },
      ports: ['8000/http', '53/udp', '99999/tcp'],
    },
    {
      priorityClass: 'low',
      runtimeClass: 'nvidia',
      nodeSelector: { pool: 'a' },
      tolerations: [toleration],
    },
  )
  const both = { cpu: '2', memory: '4096Mi', 'ephemeral-storage': '5G' }
  assert.deepEqual(spec.containers[0]?.resources, { requests: both, limits: both })
  assert.deepEqual(spec.containers[0]?.ports, [
    { containerPort: 8000, protocol: 'TCP' },
    { containerPort: 8001, protocol: 'TCP' },
    { containerPort: 53, protocol: 'UDP' },
  ])
  assert.equal(metadata.annotations['runyard.dev/serves'], '8000,8001')
  assert.deepEqual(
    [spec.priorityClassName, spec.runtimeClassName, spec.nodeSelector, spec.tolerations],
    ['low', 'nvidia', { pool: 'a' }, [...SILENCE, toleration]],
  )
})

test('the words of a command stay as they are, although Kubernetes knows variables in them', () => {
  const args = '{"entrypoint":["sh","-c"],"cmd":["echo $(HOME) $$ $X"]}'
  assert.deepEqual(
    [pod({ args }).spec.containers[0]?.command, pod({ args }).spec.containers[0]?.args],
    [['sh', '-c'], ['echo $$(HOME) $$$$ $$X']],
  )
  assert.throws(() => pod({ args: '{"entrypoint":1}' }), WorkerStartError)
})

test('a worker for GPUs may run on nodes of each type, on the preferred one first', () => {
  const wish = { ...ANY_PLACE, gpuTypes: ['NVIDIA L4', 'NVIDIA GeForce RTX 3090'], gpuCount: 2, minCuda: '12.4' }
  const { metadata, spec } = pod({ wish })
  assert.deepEqual(spec.containers[0]?.resources, {
    requests: { 'nvidia.com/gpu': '2' },
    limits: { 'nvidia.com/gpu': '2' },
  })
  const both = ['NVIDIA-L4', 'NVIDIA-L4-SHARED', 'NVIDIA-GeForce-RTX-3090', 'NVIDIA-GeForce-RTX-3090-SHARED']
  const product = (values: string[]) => ({ key: 'nvidia.com/gpu.product', operator: 'In', values })
  const runtime = (part: string, operator: string, value: string) => ({
    key: `nvidia.com/cuda.runtime.${part}`,
    operator,
    values: [value],
  })
  assert.deepEqual(spec.affinity, {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [product(both), runtime('major', 'Gt', '12')] },
          { matchExpressions: [product(both), runtime('major', 'In', '12'), runtime('minor', 'Gt', '3')] },
        ],
      },
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 100, preference: { matchExpressions: [product(both.slice(0, 2))] } },
        { weight: 99, preference: { matchExpressions: [product(both.slice(2))] } },
      ],
    },
  })
  assert.deepEqual((spec.tolerations as object[]).at(-1), { key: 'nvidia.com/gpu', operator: 'Exists' })
  assert.equal(metadata.annotations['runyard.dev/gpu-types'], '["NVIDIA L4","NVIDIA GeForce RTX 3090"]')
})

test('CUDA versions that will do are asked for one by one', () => {
  const wish = { ...ANY_PLACE, gpuTypes: [], gpuCount: 1, cudaVersions: ['12.1', '12.4', '13.0'] }
  const affinity = nodeAffinity(wish, GPUS) as { nodeAffinity: Record<string, { nodeSelectorTerms: object[] }> }
  const terms = affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const oneOf = (part: string, ...values: string[]) => ({
    key: `nvidia.com/cuda.runtime.${part}`,
    operator: 'In',
    values,
  })
  assert.deepEqual(terms, [
    { matchExpressions: [oneOf('major', '12'), oneOf('minor', '1', '4')] },
    { matchExpressions: [oneOf('major', '13'), oneOf('minor', '0')] },
  ])
  assert.equal(nodeAffinity({ ...wish, cudaVersions: [] }, GPUS), null, 'any node with a GPU will do')
})

test('a part of a GPU is a resource of its own, on nodes whose GPUs are divided', () => {
  const type = 'NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb'
  const wish = { ...ANY_PLACE, gpuTypes: [type, 'NVIDIA L4'], gpuCount: 1 }
  const both = { 'nvidia.com/mig-1g.24gb': '1' }
  assert.deepEqual(pod({ wish }).spec.containers[0]?.resources, { requests: both, limits: both })
  assert.equal(pod({ wish }).metadata.annotations['runyard.dev/gpu-types'], JSON.stringify([type]))
  assert.equal(gpuTypeFromProduct('NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition', [type], GPUS), type)
})

test('an operator says what nodes call a type', () => {
  const gpus = { resource: 'example.com/gpu', products: new Map([['NVIDIA L4', 'our-l4']]) }
  const wish = { ...ANY_PLACE, gpuTypes: ['NVIDIA L4'], gpuCount: 1 }
  assert.match(JSON.stringify(pod({ wish }, { gpus }).spec.affinity), /"values":\["our-l4"\]/)
  assert.equal(gpuTypeFromProduct('our-l4', ['NVIDIA L4'], gpus), 'NVIDIA L4')
  assert.equal(gpuTypeFromProduct('another', ['NVIDIA L4'], gpus), 'another')
})

test('no variable of a worker is in the text of its pod, and those of the server win', () => {
  const spec = {
    ...SPEC,
    env: { TOKEN: 'secret-1', PORT: '1', NVIDIA_VISIBLE_DEVICES: 'all' },
    protocolEnv: { RUNPOD_AI_API_KEY: 'secret-2' },
    serves: { port: 80, healthPort: 81 },
  }
  assert.doesNotMatch(JSON.stringify(podManifest(spec, context())), /secret-\d/)
  const [secret, ...others] = secretManifests(spec, context())
  assert.deepEqual(secret, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'runyard-w1',
      namespace: 'gpu',
      labels: {
        'app.kubernetes.io/managed-by': 'runyard',
        'runyard.dev/installation': 'inst1',
        'runyard.dev/worker': 'w1',
      },
    },
    type: 'Opaque',
    stringData: {
      TOKEN: 'secret-1',
      PORT: '80',
      PORT_HEALTH: '81',
      RUNPOD_AI_API_KEY: 'secret-2',
      NVIDIA_VISIBLE_DEVICES: 'void',
    },
  })
  assert.deepEqual(others, [])
})

test('a credential goes to the registry of the image alone', () => {
  const credential = { username: 'me', password: 'pass' }
  const secrets = (image: string) => secretManifests({ ...SPEC, credential }, context({}, image))
  const config = (image: string) =>
    JSON.parse((secrets(image)[1] as { stringData: Record<string, string> }).stringData['.dockerconfigjson'] ?? '')
  const auth = Buffer.from('me:pass').toString('base64')
  assert.deepEqual(config('registry.example/a:1'), { auths: { 'registry.example': { ...credential, auth } } })
  assert.deepEqual(Object.keys(config('me/a:1').auths), ['https://index.docker.io/v1/'])
  assert.deepEqual(podManifest({ ...SPEC, credential }, context()).spec, {
    ...(podManifest(SPEC, context()).spec as object),
    imagePullSecrets: [{ name: 'runyard-w1-pull' }],
  })
})

test('network volumes and models are folders of one claim', () => {
  const changes = {
    volume: { id: 'vol1' as VolumeId, path: '/here/vol1' },
    models: [{ folder: 'models--a--b', path: '/here/models--a--b' }],
  }
  assert.throws(() => pod(changes), /--kubernetes-volume-claim/)
  const { spec } = pod(changes, { volumeClaim: 'claim', modelFolder: 'cache/hub' })
  assert.deepEqual(spec.volumes, [
    { name: 'shared-memory', emptyDir: { medium: 'Memory' } },
    { name: 'volume', persistentVolumeClaim: { claimName: 'claim' } },
  ])
  assert.deepEqual(spec.containers[0]?.volumeMounts, [
    { name: 'shared-memory', mountPath: '/dev/shm' },
    { name: 'volume', mountPath: '/runpod-volume', subPath: 'vol1' },
    {
      name: 'volume',
      mountPath: '/runpod-volume/huggingface-cache/hub/models--a--b',
      subPath: 'cache/hub/models--a--b',
      readOnly: true,
    },
  ])
  const mounts = [
    { ...changes.volume, at: '/data' },
    { id: 'vol2' as VolumeId, path: '/here/vol2', at: '/models' },
  ]
  const task = pod({ volume: changes.volume, mounts }, { volumeClaim: 'claim' })
  assert.deepEqual(task.spec.containers[0]?.volumeMounts, [
    { name: 'shared-memory', mountPath: '/dev/shm' },
    { name: 'volume', mountPath: '/runpod-volume', subPath: 'vol1' },
    { name: 'volume', mountPath: '/data', subPath: 'vol1' },
    { name: 'volume', mountPath: '/models', subPath: 'vol2' },
  ])
  const without = pod({ models: changes.models })
  assert.equal((without.spec.volumes as object[]).length, 1, 'workers download models that the claim does not have')
})
