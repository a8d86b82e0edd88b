/** What is said of jobs, and of requests where an endpoint passes those on. */
import type { EndpointSnapshot } from './scale.ts'

/** Words for what an endpoint has to do. */
export interface Words {
  /** What waits and is worked on. */
  readonly thing: 'job' | 'request'
  /** What follows a number of those that are worked on. */
  readonly underWay: 'running' | 'in flight'
  /** What becomes of those that come while it is paused. */
  readonly whilePaused: string
  /** What becomes of a worker with which something is wrong. */
  readonly ailing: string
}

const JOBS: Words = {
  ...{ thing: 'job', underWay: 'running', whilePaused: 'jobs are accepted and wait' },
  ailing: 'is unhealthy, gets no job and is replaced',
}
const REQUESTS: Words = {
  ...{ thing: 'request', underWay: 'in flight', whilePaused: 'requests are refused' },
  ailing: 'is not healthy and gets no requests',
}

/** The words for an endpoint. */
export function wordsOf({ requests }: Pick<EndpointSnapshot, 'requests'>): Words {
  return requests === undefined ? JOBS : REQUESTS
}
