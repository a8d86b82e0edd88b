/**
 * The actions that end a cause: chosen from the fixes of its remedy, from the releases that worked, and
 * from the GPUs of the machine.
 */
import { MAX_WORKERS } from '../endpoints/endpoint.ts'
import type { PastRelease, ReleasedTemplate } from '../endpoints/release.ts'
import { savedEnv } from '../endpoints/saved-env.ts'
import { isInitTimeout, MAX_INIT_S, NEVER_HEALTHY_MS } from '../endpoints/serving.ts'
import { cataloged, type MachineParts } from '../hardware/inventory.ts'
import type { WorkerId } from '../ids.ts'
import { shareableMb } from '../placement/card-claims.ts'
import { chosenGpus, suitableGpus } from '../placement/placement-fit.ts'
import { currentBackoff, type EndpointSnapshot } from '../scaling/scale.ts'
import type { Resource } from '../workers/placement.ts'
import type { Fix } from '../workers/start-remedy.ts'
import { INIT_MS } from '../workers/worker-liveness.ts'
import type { Action } from './action.ts'

/** The part of a release that decides if a rollback to it can help. */
export type OlderRelease = Pick<PastRelease, 'version' | 'restores' | 'diff' | 'image' | 'hasWorked'>

/** Facts for the choice of actions. An unknown fact leaves actions out. */
export interface ActionFacts {
  /** The releases of the endpoint, newest first; unknown by default. */
  readonly releases?: readonly OlderRelease[] | undefined
  /** The template of its workers; unknown by default. */
  readonly template?: Pick<ReleasedTemplate, 'image' | 'env'> | undefined
  /** The machine of the workers; null, or left out, if they run elsewhere or without GPUs. */
  readonly parts?: MachineParts | null
}

/** Facts about the failure for the choice of actions. */
export interface Failure {
  readonly fixes: readonly Fix[]
  /** The worker whose output shows it; null if no worker shows it. */
  readonly worker: WorkerId | null
  /** True if the next start waits for the end of a back-off or for a change, which a restart ends. */
  readonly isRetried: boolean
}

const TRY_AGAIN: Action = { kind: 'restart', title: 'Try again now' }

/**
 * The actions for a failure, the main one first. A change of the endpoint or the server that is known to help comes
 * first, then the rollback, then another try; the output comes before a change of the image, since it shows the
 * needed change.
 */
export function actionsOnFailure(failure: Failure, snapshot: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  const { fixes, worker, isRetried } = failure
  const isOfProgram = (fix: Fix) => fix === 'program' || fix === 'unknown'
  const direct = fixes.filter(fix => !isOfProgram(fix)).flatMap(fix => actionsFor(fix, snapshot, facts))
  const back = rollbackFor(fixes, snapshot, facts)
  return distinct([
    ...direct,
    ...(back === null ? [] : [back]),
    ...(isRetried ? [TRY_AGAIN] : []),
    ...(worker === null ? [] : [seeOutput(worker)]),
    ...(fixes.some(isOfProgram) ? programActions(snapshot, facts) : []),
  ])
}

/** The first action of each title. */
export function distinct(actions: readonly Action[]): readonly Action[] {
  const titles = new Set<string>()
  return actions.filter(({ title }) => !titles.has(title) && titles.add(title))
}

/** Opens the output of a worker. */
export function seeOutput(worker: WorkerId): Action {
  return { kind: 'logs', title: 'See its output', worker }
}

/** Opens a section of the settings of the endpoint. */
export function settings(part: 'image' | 'env' | 'hardware' | 'volumes' | 'models', title: string): Action {
  return { kind: 'open', title, page: 'settings', part }
}

/** Opens the page of the machine. @param part `findings` for its problems, `workers` for the workers on it */
export function machine(title: string, part: 'findings' | 'workers' = 'findings'): Action {
  return { kind: 'open', title, page: 'machine', part }
}

/** Runs a program on the machine of the server. */
export function run(title: string, ...words: readonly string[]): Action {
  return { kind: 'run', title, words, place: 'server' }
}

const WRONG_MACHINE = machine('See what is wrong with the machine')

function actionsFor(fix: Fix, snapshot: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  if (typeof fix === 'object') {
    if ('serve' in fix) return [run(fix.title, 'runyard', 'serve', ...fix.serve)]
    const { title, variable, value } = fix
    return [{ kind: 'set', title, field: `env.${variable}`, from: null, value, isRelease: true }]
  }
  const { endpoint } = snapshot
  switch (fix) {
    case 'image':
      return [settings('image', 'Change the image or its command')]
    case 'folder':
      return [settings('image', 'Run a folder instead of an image')]
    case 'command':
      return [
        settings('image', isFolder(facts) ? 'Change the folder or its command' : 'Change the image or its command'),
      ]
    case 'environment':
      return [settings('env', 'Change the environment')]
    case 'health':
      return [settings('env', 'Change the port or the health check')]
    case 'start_time':
      return [longerStart(snapshot, facts)]
    case 'secret_value':
      return [{ kind: 'open', title: 'Change a secret', page: 'secrets', part: null }]
    case 'token':
      return [
        { kind: 'open', title: 'Save a token as a secret', page: 'secrets', part: 'HF_TOKEN' },
        settings('env', 'Name it in the environment'),
      ]
    case 'volume':
      return [
        settings('volumes', endpoint.networkVolumeIds.length === 0 ? 'Choose a volume' : 'Choose another volume'),
        { kind: 'open', title: 'Create a volume', page: 'volumes', part: null },
      ]
    case 'no_volume':
      return [settings('volumes', 'Run it without a volume')]
    case 'models':
      return [settings('models', 'Change the models')]
    case 'gpus':
      return endpoint.compute.kind === 'gpu' ? otherGpus(snapshot, facts) : []
    case 'gpu_memory':
      return moreGpuMemory(snapshot, facts)
    case 'memory':
      return endpoint.compute.kind === 'cpu' ? [settings('hardware', 'Give workers more memory')] : []
    case 'disk':
      return [settings('image', 'Give workers a larger disk')]
    case 'credential':
      return [{ kind: 'open', title: 'Save a registry credential', page: 'registries', part: null }]
    case 'one_worker':
      return endpoint.workersMax > 1 ? [setMax(snapshot, 1)] : []
    case 'machine':
      return [WRONG_MACHINE]
    case 'secrets':
    case 'program':
    case 'unknown':
      return []
  }
}

function isFolder({ template }: ActionFacts): boolean {
  return template?.image.startsWith('dir:') === true
}

/** Changes the image; no action for a folder, which is fixed in place without a change of the endpoint. */
function programActions({ endpoint }: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  if (endpoint.workersMax === 0 || isFolder(facts)) return []
  return [settings('image', 'Change the image')]
}

/** Fields of a release that change neither the program of its workers nor its input. */
const HARDWARE: ReadonlySet<string> = new Set(['gpu', 'cpu', 'disk', 'dataCenterIds', 'flashboot'])

/** True if a fix may lie in this field of a release. */
function mayMatter(fix: Fix, field: string): boolean {
  const isVariable = field.startsWith('env.')
  switch (fix) {
    case 'memory':
    case 'gpu_memory':
    case 'gpus':
    case 'disk':
    case 'unknown':
      return true
    case 'secrets':
    case 'secret_value':
    case 'token':
      return isVariable || field === 'modelReferences'
    case 'environment':
    case 'health':
      return isVariable || field === 'image' || field === 'args' || field === 'type'
    case 'volume':
    case 'no_volume':
      return field === 'networkVolumes'
    case 'models':
      return field === 'modelReferences'
    case 'credential':
      return field === 'image' || field === 'registry'
    case 'folder':
      return field === 'image'
    case 'image':
    case 'command':
      return ['image', 'args', 'registry', 'type'].includes(field)
    case 'program':
    case 'start_time':
      return !HARDWARE.has(field)
    case 'machine':
    case 'one_worker':
      return false
    default:
      return 'variable' in fix
  }
}

/**
 * The rollback to the newest older release that has worked and differs in a field that may matter; null without such
 * a release. A release that the present one restored was tried, and so were those after it.
 */
export function rollbackFor(
  fixes: readonly Fix[],
  { endpoint, rollout }: EndpointSnapshot,
  { releases }: ActionFacts,
): Action | null {
  const isRelevant = (field: string) => fixes.some(fix => mayMatter(fix, field))
  if (releases === undefined) return rollout.working === null ? null : rollbackTo(rollout.working.version, true)
  const present = releases.find(({ version }) => version === endpoint.version)
  if (present === undefined) return null
  const older = releases.filter(
    ({ version, hasWorked }) => hasWorked && version < (present.restores ?? present.version),
  )
  const target = older.find(release => fieldsChangedSince(release, present, releases).some(isRelevant))
  return target === undefined ? null : rollbackTo(target.version, target === older[0])
}

function rollbackTo(version: number, isLast: boolean): Action {
  const title = `Roll back to release ${version}, ${isLast ? 'the last that worked' : 'which worked'}`
  return { kind: 'rollback', title, version }
}

/** The fields in which a release differs from a newer one. */
function fieldsChangedSince(
  old: OlderRelease,
  present: OlderRelease,
  releases: readonly OlderRelease[],
): readonly string[] {
  const between = releases.filter(({ version }) => version > old.version && version <= present.version)
  const changes = new Map<string, { readonly before: string; readonly now: string }>()
  // Newest first: the first value of a field is the present one, and the last old one is that of the release.
  for (const { diff } of between)
    for (const { field, old: oldValue, new: now } of diff)
      changes.set(field, { before: JSON.stringify(oldValue), now: changes.get(field)?.now ?? JSON.stringify(now) })
  const fields = [...changes].filter(([, { before, now }]) => before !== now).map(([field]) => field)
  // The name of an image can point to a new image.
  const isOther = old.image !== null && present.image !== null && old.image !== present.image
  return isOther && !fields.includes('image') ? ['image', ...fields] : fields
}

const INIT_TIMEOUT = 'RUNPOD_INIT_TIMEOUT'

/**
 * Doubles the time for the start of a worker. A value that comes from a secret, or is at its maximum, is changed by
 * hand.
 */
function longerStart({ endpoint }: EndpointSnapshot, { template }: ActionFacts): Action {
  const byHand = settings('env', `Allow more time (${INIT_TIMEOUT})`)
  const set = savedEnv(endpoint, { env: template?.env ?? {} })[INIT_TIMEOUT]
  if (set !== undefined && !isInitTimeout(set)) return byHand
  const usualMs = endpoint.type === 'QUEUE' ? INIT_MS : NEVER_HEALTHY_MS
  const seconds = Math.min(MAX_INIT_S, 2 * Number(set ?? usualMs / 1000))
  if (seconds <= Number(set ?? 0)) return byHand
  const title = `Allow ${Math.round(seconds / 60)} min for the start`
  return {
    kind: 'set',
    title,
    field: `env.${INIT_TIMEOUT}`,
    from: set ?? null,
    value: String(seconds),
    isRelease: true,
  }
}

/** "1 worker", "3 workers". */
function workersText(count: number): string {
  return count === 1 ? '1 worker' : `${count} workers`
}

function setMax({ endpoint }: Pick<EndpointSnapshot, 'endpoint'>, value: number): Action {
  const title = `Allow ${workersText(value)}`
  return { kind: 'set', title, field: 'workers.max', from: endpoint.workersMax, value, isRelease: false }
}

/** Allows more workers; no action if the endpoint has the maximum of endpoints, or of the GPUs of the machine. */
export function moreWorkers(snapshot: EndpointSnapshot, facts: ActionFacts, wanted: number): readonly Action[] {
  const { endpoint } = snapshot
  const value = Math.min(wanted, MAX_WORKERS, mostOnMachine(snapshot, facts))
  return value > endpoint.workersMax ? [setMax(snapshot, value)] : []
}

/**
 * The number of workers of an endpoint that fit on all suitable GPUs of the machine; unlimited if the machine is
 * unknown.
 */
export function mostOnMachine({ endpoint }: Pick<EndpointSnapshot, 'endpoint'>, { parts }: ActionFacts): number {
  const { compute } = endpoint
  if (parts == null || parts.gpus.length === 0 || compute.kind === 'cpu') return Number.POSITIVE_INFINITY
  const gpus = suitableGpus(parts, compute).map(({ gpu }) => gpu)
  const { memoryGb } = compute
  // A share that is learned may be anything up to a whole GPU.
  if (memoryGb === 'auto') return Number.POSITIVE_INFINITY
  if (memoryGb === undefined) return Math.floor(gpus.length / compute.count)
  return gpus.reduce((sum, gpu) => sum + Math.max(0, Math.floor(shareableMb(gpu, 0, undefined) / (memoryGb * 1024))), 0)
}

/** Keeps this number of workers ready; no action if workersMax is smaller. */
export function keepReady({ endpoint }: EndpointSnapshot, value: number): readonly Action[] {
  if (endpoint.workersMax < value) return []
  const title = `Keep ${workersText(value)} ready`
  return [{ kind: 'set', title, field: 'workers.min', from: endpoint.workersMin, value, isRelease: false }]
}

/** Keeps idle workers for longer. */
export function keepIdle({ endpoint }: Pick<EndpointSnapshot, 'endpoint'>, seconds: number): Action {
  const title = `Keep idle workers for ${seconds} s`
  const from = endpoint.idleTimeoutS
  return { kind: 'set', title, field: 'workers.idleTimeout', from, value: seconds, isRelease: false }
}

/** Shortens the wait of jobs before another worker starts; no action at the smallest value. */
export function startSooner({ endpoint }: EndpointSnapshot): readonly Action[] {
  const { scaler } = endpoint
  const from = scaler.type === 'QUEUE_DELAY' ? scaler.queueDelayS : scaler.requestCount
  const value = Math.max(1, Math.floor(from / 2))
  if (value >= from) return []
  const set = { kind: 'set', field: 'scaling', isRelease: false } as const
  const { type } = scaler
  if (type === 'QUEUE_DELAY') {
    const title = `Start another worker after ${value} s of waiting`
    return [{ ...set, title, from: { type, queueDelay: from }, value: { type, queueDelay: value } }]
  }
  const title = `Start a worker for each ${value === 1 ? 'request' : `${value} requests`}`
  return [{ ...set, title, from: { type, requestCount: from }, value: { type, requestCount: value } }]
}

/** Opens the form of a new secret for each name, at most {@link MAX_SECRETS}. */
export function createSecrets(names: readonly string[]): readonly Action[] {
  return names
    .slice(0, MAX_SECRETS)
    .map(name => ({ kind: 'open', title: `Create the secret ${name}`, page: 'secrets', part: name }))
}

const MAX_SECRETS = 10
const HOLDERS = machine('See who holds the machine', 'workers')

/** The actions if the machine lacks a resource. */
export function placeActions(resource: Resource, snapshot: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  switch (resource) {
    case 'gpu':
      return [...otherGpus(snapshot, facts), HOLDERS]
    case 'gpu_type':
      return usePoolsHere(snapshot, facts)
    case 'gpu_count':
      return fewerGpus(snapshot, facts)
    case 'cuda':
      return [settings('hardware', 'Change the CUDA version')]
    case 'cpu':
    case 'memory':
      return [settings('hardware', 'Choose smaller workers'), HOLDERS]
    case 'account_workers':
    case 'account_gpus':
      return [{ kind: 'open', title: 'See what the account uses', page: 'usage', part: null }]
    case 'models':
      return [run('See how far the downloads are', 'runyard', 'models', 'list')]
    case 'workers':
      return [HOLDERS]
  }
}

/** The GPUs of the machine that the endpoint does not choose yet; null if the machine is unknown. */
function unchosenGpus({ endpoint: { compute } }: EndpointSnapshot, { parts }: ActionFacts) {
  if (parts == null || compute.kind === 'cpu') return null
  const chosen = new Set(chosenGpus(parts, compute).map(({ type }) => type))
  return parts.gpus.map(cataloged).filter(({ type, gpu }) => gpu.problem === null && !chosen.has(type))
}

/** Empty if the endpoint already chooses all GPUs of the machine. */
function otherGpus(snapshot: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  const others = unchosenGpus(snapshot, facts)
  return others === null || others.length > 0 ? [settings('hardware', 'Choose other GPUs')] : []
}

function moreGpuMemory(snapshot: EndpointSnapshot, facts: ActionFacts): readonly Action[] {
  const { compute } = snapshot.endpoint
  if (compute.kind === 'cpu') return []
  const { parts } = facts
  if (parts == null) return [settings('hardware', 'Choose larger or more GPUs')]
  const chosen = chosenGpus(parts, compute)
  const least = Math.min(...chosen.map(({ gpu }) => gpu.memoryGb))
  const others = [...chosen, ...(unchosenGpus(snapshot, facts) ?? [])]
  const isLarger = others.some(({ gpu }) => gpu.problem === null && gpu.memoryGb > least)
  const isMore = suitableGpus(parts, compute).length > compute.count
  if (isLarger && isMore) return [settings('hardware', 'Choose larger or more GPUs')]
  if (isLarger) return [settings('hardware', 'Choose larger GPUs')]
  return isMore ? [settings('hardware', 'Give workers more GPUs')] : []
}

/** Replaces pools that the machine lacks with its own pools. */
function usePoolsHere({ endpoint: { compute } }: EndpointSnapshot, { parts }: ActionFacts): readonly Action[] {
  if (parts == null || compute.kind === 'cpu') return [settings('hardware', 'Choose other GPUs')]
  const pools = [...new Set(parts.gpus.map(gpu => cataloged(gpu).pool))]
  if (pools.length === 0) return [WRONG_MACHINE]
  const title = `Use the GPUs of this machine (${pools.join(', ')})`
  return [{ kind: 'set', title, field: 'gpu.pools', from: compute.pools, value: pools, isRelease: true }]
}

function fewerGpus({ endpoint: { compute } }: EndpointSnapshot, { parts }: ActionFacts): readonly Action[] {
  if (parts == null || compute.kind === 'cpu') return [settings('hardware', 'Ask for fewer GPUs')]
  const ofPools = compute.pools.map(
    pool => suitableGpus(parts, { ...compute, count: 1 }).filter(gpu => gpu.pool === pool).length,
  )
  const value = Math.max(0, ...ofPools)
  if (value === 0 || value >= compute.count) return [settings('hardware', 'Ask for fewer GPUs')]
  const title = `Ask for ${value === 1 ? '1 GPU' : `${value} GPUs`} a worker`
  return [{ kind: 'set', title, field: 'gpu.count', from: compute.count, value, isRelease: true }]
}

/**
 * True if releases and template are worth a read: something is wrong with the workers, or with the newest release.
 */
export function isInTrouble(snapshot: EndpointSnapshot): boolean {
  const { workers, rollout } = snapshot
  const isCrashing = currentBackoff(snapshot).last !== null || rollout.crashes > 0
  return isCrashing || rollout.stop !== null || workers.some(({ problem }) => problem !== null)
}
