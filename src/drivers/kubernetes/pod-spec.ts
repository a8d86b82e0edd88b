/**
 * The pod of a worker and its secrets, as they are created. The rules are in docs/adr/0060-workers-are-bare-pods.md.
 */
import { posix } from 'node:path'
import { parseReference } from '../../core/endpoints/image-reference.ts'
import { parseContainerArgs } from '../../core/workers/command-line.ts'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { WorkerSpec } from '../../ports/driver.ts'
import { CACHE_PATH, cacheVariables, extraMounts, mountPoint, VOLUME_PATH } from '../base/worker-paths.ts'
import { CONTAINER, NAMES, optionalLabel, ownLabels, podName, pullSecretName } from './names.ts'
import { type GpuNaming, gpuRequest, nodeAffinity } from './node-choice.ts'

/** Settings of an operator for all pods. */
export interface PodSettings {
  readonly gpus: GpuNaming
  /** The time that a pod may take to end after its signal, when its node is drained, in seconds. */
  readonly graceS: number
  /**
   * The same when this server ends it. Nodes do not hasten an end that they have begun, so it is the time after which
   * a worker is killed.
   */
  readonly stopS: number
  /** The silence of a node after which its pods count as ended, in seconds. */
  readonly nodeLostS: number
  /** The claim with the network volumes, a folder each; null for none. */
  readonly volumeClaim: string | null
  /** The folder of this server's cache of models in that claim; null where the cache is elsewhere. */
  readonly modelFolder: string | null
  readonly priorityClass: string | null
  readonly runtimeClass: string | null
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly tolerations: readonly Toleration[]
}

/** A taint of a node that a pod tolerates. */
export interface Toleration {
  readonly key: string
  readonly operator: 'Exists' | 'Equal'
  readonly value?: string
  readonly effect?: string
  readonly tolerationSeconds?: number
}

/** The maker of the objects, and the image. */
export interface PodContext {
  readonly installation: string
  readonly namespace: string
  /** The exact image. */
  readonly image: string
  readonly settings: PodSettings
}

/** An object as it is sent. */
export type Manifest = Readonly<Record<string, unknown>>

/** As containers of an engine have them: what programs need that start as root and change their user. */
const CAPABILITIES = ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'NET_BIND_SERVICE', 'SETGID', 'SETUID']
const MAX_PORT = 65_535
const VOLUME = 'volume'
const SHARED_MEMORY = 'shared-memory'
const DOCKER_HUB = 'https://index.docker.io/v1/'

/** The pod of a worker. @throws WorkerStartError when it can have none here */
export function podManifest(spec: WorkerSpec, context: PodContext): Manifest {
  const { settings, installation, namespace } = context
  const affinity = nodeAffinity(spec.wish, settings.gpus)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: podName(spec.workerId),
      namespace,
      labels: {
        ...workerLabels(spec, installation),
        ...optionalLabel(NAMES.endpoint, spec.endpointId),
        ...optionalLabel(NAMES.owner, spec.owner),
      },
      annotations: podAnnotations(spec, settings),
    },
    spec: {
      hostname: spec.workerId,
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: settings.graceS,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      // The first process of the pod reaps others' orphans and leaves signals their meaning, as the init of a
      // container engine does.
      shareProcessNamespace: true,
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      ...(affinity === null ? {} : { affinity }),
      ...(Object.keys(settings.nodeSelector).length === 0 ? {} : { nodeSelector: settings.nodeSelector }),
      tolerations: podTolerations(spec, settings),
      ...(settings.priorityClass === null ? {} : { priorityClassName: settings.priorityClass }),
      ...(settings.runtimeClass === null ? {} : { runtimeClassName: settings.runtimeClass }),
      ...(spec.credential === null ? {} : { imagePullSecrets: [{ name: pullSecretName(spec.workerId) }] }),
      containers: [workerContainer(spec, context)],
      volumes: podVolumes(spec, settings),
    },
  }
}

/** The secrets of a worker: its environment, and the credential for its image. */
export function secretManifests(
  spec: WorkerSpec,
  { installation, namespace, image, settings }: PodContext,
): Manifest[] {
  const labels = workerLabels(spec, installation)
  const environment = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: podName(spec.workerId), namespace, labels },
    type: 'Opaque',
    stringData: workerEnvironment(spec, settings),
  }
  if (spec.credential === null) return [environment]
  const { username, password } = spec.credential
  const host = parseReference(image)?.registry ?? 'docker.io'
  const auth = Buffer.from(`${username}:${password}`).toString('base64')
  const config = { auths: { [host === 'docker.io' ? DOCKER_HUB : host]: { username, password, auth } } }
  const pull = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: pullSecretName(spec.workerId), namespace, labels },
    type: 'kubernetes.io/dockerconfigjson',
    stringData: { '.dockerconfigjson': JSON.stringify(config) },
  }
  return [environment, pull]
}

/** The reference to an owner that makes the end of a pod the end of its secrets. */
export function ownedBy(pod: { readonly name: string; readonly uid: string }): Manifest {
  return { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid }] } }
}

function workerLabels({ workerId }: WorkerSpec, installation: string): Record<string, string> {
  return { ...ownLabels(installation), [NAMES.worker]: workerId }
}

function podAnnotations(spec: WorkerSpec, settings: PodSettings): Record<string, string> {
  const gpus = gpuRequest(spec.wish, settings.gpus)
  return {
    // Workers hold jobs and models: an autoscaler is to empty other nodes.
    'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false',
    ...(spec.serves === null ? {} : { [NAMES.serves]: `${spec.serves.port},${spec.serves.healthPort}` }),
    ...(gpus === null ? {} : { [NAMES.gpuTypes]: JSON.stringify(gpus.types), [NAMES.gpuCount]: String(gpus.count) }),
  }
}

function workerContainer(spec: WorkerSpec, { image, settings }: PodContext): Manifest {
  const { entrypoint, cmd } = parseContainerArgs(spec.args)
  const ports = containerPorts(spec)
  return {
    name: CONTAINER,
    image,
    ...(entrypoint === null ? {} : { command: entrypoint.map(literally) }),
    ...(cmd === null ? {} : { args: cmd.map(literally) }),
    envFrom: [{ secretRef: { name: podName(spec.workerId) } }],
    ...(ports.length === 0 ? {} : { ports }),
    resources: workerResources(spec, settings),
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: CAPABILITIES },
    },
    volumeMounts: podMounts(spec, settings),
  }
}

/** Kubernetes replaces `$(NAME)` in commands; nothing here has such a meaning. */
function literally(word: string): string {
  return word.replaceAll('$', '$$$$')
}

/** The user's variables, and the server's, which win. */
function workerEnvironment(spec: WorkerSpec, settings: PodSettings): Record<string, string> {
  const { volume, serves, wish } = spec
  const { NVIDIA_VISIBLE_DEVICES: _, ...env } = spec.env
  const models = settings.modelFolder === null ? [] : spec.models
  return {
    ...cacheVariables({ models, env }, CACHE_PATH),
    ...env,
    ...spec.protocolEnv,
    ...(serves === null ? {} : { PORT: String(serves.port), PORT_HEALTH: String(serves.healthPort) }),
    ...(volume === null ? {} : { RUNPOD_VOLUME_PATH: VOLUME_PATH }),
    // A node names the GPUs of a pod by this variable; an image or a user could ask for all where none are given.
    ...(wish.gpuCount === 0 ? { NVIDIA_VISIBLE_DEVICES: 'void' } : {}),
  }
}

function workerResources({ wish, diskGb }: WorkerSpec, { gpus }: PodSettings): Manifest {
  const request = gpuRequest(wish, gpus)
  const [cpu] = wish.cpus
  const quantities = {
    ...(cpu === undefined ? {} : { cpu: String(cpu.vcpus), memory: `${cpu.memoryMb}Mi` }),
    ...(diskGb === null ? {} : { 'ephemeral-storage': `${diskGb}G` }),
    ...(request === null ? {} : { [request.resource]: String(request.count) }),
  }
  return { requests: quantities, limits: quantities }
}

function podTolerations({ wish }: WorkerSpec, { tolerations, nodeLostS, gpus }: PodSettings): Toleration[] {
  const toleration = (key: string): Toleration => ({
    key,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: nodeLostS,
  })
  return [
    toleration('node.kubernetes.io/not-ready'),
    toleration('node.kubernetes.io/unreachable'),
    ...(wish.gpuCount === 0 ? [] : [{ key: gpus.resource, operator: 'Exists' } as const]),
    ...tolerations,
  ]
}

/** The ports of its program, and those that its template names. Kubernetes opens none of them by that. */
function containerPorts({ ports, serves }: WorkerSpec): Manifest[] {
  const servedPorts = serves === null ? [] : [`${serves.port}/tcp`, `${serves.healthPort}/tcp`]
  const namedPorts = ports
    .map(text => text.split('/') as [string, string])
    .filter(([port]) => Number(port) >= 1 && Number(port) <= MAX_PORT)
    .map(([port, protocol]) => `${Number(port)}/${protocol === 'udp' ? 'udp' : 'tcp'}`)
  return [...new Set([...servedPorts, ...namedPorts])].map(text => {
    const [port, protocol = 'tcp'] = text.split('/')
    return { containerPort: Number(port), protocol: protocol.toUpperCase() }
  })
}

function podVolumes(spec: WorkerSpec, settings: PodSettings): Manifest[] {
  const { volumeClaim } = settings
  if (spec.volume !== null && volumeClaim === null) throw new WorkerStartError({ kind: 'cluster_volume_missing' })
  const usesClaim = volumeClaim !== null && (spec.volume !== null || mountedModels(spec, settings).length > 0)
  return [
    { name: SHARED_MEMORY, emptyDir: { medium: 'Memory' } },
    ...(usesClaim ? [{ name: VOLUME, persistentVolumeClaim: { claimName: volumeClaim } }] : []),
  ]
}

function podMounts(spec: WorkerSpec, settings: PodSettings): Manifest[] {
  const models = mountedModels(spec, settings)
  return [
    { name: SHARED_MEMORY, mountPath: '/dev/shm' },
    ...(spec.volume === null ? [] : [{ name: VOLUME, mountPath: VOLUME_PATH, subPath: spec.volume.id }]),
    ...extraMounts(spec).map(({ id, at }) => ({ name: VOLUME, mountPath: at, subPath: id })),
    ...models.map(({ folder, path }) => ({
      name: VOLUME,
      mountPath: mountPoint({ folder, path }),
      subPath: posix.join(settings.modelFolder ?? '', folder),
      readOnly: true,
    })),
  ]
}

/** The models that a pod finds on its disk; without a claim that has them each worker downloads its own. */
function mountedModels({ models }: WorkerSpec, { volumeClaim, modelFolder }: PodSettings): WorkerSpec['models'] {
  return volumeClaim === null || modelFolder === null ? [] : models
}
