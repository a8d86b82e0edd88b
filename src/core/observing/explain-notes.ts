/** What people should know besides the cause of a wait, one sentence each. */

import { type Endpoint, MAX_IDLE_TIMEOUT_S } from '../endpoints/endpoint.ts'
import type { WorkerId } from '../ids.ts'
import type { AttemptTimes } from '../jobs/attempt-times.ts'
import { freezesIdle } from '../scaling/frozen-plan.ts'
import { startsAfterIdleEnds } from '../scaling/idle-advice.ts'
import { backoffOf, type EndpointSnapshot } from '../scaling/scale.ts'
import { gpuCountOf } from '../workers/placement.ts'
import { exitText } from '../workers/worker.ts'
import { type PortConflict, portConflictText } from '../workers/worker-exit.ts'
import { adviceFor, sharedPortsAdvice } from '../workers/worker-failure.ts'
import { counted, currentWorkers, roughDuration } from './explain-facts.ts'
import { settingAdvice } from './setting-advice.ts'

/** Facts for {@link notesOn} besides the snapshot. */
export interface NotesContext {
  /** True where workers of GPU endpoints run without a GPU, since the machine has no GPU. */
  readonly noGpus?: boolean
  /** The newest attempts of the endpoint. */
  readonly attempts?: readonly AttemptTimes[]
  /** True where its workers run on a platform. */
  readonly isElsewhere?: boolean
  /** Ports that its workers wanted and others have. */
  readonly portConflicts?: ReadonlyMap<WorkerId, PortConflict>
}

/** The notes on an endpoint. */
export function notesOn(
  snapshot: EndpointSnapshot,
  { noGpus = false, attempts = [], isElsewhere = false, portConflicts = new Map() }: NotesContext,
): string[] {
  const elsewhere = isElsewhere ? onPlatform(snapshot.endpoint) : []
  const ports = [...onTakenPorts(portConflicts), ...onPorts(snapshot)]
  return [...onGpus(snapshot, noGpus), ...elsewhere, ...ports, ...onSettings(snapshot, attempts)]
}

/** What works on a machine only. */
function onPlatform(endpoint: Endpoint): string[] {
  const frozen =
    'FlashBoot has no effect on a cluster, which cannot freeze workers: idle ones end after the idle timeout'
  const models = 'models are kept on the machine of the server, so each worker on the cluster downloads its own'
  return [...(freezesIdle(endpoint) ? [frozen] : []), ...(endpoint.modelReferences.length > 0 ? [models] : [])]
}

/** One setting at most: what pays most by the waits of the attempts, else what the ends of workers say. */
function onSettings(snapshot: EndpointSnapshot, attempts: readonly AttemptTimes[]): string[] {
  const advice = settingAdvice(snapshot, attempts)
  if (advice === null) return onIdleTimeout(snapshot)
  const { id, name, workersMax, idleTimeoutS } = snapshot.endpoint
  const { setting, value, waited, waitedMs, attempts: of } = advice
  const [why, change, flag] =
    setting === 'workersMax'
      ? [
          `while ${workersMax === 1 ? 'its only worker was' : `all ${workersMax} workers were`} busy`,
          '--max',
          '--workers-max',
        ]
      : [
          `for the start of a worker soon after one had ended, idle for ${idleTimeoutS} s`,
          '--idle-timeout',
          '--idle-timeout',
        ]
  return [
    `of the last ${counted(of, 'attempt')} of ${name} ${waited} waited, ${roughDuration(waitedMs)} in all, ${why}: ` +
      `runyard endpoints update ${id} ${change} ${value}; what that costs says runyard whatif ${id} ${flag} ${value}`,
  ]
}

function onGpus({ endpoint, workers }: EndpointSnapshot, noGpus: boolean): string[] {
  const { compute } = endpoint
  if (compute.kind !== 'gpu') return []
  if (noGpus) return [`this machine has no GPU, so workers of ${endpoint.name} run on the CPU`]
  const without = workers.filter(({ placement }) => placement !== null && gpuCountOf(placement) === 0)
  if (without.length === 0) return []
  const [count, has] = [counted(without.length, 'worker'), without.length === 1 ? 'has' : 'have']
  return [
    `${endpoint.name} asks for GPUs (${compute.pools.join(', ')}), and ${count} of it ${has} none and ${has === 'has' ? 'runs' : 'run'} on the CPU`,
  ]
}

/** Running workers whose wanted port is in use: another program answers there. */
function onTakenPorts(conflicts: ReadonlyMap<WorkerId, PortConflict>): string[] {
  return [...conflicts].map(
    ([worker, conflict]) => `worker ${worker}: ${portConflictText(conflict)}; ${sharedPortsAdvice(conflict)}`,
  )
}

/** Workers that crash beside working ones, because the port that they want is in use. */
function onPorts(snapshot: EndpointSnapshot): string[] {
  const { last } = backoffOf(snapshot)
  if (last === null || last.exit?.suspicion === undefined) return []
  if (!currentWorkers(snapshot).some(({ state }) => state === 'READY')) return []
  return [`another worker ${exitText(last, last.exit)}: ${adviceFor(last.exit, last.problem)}`]
}

/** Workers that end sooner without work than the next one needs to start. */
function onIdleTimeout(snapshot: EndpointSnapshot): string[] {
  const { id, name } = snapshot.endpoint
  const found = startsAfterIdleEnds(snapshot)
  if (found === null) return []
  const [startS, idleS] = [Math.ceil(found.startMs / 1000), found.idleMs / 1000]
  const enoughS = Math.min(MAX_IDLE_TIMEOUT_S, startS)
  if (enoughS <= idleS) return []
  return [
    `workers of ${name} take ${startS} s to start and end after ${idleS} s without work, so what comes soon after waits for a start; ` +
      `a longer idle timeout may cost less than it saves: runyard endpoints update ${id} --idle-timeout ${enoughS}`,
  ]
}

/** How many queued jobs are suspects, which run alone; null when none is. */
export function onSuspects({ queue: { suspectsQueued: count } }: EndpointSnapshot): string | null {
  if (count === 0) return null
  const [run, their, they] = count === 1 ? ['runs', 'its worker was', 'it'] : ['run', 'their workers were', 'they']
  return `${counted(count, 'queued job')} ${run} alone, because ${their} lost twice while ${they} ran`
}
