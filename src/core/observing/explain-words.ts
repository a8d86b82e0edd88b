/** What is said of jobs, and of requests where an endpoint passes those on. */

import type { EndpointSnapshot } from '../scaling/scale.ts'
import type { Resource } from '../workers/placement.ts'

/** Words for what an endpoint has to do. */
export interface Words {
  /** What waits and is worked on. */
  readonly thing: 'job' | 'request'
  /** What follows a number of those that are worked on. */
  readonly underWay: 'running' | 'in flight'
  /** What becomes of those that come while it is paused. */
  readonly whilePaused: string
  /** What becomes of a worker with which something is wrong. */
  readonly unhealthy: string
}

const JOBS: Words = {
  thing: 'job',
  underWay: 'running',
  whilePaused: 'jobs are accepted and wait',
  unhealthy: 'is unhealthy, gets no job and is replaced',
}
const REQUESTS: Words = {
  thing: 'request',
  underWay: 'in flight',
  whilePaused: 'requests are refused',
  unhealthy: 'is not healthy and gets no requests',
}

/** The words for an endpoint. */
export function wordsOf({ requests }: Pick<EndpointSnapshot, 'requests'>): Words {
  return requests === undefined ? JOBS : REQUESTS
}

/** What helps where workers lack something of the machine. */
export function placeAction(resource: Resource): string {
  switch (resource) {
    case 'gpu':
      return 'wait, lower workersMin or workersMax of the endpoints that use them, or choose more pools'
    case 'gpu_type':
      return 'choose pools that this machine has, or put such a GPU into it'
    case 'gpu_count':
      return 'ask for fewer GPUs a worker'
    case 'cuda':
      return 'allow the CUDA version of this machine, or update its driver'
    case 'cpu':
    case 'memory':
      return `wait, stop other workers, choose a smaller CPU flavor, or raise --${resource}-overcommit`
    case 'account_workers':
    case 'account_gpus':
      return 'wait, lower workersMin of other endpoints of the account, or ask the operator for a higher limit'
    case 'workers':
      return 'stop other workers, or add capacity'
  }
}
