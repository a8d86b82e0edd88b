/** What people should know besides the cause of a wait, one sentence each. */

import { startsAfterIdleEnds } from '../scaling/idle-advice.ts'
import { backoffOf, type EndpointSnapshot } from '../scaling/scale.ts'
import { exitText } from '../workers/worker.ts'
import { adviceFor } from '../workers/worker-failure.ts'
import { counted, currentWorkers } from './explain-facts.ts'

/** The notes on an endpoint. @param noGpus whether workers of GPU endpoints run without one here, since the machine has none */
export function notesOn(snapshot: EndpointSnapshot, noGpus = false): string[] {
  return [...onGpus(snapshot, noGpus), ...onPorts(snapshot), ...onIdleTimeout(snapshot)]
}

function onGpus({ endpoint, workers }: EndpointSnapshot, noGpus: boolean): string[] {
  const { compute } = endpoint
  if (compute.kind !== 'gpu') return []
  if (noGpus) return [`this machine has no GPU, so workers of ${endpoint.name} run on the CPU`]
  const without = workers.filter(({ placement }) => placement !== null && placement.gpus.length === 0)
  if (without.length === 0) return []
  const [count, has] = [counted(without.length, 'worker'), without.length === 1 ? 'has' : 'have']
  return [
    `${endpoint.name} asks for GPUs (${compute.pools.join(', ')}), and ${count} of it ${has} none and ${has === 'has' ? 'runs' : 'run'} on the CPU`,
  ]
}

/** Workers that crash beside working ones, because the port that they want is in use. */
function onPorts(snapshot: EndpointSnapshot): string[] {
  const { last } = backoffOf(snapshot)
  if (last === null || last.exit?.suspicion === undefined) return []
  if (!currentWorkers(snapshot).some(({ state }) => state === 'READY')) return []
  return [`another worker ${exitText(last, last.exit)}: ${adviceFor(last.exit, last.problem)}`]
}

/** The longest idle timeout, in seconds. */
const MAX_IDLE_S = 3_600

/** Workers that end sooner without work than the next one needs to start. */
function onIdleTimeout(snapshot: EndpointSnapshot): string[] {
  const { id, name } = snapshot.endpoint
  const found = startsAfterIdleEnds(snapshot)
  if (found === null) return []
  const [startS, idleS] = [Math.ceil(found.startMs / 1000), found.idleMs / 1000]
  const enoughS = Math.min(MAX_IDLE_S, startS)
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
