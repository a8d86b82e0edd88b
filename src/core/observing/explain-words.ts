/** Words for jobs, and for the requests of load-balancing endpoints. */

import type { EndpointSnapshot } from '../scaling/scale.ts'
import type { Resource } from '../workers/placement.ts'

/** The words for the work of an endpoint. */
export interface Words {
  /** One piece of work. */
  readonly thing: 'job' | 'request'
  /** Words after the number of jobs or requests in progress. */
  readonly underWay: 'running' | 'in flight'
  /** Effect of the pause of the endpoint on new jobs or requests. */
  readonly whilePaused: string
  /** Effect of a problem of a worker. */
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
export function endpointWords({ requests }: Pick<EndpointSnapshot, 'requests'>): Words {
  return requests === undefined ? JOBS : REQUESTS
}

/** The advice if the machine lacks a resource. */
export function placeAdvice(resource: Resource): string {
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
    case 'models':
      return 'wait; each model is downloaded once, for all workers of this machine'
    case 'workers':
      return 'stop other workers, or add capacity'
  }
}
