/** The state of a pod, as far as it matters for its worker. A function of the pod's text alone. */
import { constants } from 'node:os'
import { textBefore } from '../../core/text-parts.ts'
import type { Reclaim, WaitForPlace } from '../../core/workers/platform-report.ts'
import type { ExitCause, ObservedExit } from '../../core/workers/worker-exit.ts'
import { clean } from '../base/refusals.ts'
import type { ContainerState, PodCondition, PodObject } from './api.ts'
import { CONTAINER, NAMES } from './names.ts'
import { type StartTrouble, startTrouble } from './start-trouble.ts'

/** A pod at one moment. */
export interface PodReport {
  readonly uid: string
  readonly version: string
  readonly node: string | null
  readonly ip: string | null
  /** The exact image that its container runs, where the node reports it. */
  readonly imageId: string | null
  readonly life: PodLife
  /** The reason why it is being taken away, whoever asked for it; null when it is not. */
  readonly leaving: Reclaim | null
  /** The time that it may take to end once it was asked, in ms; null when it was not asked. */
  readonly graceMs: number | null
  /**
   * True where its node has not reported it for a while: the cluster then says that it is not ready, although its
   * container runs.
   */
  readonly isSilent: boolean
  /** The types that it wished, from its annotations. */
  readonly gpuTypes: readonly string[]
  readonly gpuCount: number
  readonly serves: { readonly port: number; readonly healthPort: number } | null
}

/** The place of a pod in its life. */
export type PodLife =
  | { readonly kind: 'unplaced'; readonly reason: WaitForPlace }
  /** On its node, before its program runs. */
  | { readonly kind: 'placed'; readonly trouble: StartTrouble | null }
  | { readonly kind: 'running' }
  | { readonly kind: 'ended'; readonly exit: ObservedExit }

/** Before the scheduler of the cluster has looked at it. */
export const JUST_ASKED: WaitForPlace = { kind: 'no_room', said: 'the cluster has not looked for one yet' }

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]))

/** True where the image of a pod is downloaded with a credential. */
export function hasPullSecret({ spec }: PodObject): boolean {
  return ((spec as { imagePullSecrets?: readonly unknown[] } | undefined)?.imagePullSecrets?.length ?? 0) > 0
}

/** Reads a pod. @param hasCredential true if its image is downloaded with a credential */
export function podReport(pod: PodObject, hasCredential: boolean): PodReport {
  const { metadata, spec, status } = pod
  const annotations = metadata.annotations ?? {}
  const container = status?.containerStatuses?.find(({ name }) => name === CONTAINER)
  const node = spec?.nodeName ?? null
  const [port, healthPort] = (annotations[NAMES.serves] ?? '').split(',').map(Number)
  const isRunning = container?.state?.running !== undefined
  return {
    uid: metadata.uid ?? '',
    version: metadata.resourceVersion ?? '',
    node,
    ip: status?.podIP ?? null,
    imageId: exactImage(container?.imageID),
    life: podLife(pod, container?.state ?? null, hasCredential),
    leaving: findReclaim(pod),
    graceMs: metadata.deletionTimestamp === undefined ? null : (metadata.deletionGracePeriodSeconds ?? 0) * 1000,
    isSilent: isRunning && metadata.deletionTimestamp === undefined && isSilent(findCondition(pod, 'Ready')),
    gpuTypes: parseTexts(annotations[NAMES.gpuTypes]),
    gpuCount: Number(annotations[NAMES.gpuCount] ?? 0) || 0,
    serves: port && healthPort ? { port, healthPort } : null,
  }
}

/** A node gives a reason when a container is not ready; the cluster, which speaks for a silent node, gives none. */
function isSilent(ready: PodCondition | undefined): boolean {
  return ready?.status === 'False' && (ready.reason ?? '') === ''
}

function podLife(pod: PodObject, state: ContainerState | null, hasCredential: boolean): PodLife {
  const { spec, status } = pod
  const termination = state?.terminated
  if (termination !== undefined) {
    const trouble = startTrouble({ ...termination, image: '', hasCredential })
    if (trouble?.isCertain === true) {
      const cause = { kind: 'not_started', failure: trouble.failure } as const
      return { kind: 'ended', exit: { code: null, signal: null, cause } }
    }
    return { kind: 'ended', exit: podExit(pod, termination.exitCode ?? null, termination.reason ?? '') }
  }
  // Its node refused it or took it away before its container ran.
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') {
    return { kind: 'ended', exit: podExit(pod, null, '') }
  }
  if (state?.running !== undefined) return { kind: 'running' }
  if (spec?.nodeName === undefined)
    return { kind: 'unplaced', reason: placementWait(findCondition(pod, 'PodScheduled')) }
  const image = workerImage(pod)
  return {
    kind: 'placed',
    trouble: state?.waiting === undefined ? null : startTrouble({ ...state.waiting, image, hasCredential }),
  }
}

/** The reason why the scheduler has no node for it. */
function placementWait(scheduled: PodCondition | undefined): WaitForPlace {
  const message = withoutPreemption(clean(scheduled?.message ?? ''))
  if (message === '') return JUST_ASKED
  if (/persistentvolumeclaim|unbound immediate|volume/i.test(message) && !/Insufficient/.test(message)) {
    return { kind: 'volume_pending', said: message }
  }
  return { kind: isHopeless(message) ? 'no_such_node' : 'no_room', said: message }
}

/** Without the part about pods that might make room, which does not name what is missing. */
function withoutPreemption(message: string): string {
  return textBefore(message, ' no new claims to deallocate, preemption: ', ' preemption: ')
}

/** True where all nodes are of another kind, so that no room that others give back would help. */
function isHopeless(message: string): boolean {
  const [, nodeCount = ''] = /^0\/(\d+) nodes? (?:is|are) available/.exec(message) ?? []
  const [, unfitCount = ''] = /(?<!\d)(\d+) node\(s\) didn't match Pod's node affinity\/selector/.exec(message) ?? []
  return nodeCount !== '' && nodeCount === unfitCount
}

function podExit(pod: PodObject, exitCode: number | null, reason: string): ObservedExit {
  const signal = exitCode !== null && exitCode > 128 ? (SIGNALS.get(exitCode - 128) ?? null) : null
  return { code: signal === null ? exitCode : null, signal, cause: findCause(pod, reason, exitCode) }
}

function findCause(pod: PodObject, reason: string, exitCode: number | null): ExitCause {
  if (reason === 'OOMKilled') return { kind: 'out_of_memory', limitMb: memoryLimitMb(pod) }
  const { status } = pod
  const node = pod.spec?.nodeName ?? null
  const message = clean(status?.message ?? '')
  const limitGb = diskLimitGb(pod)
  if (status?.reason === 'Evicted' && limitGb !== null && OWN_DISK.test(message)) {
    return { kind: 'disk_full', limitGb, of: 'container' }
  }
  // Nodes report this of containers that were gone when the node came back, as after a loss of power.
  const isGone = reason === 'ContainerStatusUnknown' || (reason === 'Unknown' && exitCode === 255)
  const reclaim = reclaimFromReason(isGone ? 'NodeLost' : (status?.reason ?? ''), node, message) ?? findReclaim(pod)
  if (reclaim !== null) return { kind: 'reclaimed', why: reclaim }
  // Its node did not take it, as when others were faster: the next one may.
  if (exitCode === null && status?.phase === 'Failed') {
    return { kind: 'reclaimed', why: { kind: 'evicted', node, said: clean(`${status.reason ?? ''} ${message}`) } }
  }
  return { kind: 'ended' }
}

/** The limits of the worker's own disk, in contrast to a node whose disk is full. */
const OWN_DISK = /exceeded its local ephemeral storage limit|ephemeral local storage usage exceeds/i

function reclaimFromReason(reason: string, node: string | null, message: string): Reclaim | null {
  if (reason === 'Evicted') return { kind: 'evicted', node, said: message }
  if (reason === 'Preempting' || reason === 'Preempted') return { kind: 'preempted', node, said: message }
  if (reason === 'Terminated' || reason === 'Shutdown' || reason === 'NodeShutdown')
    return { kind: 'node_drained', node, said: message }
  return reason === 'NodeLost' ? { kind: 'node_lost', node, said: message } : null
}

function findReclaim(pod: PodObject): Reclaim | null {
  const node = pod.spec?.nodeName ?? null
  const disruption = findCondition(pod, 'DisruptionTarget')
  if (disruption?.status === 'True') {
    const message = clean(disruption.message ?? '')
    const kind = DISRUPTIONS[disruption.reason ?? ''] ?? 'evicted'
    return { kind: kind === 'evicted' && /shutdown/i.test(message) ? 'node_drained' : kind, node, said: message }
  }
  return pod.metadata.deletionTimestamp === undefined ? null : { kind: 'deleted', said: '' }
}

const DISRUPTIONS: Readonly<Record<string, 'node_drained' | 'evicted' | 'preempted' | 'node_lost'>> = {
  PreemptionByScheduler: 'preempted',
  EvictionByEvictionAPI: 'node_drained',
  DeletionByTaintManager: 'node_drained',
  DeletionByPodGC: 'node_lost',
  TerminationByKubelet: 'evicted',
}

function findCondition({ status }: PodObject, conditionType: string): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === conditionType)
}

function workerImage({ spec }: PodObject): string {
  const container = spec?.containers?.find(({ name }) => name === CONTAINER) as { image?: string } | undefined
  return container?.image ?? ''
}

/** A reference with its digest in a registry. Images that were put on the node by hand have none. */
function exactImage(id = ''): string | null {
  const reference = id.replace(/^[a-z-]+:\/\//, '')
  return /^[^@\s]+@sha256:[0-9a-f]{64}$/.test(reference) ? reference : null
}

function workerLimits({ spec }: PodObject): Readonly<Record<string, string>> {
  return spec?.containers?.find(({ name }) => name === CONTAINER)?.resources?.limits ?? {}
}

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 1024,
  Mi: 1024 ** 2,
  Gi: 1024 ** 3,
  Ti: 1024 ** 4,
}

function parseQuantity(quantity: string | undefined): number | null {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([kMGT]i?|Ki)?$/.exec(quantity ?? '') ?? []
  return number === '' ? null : Number(number) * (UNITS[unit] ?? 1)
}

function memoryLimitMb(pod: PodObject): number | null {
  const bytes = parseQuantity(workerLimits(pod).memory)
  return bytes === null ? null : Math.round(bytes / 1024 ** 2)
}

function diskLimitGb(pod: PodObject): number | null {
  const bytes = parseQuantity(workerLimits(pod)['ephemeral-storage'])
  return bytes === null ? null : Math.round(bytes / 1e9)
}

function parseTexts(text: string | undefined): string[] {
  try {
    const list: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(list) ? list.filter(item => typeof item === 'string') : []
  } catch {
    return []
  }
}
